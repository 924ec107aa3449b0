"""The birth tests in the manifests of the file executors, run in the real cage."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.catalog.manifest import check_manifest, parse_manifest
from core.levels.template import parse
from tests.executors.file_cases import NAMES, birth_tests, run_caged
from tests.support.run_executor import TREE

CASES = [(name, test) for name in NAMES for test in birth_tests(name)]


def _within(value: Any, root: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{root}", str(root))
    if isinstance(value, list):
        return [_within(item, root) for item in value]
    if isinstance(value, dict):
        return {key: _within(item, root) for key, item in value.items()}
    return value


def _holds(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return all(key in whole and whole[key] == value for key, value in part.items())


@pytest.mark.parametrize(
    ("name", "test"), CASES, ids=[f"{name}: {test['name']}" for name, test in CASES]
)
def test_birth_test_of_the_manifest_holds(name, test, tmp_path):
    for path, text in test.get("setup", {}).items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(text.encode())
    expect = _within(test["expect"], tmp_path)

    seen = run_caged(name, _within(test["args"], tmp_path), tmp_path)

    assert seen["ok"] is expect.get("ok", True), seen
    if "error" in expect:
        assert seen["error"]["code"] == expect["error"]
    if "count" in expect:
        assert len(seen["entries"]) == expect["count"]
    for entry, wanted in zip(seen.get("entries", []), expect.get("entries", []), strict=False):
        assert _holds(entry, wanted), entry
    assert _holds(seen.get("metadata", {}), expect.get("metadata", {}))
    for path, text in expect.get("files", {}).items():
        if text is False:
            assert not (tmp_path / path).exists()
        else:
            assert (tmp_path / path).read_bytes() == text.encode()


@pytest.mark.parametrize("name", NAMES)
def test_manifest_passes_the_thorough_check(name):
    folder = TREE / name
    manifest = parse_manifest((folder / "manifest.toml").read_bytes(), folder=name)

    check_manifest(manifest, {"main.py": (folder / "main.py").read_bytes()})

    for answer in manifest.answer.values():
        for form in (answer.zero, answer.one, answer.many):
            assert form
            parse(form)
