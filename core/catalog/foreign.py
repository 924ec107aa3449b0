"""Tools of servers that the host connected: from what a server says to a manifest, or a refusal.

Pure. What a server says is text of a stranger: it is bounded, and freed of what cannot be seen,
before a person is shown it; a model is shown nothing but what that person approved.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from typing import Any

from core.catalog.foreign_schema import FREE_TYPES, ForeignRefused, reduced
from core.catalog.loaded import Catalog, ForeignTool, LoadedExecutor
from core.catalog.manifest import Answer, Capability, Effect, Limits, Manifest
from core.vocabulary import foreign_name

# No executor's, and nobody may be granted it: tools of servers are the host's.
RIGHT = "mcp:call"
# How a tool may be approved. `checkable` needs somebody who looks, and nobody here knows how.
EFFECTS = (Effect.PURE, Effect.IDEMPOTENT, Effect.KEYED, Effect.BLIND)
RIGHTS = frozenset(
    "mail:send channel:out network:http calendar:write contacts:write mail:write fs:write "
    "code:exec metnos:write".split()
)
TIMEOUT_S = 60.0
MAX_TOOL_BYTES = 64 * 1024
MOST_TOOLS = 200
MOST_DESCRIPTION = 240
_MOST_HEAD = 64
_MOST_SHOWN = 2000
_SERVER = re.compile(r"[a-z][a-z0-9]{0,15}", re.ASCII)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_COMMON = frozenset(
    "the and for with from that this into use used when will tool returns return given get act "
    "all any are can its not one other which you your via per".split()
)


@dataclass(frozen=True, slots=True)
class SeenTool:
    """A tool as its server describes it. `digest` covers everything that was said, so that any
    change of it is another digest."""

    tool: str
    description: str
    schema: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Approval:
    """What the host said of a tool. `rights`: what it does beside being called (it sends, writes);
    `words`: what people call it; `types`: what its arguments hold."""

    effect: Effect
    rights: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    description: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "effect": self.effect.value,
            "rights": list(self.rights),
            "words": list(self.words),
            "types": dict(self.types),
            "description": self.description,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Approval:
        """Read back `to_json`. Raises `ValueError` or `KeyError` for what is none."""
        return cls(
            Effect(data["effect"]),
            tuple(map(str, data["rights"])),
            tuple(map(str, data["words"])),
            {str(name): str(kind) for name, kind in data["types"].items()},
            str(data["description"]),
        )


def is_server_name(name: str) -> bool:
    """Short, lower case, no underscore: it is a part of every name of its tools."""
    return _SERVER.fullmatch(name) is not None


def seen_tool(tool: str, description: str, schema: Any) -> SeenTool:
    """A tool as it was listed, in the form that is kept. Raises `ForeignRefused`."""
    if not 0 < len(tool) <= 128 or clean(tool, most=128) != tool:
        raise ForeignRefused("tool_name", clean(tool, most=80))
    if not isinstance(schema, Mapping):
        raise ForeignRefused("schema", "no object")
    try:
        data = json.dumps([tool, description, schema], sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as exc:
        raise ForeignRefused("schema", "no JSON") from exc
    if len(data) > MAX_TOOL_BYTES:
        raise ForeignRefused("too_large", f"{len(data)} bytes")
    digest = hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()
    return SeenTool(tool, clean(description, most=_MOST_SHOWN), schema, digest)


def clean(text: str, *, most: int) -> str:
    """A stranger's text as it may be shown: one line, composed letters, nothing that cannot be
    seen, turns the direction of reading or moves a cursor; at most `most` characters."""
    flat = unicodedata.normalize("NFC", text)
    flat = "".join(
        " " if char.isspace() else char
        for char in flat
        if char.isspace() or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"}
    )
    flat = " ".join(flat.split())
    return flat if len(flat) <= most else f"{flat[: most - 1].rstrip()}…"


def executor_of(server: str, seen: SeenTool, approval: Approval) -> LoadedExecutor:
    """The approved tool beside the executors. Raises `ForeignRefused` for a schema or a word that
    cannot be used."""
    if approval.effect not in EFFECTS:
        raise ForeignRefused("effect", approval.effect)
    if unknown := set(approval.rights) - RIGHTS:
        raise ForeignRefused("right", min(unknown))
    if approval.effect is Effect.PURE and approval.rights:
        raise ForeignRefused("pure_rights", approval.rights[0])
    if unknown := set(approval.types.values()) - FREE_TYPES:
        raise ForeignRefused("type", min(unknown))
    args, names = reduced(seen.schema, approval.types, clean)
    if unknown := set(approval.types) - set(args["properties"]):
        raise ForeignRefused("argument", min(unknown))
    pure = approval.effect is Effect.PURE
    name = foreign_name(server, seen.tool, pure=pure)
    said = _described(server, seen, approval)
    label = f"{server} · {clean(seen.tool, most=60)}"
    both = ("it", "en")
    rights = [Capability(RIGHT, (server,)), *(Capability(right) for right in approval.rights)]
    facts = json.dumps([server, seen.digest, approval.to_json()], sort_keys=True)
    manifest = Manifest(
        format="foreign",
        name=name,
        version="1.0.0",
        author=server,
        sdk="",
        lifecycle="active",
        description=dict.fromkeys(both, said),
        phrase=dict.fromkeys(both, label[:80]),
        affinity=dict.fromkeys(both, _words(server, seen, approval)),
        answer=dict.fromkeys(both, Answer("", "", "")),
        args=args,
        output={"content": {"text": "text"}},
        capabilities=tuple(rights),
        effect=approval.effect,
        reversible=False,
        undo=None,
        vector=(),
        timeout_s=TIMEOUT_S,
        limits=Limits(),
        parallel_safe=False,
        companions=(),
        producer_for=(),
        tests=(),
        files={},
        undo_tool=None,
        requires=(),
        provenance="external",
        render="text",
        digest=hashlib.sha256(facts.encode()).hexdigest(),
    )
    return LoadedExecutor(manifest, {}, ForeignTool(server, seen.tool, seen.digest, names))


def with_foreign(catalog: Catalog, foreign: Sequence[LoadedExecutor]) -> Catalog:
    """The catalogue with these beside its executors; the very same object when there are none.
    Of two tools that would carry one name neither is there."""
    if not foreign:
        return catalog
    found = [one.name for one in foreign]
    added = {one.name: one for one in foreign if found.count(one.name) == 1}
    parts = [catalog.signature, *(f"{n} {e.manifest.digest}" for n, e in sorted(added.items()))]
    return replaced(
        catalog,
        executors=dict(sorted({**catalog.executors, **added}.items())),
        signature=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
    )


def _described(server: str, seen: SeenTool, approval: Approval) -> str:
    """What a model is told: a first sentence that is short, since every plan pays for it."""
    text = clean(approval.description or seen.description, most=MOST_DESCRIPTION)
    first, *rest = _SENTENCE.split(text, maxsplit=1)
    head = clean(f"{server}: {first.rstrip('.!? ') or seen.tool}", most=_MOST_HEAD - 1)
    return clean(" ".join([f"{head}.", *rest]), most=MOST_DESCRIPTION)


def _words(server: str, seen: SeenTool, approval: Approval) -> tuple[str, ...]:
    """What people may call it: what the host said, the server, the words of its name and, behind
    them, of its description."""
    named = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", seen.tool).replace("_", " ")
    own = re.findall(r"[^\W\d_]{3,}", f"{named} {approval.description}".casefold())
    words = [*map(str.casefold, approval.words), server, *own]
    return tuple(dict.fromkeys(word for word in words if word not in _COMMON))[:24]
