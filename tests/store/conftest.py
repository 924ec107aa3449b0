"""Real SQLite files in a temporary home."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.config import Settings, load_settings
from core.store.database import Database
from core.store.stores import Stores, open_stores
from tests.support.clock import FrozenClock


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    return load_settings(metnos_home=tmp_path / "home")


@pytest.fixture
async def stores(settings: Settings, clock: FrozenClock) -> AsyncIterator[Stores]:
    opened = await open_stores(settings, clock)
    yield opened
    await opened.close()


@pytest.fixture
def db(stores: Stores) -> Database:
    return stores.main
