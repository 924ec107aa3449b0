"""Every example in the manifests of the release, in the real cage, from the signed catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from core.catalog.loader import Catalog, CatalogLoader
from core.catalog.manifest import check_manifest, parse_manifest
from core.config import Settings
from core.execution.births import births
from core.execution.cage.process import ProcessCage
from core.levels.template import parse
from tests.support.executors import REPO, signed_home

FOLDERS = {path.parent.name: path.parent for path in REPO.glob("executors/*_*/manifest.toml")}
FOLDERS.pop("_sdk")
NAMES = sorted(FOLDERS)


@dataclass(frozen=True)
class Cradle:
    settings: Settings
    catalog: Catalog
    cage: ProcessCage


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
    assert len(NAMES) >= 31
    examples = sum(len(one.manifest.tests) for one in cradle.catalog.executors.values())
    print(f"births: {examples} examples of {len(NAMES)} executors, caged and signed")


@pytest.mark.parametrize("name", NAMES)
async def test_examples_of_a_manifest_hold_in_the_cage(name: str, cradle: Cradle) -> None:
    executor = cradle.catalog.executors[name]

    found = [
        born async for born in births(executor, cradle.catalog.sdk, cradle.cage, cradle.settings)
    ]

    assert len(found) == len(executor.manifest.tests) > 0
    assert [born for born in found if not born.ok] == []


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
