"""What holds for every test."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.support import processes


@pytest.fixture(autouse=True)
def reaped() -> Iterator[None]:
    """No process that a test started outlives it, nor is found running by the next one."""
    yield
    processes.end_all()


def pytest_collection_finish() -> None:
    """Eleven thousand tests stay until the end: nobody need look through them again and again."""
    gc.collect()
    gc.freeze()
