"""What an executor may import, and that its code never comes from the disk."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from core.errors import ErrorCode
from tests.cage.conftest import Room

TREE = Path(__file__).parents[2]
STANDARD = """json re os pathlib datetime zoneinfo ssl sqlite3 urllib.request email csv decimal
asyncio ctypes unicodedata multiprocessing xml.etree.ElementTree tomllib logging.handlers sysconfig
concurrent.futures importlib.metadata http.client encodings.idna"""


@pytest.mark.parametrize(
    "name",
    [
        "core",
        "core.config",
        "bot",
        "telegram",
        "httpx",
        "pytest",
        "pydantic",
        "tests.support.harness",
        "executors.read_files",
        "executors._sdk.nothing",
        "site-packages",
    ],
)
async def test_import_of_what_is_not_declared_fails(room: Room, name: str):
    observation = await room.run(f"import importlib\nimportlib.import_module({name!r})")

    assert observation.error is not None
    assert observation.error.code is ErrorCode.EXECUTOR_CRASHED
    assert "ModuleNotFoundError" in observation.error.detail


async def test_import_of_the_engine_fails_also_with_the_tree_on_the_path(room: Room):
    code = f"""
    import sys
    sys.path.insert(0, {str(TREE)!r})
    def run(call):
        try:
            import core
        except ImportError:
            return {{"ok": True}}
    """

    assert (await room.run(dedent(code))).ok


@pytest.mark.parametrize(
    "name",
    STANDARD.split(),
)
async def test_standard_library_is_open(room: Room, name: str):
    observation = await room.run(f"import {name}\ndef run(c): return {{'ok': True}}")

    assert observation.ok, observation.error


@pytest.mark.parametrize(
    ("requires", "name"),
    [
        ("trafilatura", "trafilatura"),
        ("python-dateutil>=2.9", "dateutil.parser"),
        ("charset-normalizer", "charset_normalizer"),
        ("httpx", "httpx"),
    ],
)
async def test_declared_package_is_open_with_what_it_needs(room: Room, requires: str, name: str):
    code = f"""
    import {name}
    import importlib.metadata
    def run(call):
        try:
            import telegram
        except ImportError:
            return {{"ok": True}}
    """

    observation = await room.run(dedent(code), requires=(requires,), memory_mb=1024)

    assert observation.ok, observation.error


async def test_package_that_is_not_installed_is_named(room: Room):
    observation = await room.run("x = 1", requires=("no-such-package-here",))

    assert observation.error is not None
    assert observation.error.code is ErrorCode.SANDBOX_UNAVAILABLE
    assert observation.error.params == {"package": "no-such-package-here"}


async def test_own_modules_and_data_come_from_the_verified_bytes(room: Room):
    code = """
    import pkgutil
    from executors.get_now import tables
    from executors.get_now.deep.inner import VALUE
    def run(call):
        data = pkgutil.get_data("executors.get_now", "words.txt").decode()
        return {"ok": True, "content": [tables.NAME, VALUE, data, __file__]}
    """
    files = {
        "tables.py": b"NAME = __name__",
        "deep/inner.py": b"VALUE = 7",
        "words.txt": "però".encode(),
    }

    observation = await room.run(dedent(code), files=files)

    assert observation.content == [
        "executors.get_now.tables",
        7,
        "però",
        "executors/get_now/main.py",
    ]
