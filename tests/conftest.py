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


# Folders whose files are over soon. They come last, so that no worker has a long file at the end
# when the others have nothing left.
_SHORT = ("catalog", "core", "egress", "execution", "executors", "levels", "llm", "store")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def is_short(item: pytest.Item) -> bool:
        return item.path.parent.name in _SHORT

    def is_in_a_folder(item: pytest.Item) -> bool:
        return item.path.parent.name != "tests"

    items.sort(key=lambda item: (is_short(item), is_in_a_folder(item)))
