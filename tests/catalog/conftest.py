"""A home with two good executors: `find_files`, which tests spoil, and `get_now`, which must go on
working whatever happens to the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.catalog.loader import CatalogLoader
from core.config import Settings
from tests.support.executors import PURE_CODE, home_settings, manifest_toml, signed_executor


@pytest.fixture
def home(tmp_path: Path) -> Settings:
    settings = home_settings(tmp_path)
    signed_executor(settings, manifest_toml("get_now"), PURE_CODE)
    signed_executor(
        settings,
        manifest_toml("find_files", version="1.2.0"),
        {"main.py": PURE_CODE, "data/words.txt": "uno\ndue\n"},
    )
    return settings


@pytest.fixture
def loader(home: Settings) -> CatalogLoader:
    return CatalogLoader.of(home)


@pytest.fixture
def folder(home: Settings) -> Path:
    return home.metnos_home / "executors" / "find_files"
