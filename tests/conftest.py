"""What holds for every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import processes


@pytest.fixture(autouse=True)
def reaped() -> Iterator[None]:
    """No process that a test started outlives it, nor is found running by the next one."""
    yield
    processes.end_all()
