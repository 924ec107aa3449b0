"""What a manifest is once it has been read: frozen values that every room may hold.

Pure. Made by `core.catalog.manifest` alone, which is also where other rooms import them from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from core.accounts import AccountKind, kinds_of
from core.catalog.tool_schema import tool_schema

MANIFEST_LANGS = ("it", "en")
_SENTENCE = re.compile(r"(?<=[.!?]) ")


class Effect(StrEnum):
    """What a call leaves behind, and so what may be done after an unclear end.

    `pure` leaves nothing (reading, also from the network). `idempotent` may be repeated.
    `checkable` can be looked at to see whether it happened. `keyed` carries a key that makes a
    repetition harmless. `blind` is none of these: it is never repeated by itself.
    """

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    CHECKABLE = "checkable"
    KEYED = "keyed"
    BLIND = "blind"


@dataclass(frozen=True, slots=True)
class Answer:
    """Templates over the observation for 0, 1 and N items; an empty one leaves the sentence to
    the generic renderer."""

    zero: str
    one: str
    many: str


@dataclass(frozen=True, slots=True)
class Capability:
    """A declared ceiling: `arg:<name>`, path globs, or hosts, by the kind of capability."""

    name: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    memory_mb: int = 256
    cpu_s: int = 20
    output_bytes: int = 4 * 1024 * 1024
    file_mb: int = 64


@dataclass(frozen=True, slots=True)
class BirthTest:
    """One example that the executor must pass before it may live; see the example manifest."""

    name: str
    args: Mapping[str, Any]
    setup: Mapping[str, str]
    expect: Mapping[str, Any]
    now: str | None = None
    tz: str | None = None
    lang: str = "it"


@dataclass(frozen=True)
class Manifest:
    """A manifest that passed `parse_manifest`. `digest` is the SHA-256 of its exact bytes."""

    format: str
    name: str
    version: str
    author: str
    sdk: str
    lifecycle: str
    description: Mapping[str, str]
    phrase: Mapping[str, str]
    affinity: Mapping[str, tuple[str, ...]]
    answer: Mapping[str, Answer]
    args: Mapping[str, Any]
    output: Mapping[str, Mapping[str, str]]
    capabilities: tuple[Capability, ...]
    effect: Effect
    reversible: bool
    undo: str | None
    vector: tuple[str, ...]
    timeout_s: float
    limits: Limits
    parallel_safe: bool
    companions: tuple[str, ...]
    producer_for: tuple[str, ...]
    tests: tuple[BirthTest, ...]
    files: Mapping[str, str]
    undo_tool: str | None
    requires: tuple[str, ...]
    provenance: str
    render: str
    digest: str
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_mutating(self) -> bool:
        return self.effect is not Effect.PURE

    @property
    def properties(self) -> Mapping[str, Mapping[str, Any]]:
        properties: Mapping[str, Mapping[str, Any]] = self.args.get("properties", {})
        return properties

    def head(self, lang: str) -> str:
        """The first sentence of the description: what a line about the tool says of it."""
        return _SENTENCE.split(self.description[lang], maxsplit=1)[0]

    @property
    def takes_entries(self) -> bool:
        """Whether an earlier step's list may be piped in (`from_step`)."""
        return "entries" in self.properties

    @property
    def requires_one_of(self) -> tuple[tuple[str, ...], ...]:
        """Groups of arguments of which at least one must be given whole; empty: no such rule."""
        return tuple(tuple(group) for group in self.args.get("requires_one_of", ()))

    @cached_property
    def sinks(self) -> dict[str, str]:
        """Dangerous arguments: name → path, url, recipient or command."""
        return _marked(self.properties, "x-metnos-sink")

    @cached_property
    def types(self) -> dict[str, str]:
        """Argument name → `x-metnos-type`."""
        return _marked(self.properties, "x-metnos-type")

    @cached_property
    def needed_accounts(self) -> frozenset[AccountKind]:
        """The kinds of account without which it is dormant."""
        return kinds_of(hint for right in self.capabilities for hint in right.hints)[0]

    @cached_property
    def used_accounts(self) -> frozenset[AccountKind]:
        """The kinds of account that its calls are given, as far as the person has any."""
        return kinds_of(hint for right in self.capabilities for hint in right.hints)[1]

    @cached_property
    def runtime_args(self) -> frozenset[str]:
        """Arguments that the engine fills and no model sees."""
        return frozenset(
            name
            for name, spec in self.properties.items()
            if spec.get("x-runtime-resolved") is True
        )

    @cached_property
    def _schemas(self) -> dict[str, dict[str, Any]]:
        return {lang: tool_schema(self.args, lang) for lang in MANIFEST_LANGS}

    def tool_schema(self, lang: str) -> dict[str, Any]:
        """The parameters as a model is shown them in `lang`; do not change the dict."""
        return self._schemas[lang]


@dataclass(frozen=True, slots=True)
class SdkManifest:
    """The manifest of `executors/_sdk`, a signed unit of its own."""

    version: str
    files: Mapping[str, str]
    digest: str

    @property
    def generation(self) -> str:
        """What executors name in `sdk = "…"`: the major number."""
        return self.version.partition(".")[0]


def _marked(properties: Mapping[str, Mapping[str, Any]], key: str) -> dict[str, str]:
    return {name: spec[key] for name, spec in properties.items() if key in spec}
