"""One running bot a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.field.field import Field, open_field


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with open_field(tmp_path_factory.mktemp("field")) as field:
        yield field
