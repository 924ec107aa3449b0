"""The shipped manifests, read from the tree without staging or signing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from core.catalog.manifest import Manifest, parse_manifest
from tests.support.executors import REPO


@lru_cache(maxsize=1)
def shipped_manifests() -> Mapping[str, Manifest]:
    folders = sorted((REPO / "executors").glob("[a-z]*/manifest.toml"))
    return {
        folder.parent.name: parse_manifest(folder.read_bytes(), folder=folder.parent.name)
        for folder in folders
    }
