"""What a step brought back: the observation, its JSON form, and how a reference reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.errors import ErrorCode, ErrorInfo


class Effects(StrEnum):
    NONE = "none"
    DONE = "done"
    UNKNOWN = "unknown"


class Provenance(StrEnum):
    """Where the words of an observation come from; the later one wins when two are joined."""

    USER = "user"
    OWN = "own"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one step.

    `entries`: one dict per item, each with `ok` (vector executors, also for 0 and 1 items), or
    None. `content`: a single value, for what is no list. `metadata`: counts and facts about the
    whole (`count`, `truncated`, …). Exactly one of `ok` and `error` speaks: `ok` false has one.
    """

    ok: bool
    entries: tuple[Mapping[str, Any], ...] | None = None
    content: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: ErrorInfo | None = None
    effects: Effects = Effects.NONE
    provenance: Provenance = Provenance.OWN

    @classmethod
    def failed(
        cls,
        error: ErrorInfo | ErrorCode,
        detail: str = "",
        *,
        effects: Effects = Effects.NONE,
        **params: Any,
    ) -> Observation:
        """An observation of a call that did not work; `effects` says what it may have left."""
        info = (
            error
            if isinstance(error, ErrorInfo)
            else ErrorInfo(error, params=params, detail=detail)
        )
        return cls(ok=False, error=info, effects=effects)

    def to_json(self) -> dict[str, Any]:
        """The stored form, whole. `from_json` reads it back equal."""
        data: dict[str, Any] = {"ok": self.ok}
        if self.entries is not None:
            data["entries"] = [dict(entry) for entry in self.entries]
        if self.content is not None:
            data["content"] = self.content
        if self.metadata:
            data["metadata"] = dict(self.metadata)
        if self.error is not None:
            data["error"] = self.error.to_json()
        if self.effects is not Effects.NONE:
            data["effects"] = self.effects.value
        if self.provenance is not Provenance.OWN:
            data["provenance"] = self.provenance.value
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Observation:
        entries = data.get("entries")
        error = data.get("error")
        return cls(
            ok=data["ok"] is True,
            entries=tuple(entries) if isinstance(entries, Sequence) else None,
            content=data.get("content"),
            metadata=dict(data.get("metadata") or {}),
            error=ErrorInfo.from_json(error) if isinstance(error, Mapping) else None,
            effects=Effects(data.get("effects", "none")),
            provenance=Provenance(data.get("provenance", "own")),
        )

    def for_model(self) -> dict[str, Any]:
        """What the model is shown of a small observation: no params, no provenance."""
        data = self.to_json()
        data.pop("provenance", None)
        if self.error is not None:
            data["error"] = {"code": self.error.code.value, "detail": self.error.detail}
        return data

    def items(self) -> list[Any] | None:
        """The list that `from_step` injects: `entries` that worked, else a list `content`."""
        if self.entries is not None:
            return [entry for entry in self.entries if entry.get("ok") is not False]
        return list(self.content) if isinstance(self.content, list) else None

    def read(self, path: Sequence[str]) -> Any:
        """The value at a dotted path, for `{{stepN.path}}`.

        Looked up in this order: the observation's own keys; the only entry, when there is exactly
        one (C3); a `content` that is an object; `metadata`; and `count`, which always is there
        when there is a list. Whole numbers index lists. Raises `KeyError` when nothing is there.
        """
        whole = self.to_json()
        roots: list[Any] = [whole]
        if self.entries is not None and len(self.entries) == 1:
            roots.append(self.entries[0])
        if isinstance(self.content, Mapping):
            roots.append(self.content)
        items = self.items()
        roots += [self.metadata, {} if items is None else {"count": len(items)}]
        for root in roots:
            try:
                return _walk(root, path)
            except KeyError:
                continue
        raise KeyError(".".join(path))


def _walk(value: Any, path: Sequence[str]) -> Any:
    for key in path:
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise KeyError(key)
    return value
