"""The birth tests of the executors that touch no file, run through the real cage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.catalog.manifest import BirthTest, check_manifest, parse_manifest
from tests.support.run_executor import TREE, observe

NAMES = (
    "get_now",
    "get_urls",
    "read_urls_html",
    "find_places",
    "get_places",
    "filter_entries",
    "sort_entries",
    "compute_entries",
)


def births() -> Iterator[Any]:
    for name in NAMES:
        manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
        for test in manifest.tests:
            yield pytest.param(name, test, id=f"{name}-{test.name}")


@pytest.mark.parametrize(("name", "birth"), list(births()))
async def test_birth_example_holds(name: str, birth: BirthTest):
    about: dict[str, Any] = {"now": birth.now} if birth.now else {}

    seen = await observe(TREE / name, birth.args, lang=birth.lang, tz=birth.tz or "UTC", **about)

    expected = birth.expect
    assert seen.ok is expected.get("ok", True), seen.error
    if "error" in expected:
        assert seen.error is not None
        assert seen.error.code == expected["error"]
    if "count" in expected:
        assert len(seen.entries or ()) == expected["count"]
    for entry, wanted in zip(seen.entries or (), expected.get("entries", ()), strict=False):
        assert wanted.items() <= entry.items()
    assert expected.get("content", {}).items() <= (seen.content or {}).items()
    assert expected.get("metadata", {}).items() <= seen.metadata.items()


@pytest.mark.parametrize("name", NAMES)
def test_manifest_passes_the_thorough_check(name: str):
    folder = TREE / name
    manifest = parse_manifest((folder / "manifest.toml").read_bytes(), folder=name)

    check_manifest(manifest, {file: (folder / file).read_bytes() for file in manifest.files})

    assert set(manifest.files) == {
        str(path.relative_to(folder))
        for path in Path(folder).iterdir()
        if path.is_file() and path.name != "manifest.toml"
    }
