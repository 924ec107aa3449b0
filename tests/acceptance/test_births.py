"""Every example in the manifests of the release, in the real cage, from the signed catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.catalog.loader import Catalog, CatalogLoader
from core.catalog.manifest import BirthTest, check_manifest, parse_manifest
from core.config import Settings
from core.execution.arguments import paths_in
from core.execution.cage.process import ProcessCage
from core.execution.paths import folders_of, scope_for
from core.levels.template import parse
from core.messages import Actor, Role
from tests.support.executors import REPO, signed_home
from tests.support.run_executor import call_document

FOLDERS = {path.parent.name: path.parent for path in REPO.glob("executors/*_*/manifest.toml")}
FOLDERS.pop("_sdk")
NAMES = sorted(FOLDERS)


@dataclass(frozen=True)
class Cradle:
    settings: Settings
    catalog: Catalog
    cage: ProcessCage


def births() -> Iterator[Any]:
    for name in NAMES:
        data = (FOLDERS[name] / "manifest.toml").read_bytes()
        for birth in parse_manifest(data, folder=name).tests:
            yield pytest.param(name, birth, id=f"{name}: {birth.name}")


@pytest.fixture(scope="module")
def cradle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cradle]:
    settings = signed_home(tmp_path_factory.mktemp("births"))
    catalog = CatalogLoader.of(settings).current()
    assert not catalog.rejected
    cage = ProcessCage()
    yield Cradle(settings, catalog, cage)
    cage.close()


def test_release_has_all_its_executors(cradle: Cradle) -> None:
    assert sorted(cradle.catalog.executors) == NAMES
    assert len(NAMES) == 14
    print(f"births: {len(list(births()))} examples of {len(NAMES)} executors, caged and signed")


@pytest.mark.parametrize(("name", "birth"), list(births()))
async def test_example_of_a_manifest_holds_in_the_cage(
    name: str, birth: BirthTest, cradle: Cradle, tmp_path: Path
) -> None:
    for path, text in birth.setup.items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(text.encode())
    executor = cradle.catalog.executors[name]
    settings = cradle.settings.model_copy(update={"metnos_files_roots": (tmp_path,)})
    scope = scope_for(Actor("host", Role.HOST, "host"), settings)
    args = within(birth.args, tmp_path)
    about: dict[str, Any] = {"now": birth.now} if birth.now else {}
    document = {
        **call_document(name, args, lang=birth.lang, tz=birth.tz or "UTC", **about),
        **folders_of(executor.manifest, scope),
        "paths": [path for group in paths_in(args, executor.manifest).values() for path in group],
        "product_home": scope.product_home,
        "workspace": scope.workspace,
    }

    seen = await cradle.cage.run(executor, cradle.catalog.sdk, document)

    expect = within(birth.expect, tmp_path)
    assert seen.ok is expect.get("ok", True), seen.error
    if "error" in expect:
        assert seen.error is not None
        assert seen.error.code == expect["error"]
    if "count" in expect:
        assert len(seen.entries or ()) == expect["count"]
    for entry, wanted in zip(seen.entries or (), expect.get("entries", ()), strict=False):
        assert holds(entry, wanted), entry
    assert holds(seen.content or {}, expect.get("content", {}))
    assert holds(seen.metadata, expect.get("metadata", {}))
    for path, text in expect.get("files", {}).items():
        if text is False:
            assert not (tmp_path / path).exists()
        else:
            assert (tmp_path / path).read_bytes() == text.encode()


def within(value: Any, root: Path) -> Any:
    """The value with `{root}` filled in."""
    if isinstance(value, str):
        return value.replace("{root}", str(root))
    if isinstance(value, list | tuple):
        return [within(item, root) for item in value]
    if isinstance(value, Mapping):
        return {key: within(item, root) for key, item in value.items()}
    return value


def holds(whole: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    return all(key in whole and whole[key] == value for key, value in part.items())


@pytest.mark.parametrize("name", NAMES)
def test_manifest_passes_the_thorough_check(name: str) -> None:
    folder = FOLDERS[name]
    manifest = parse_manifest((folder / "manifest.toml").read_bytes(), folder=name)

    check_manifest(manifest, {file: (folder / file).read_bytes() for file in manifest.files})

    present = {path.name for path in folder.iterdir() if path.is_file()}
    assert set(manifest.files) == present - {"manifest.toml"}
    for answer in manifest.answer.values():
        for form in (answer.zero, answer.one, answer.many):
            if form:
                parse(form)
