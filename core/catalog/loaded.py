"""The catalogue as a value: verified executors with the bytes that run. Pure.

Made by `core.catalog.loader` alone, which is also where other rooms import these from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from core.accounts import AccountKind
from core.catalog.manifest import Manifest
from core.catalog.reasons import Rejection


@dataclass(frozen=True, slots=True)
class ForeignTool:
    """How a tool of a connected server is called: by its own name there, and its own names of
    arguments where ours differ (ours → theirs). `digest`: of what the server said of it when it
    was approved."""

    server: str
    tool: str
    digest: str
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedExecutor:
    """A verified executor. `files` are the bytes that run, without manifest and signature.
    `foreign`: it runs elsewhere, and is called by what this says."""

    manifest: Manifest
    files: Mapping[str, bytes]
    foreign: ForeignTool | None = None

    @property
    def name(self) -> str:
        return self.manifest.name


@dataclass(frozen=True, slots=True)
class LoadedSdk:
    """The verified `_sdk`. `digest` is that of its manifest, which names every file's digest."""

    files: Mapping[str, bytes]
    digest: str
    version: str


NO_SDK = LoadedSdk({}, "", "0.0.0")


@dataclass(frozen=True)
class Catalog:
    """Executors by name (in order), the refused ones, and a signature of the whole.

    `executors` holds what may run, deprecated ones too (their undo still works); `offered` is what
    may be planned with. Equal signatures: the same executors with the same bytes. `withheld`:
    names of what there is, but not for whom this catalogue is. `dormant`: what lacks an account of
    theirs, name → the kind that is missing.
    """

    executors: Mapping[str, LoadedExecutor]
    rejected: tuple[Rejection, ...]
    sdk: LoadedSdk
    signature: str
    withheld: frozenset[str] = frozenset()
    dormant: Mapping[str, AccountKind] = field(default_factory=dict)

    @cached_property
    def offered(self) -> Mapping[str, LoadedExecutor]:
        return {
            name: one
            for name, one in self.executors.items()
            if one.manifest.lifecycle == "active" and name not in self.dormant
        }
