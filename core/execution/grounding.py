"""Whether a call's typed values were said, read or referred to, and not made up by a model (S2).

Strict where it matters: what a change touches and every address must stand in the person's words,
in the conversation, or in what a step brought. Lenient where people speak loosely: a new file may
get a new name in a known folder, "last week" is 7, Tokyo is Asia/Tokyo. A narrowing that nobody
asked for is left out of a first look rather than refused: the look is then wider, never wrong.
Pure: what was said, seen and exists comes from the caller.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.execution.addresses import stands_in
from core.execution.values import fold
from core.execution.wording import is_vague, names_a_place, numbers_in, speaks_of_time
from core.plan import PIPES, references_in

_NARROWING = frozenset({"number", "size", "duration", "datetime", "window", "place"})
_WORD = re.compile(r"[^\W_]+")
_ADDRESS = re.compile(
    r"(?:https?://)?[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:[/?#][^\s<>\"'»”)\]]*)?", re.I
)
_FACTORS = {
    "number": (1, 7, 30, 31, 365, 1 / 24),
    "size": tuple(base**power for base in (1000, 1024) for power in range(5)),
    "duration": (1, 60, 3600, 86_400, 7 * 86_400),
}


@dataclass(frozen=True)
class Ground:
    """What a call may stand on.

    `said`: the request, the conversation on both sides, what the person quoted. `seen`: texts and
    values that steps of this turn brought or worked on. `exists` tells of a canonical path.
    `first`: nothing was seen yet.
    """

    said: Sequence[str]
    seen: Callable[[], Iterable[str]] = tuple
    roots: Sequence[str] = ()
    zone: str = ""
    exists: Callable[[str], bool] = field(default=lambda path: False)
    first: bool = True

    @cached_property
    def folded(self) -> list[str]:
        return [fold(text) for text in self.said]

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(word for text in self.folded for word in _WORD.findall(text))

    @cached_property
    def leaves(self) -> list[str]:
        return [text.casefold() for text in self.seen()]

    def names(self, text: str) -> bool:
        """Whether this very text was said or seen, on token boundaries."""
        wanted = re.compile(rf"(?<![\w.-]){re.escape(fold(text))}(?![\w-])")
        return bool(text.strip()) and (
            any(wanted.search(said) for said in self.folded)
            or any(wanted.search(leaf) for leaf in self.leaves if fold(text) in leaf)
        )


def check(
    raw: Mapping[str, Any], args: Mapping[str, Any], manifest: Manifest, ground: Ground
) -> tuple[str, ...]:
    """Names of the arguments that are to be left out, since nobody gave them.

    `raw` as the model wrote them, `args` resolved and canonical. Raises `CallRefused(ungrounded)`
    naming the argument and what would be accepted.
    """
    required = set(manifest.args.get("required", ()))
    left_out: list[str] = []
    for name, value in args.items():
        kind = manifest.sinks.get(name) or manifest.types.get(name, "free")
        own = list(_own_values(name, raw, value))
        if name in PIPES.values() and "path" in manifest.sinks.values():
            kind, own = "path", [v["path"] for v in own if isinstance(v, Mapping) and "path" in v]
        made_up = next((v for v in own if not _is_grounded(v, kind, name, manifest, ground)), None)
        if made_up is None:
            continue
        if kind in _NARROWING and name not in required and not manifest.is_mutating:
            left_out.append(name)
            continue
        raise CallRefused(
            ErrorCode.UNGROUNDED,
            f"{name}: {str(made_up)[:120]!r} was neither asked for nor found: {_ADVICE[kind]}",
            argument=name,
        )
    return tuple(left_out)


_ADVICE: Mapping[str, str] = {
    "path": "use a name that the person wrote or a step brought, or a new name in an open folder",
    "url": "use an address that the person wrote or a step brought",
    "recipient": "use an address that the person wrote or a step brought",
    **dict.fromkeys([*_NARROWING, "person", "span", "command"], "use what the person wrote"),
}


def _own_values(name: str, raw: Mapping[str, Any], value: Any) -> Iterator[Any]:
    """The single values that the model wrote itself; what came by reference is grounded by it."""
    written = raw.get(name)
    if written is None or (isinstance(written, str) and _refers(written)):
        return
    if not isinstance(value, list):
        yield value
        return
    pairs = written if isinstance(written, list) and len(written) == len(value) else value
    for one, resolved in zip(pairs, value, strict=True):
        if not _refers(one):
            yield resolved


def _refers(value: Any) -> bool:
    try:
        return any(True for _ in references_in(value))
    except CallRefused:
        return False


def _is_grounded(value: Any, kind: str, name: str, manifest: Manifest, ground: Ground) -> bool:
    match kind:
        case "path":
            is_item = name in {*manifest.vector, *PIPES.values()}
            return not manifest.is_mutating or _path(str(value), ground, is_item=is_item)
        case "url":
            return _url(str(value), ground)
        case "recipient":
            return ground.names(str(value))
        case "person" | "span":
            return _all_words(str(value), ground)
        case "number" | "size" | "duration":
            return not _must_be_said(manifest, ground) or _number(value, kind, ground)
        case "datetime" | "window":
            return not _must_be_said(manifest, ground) or any(map(speaks_of_time, ground.folded))
        case "place":
            return not _must_be_said(manifest, ground) or _place(str(value), ground)
    return True


def _must_be_said(manifest: Manifest, ground: Ground) -> bool:
    """Once something was seen, how far to look on is the model's to choose; changes never are."""
    return manifest.is_mutating or ground.first


# -- paths ----------------------------------------------------------------------------------------


def _path(path: str, ground: Ground, *, is_item: bool) -> bool:
    """What a change acts on must be named. Where it goes may be a root, a folder that is known,
    or a new name in one of them: only what exists can be overwritten."""
    if _is_named(path, ground):
        return True
    if is_item:
        return not ground.exists(path)  # the executor will say that it is not there
    if path in ground.roots:
        return True
    if ground.exists(path):
        return _holds_known(path, ground)
    folder = posixpath.dirname(path)
    return folder in ground.roots or _is_named(folder, ground) or _holds_known(folder, ground)


def _is_named(path: str, ground: Ground) -> bool:
    name = posixpath.basename(path.rstrip("/"))
    stem = name.rsplit(".", 1)[0] if "." in name[1:] else name
    if ground.names(name) or path.casefold() in ground.leaves:
        return True
    return len(stem) >= 3 and _all_words(stem, ground)


def _holds_known(folder: str, ground: Ground) -> bool:
    """Whether something known lies directly in this folder."""
    inside = re.compile(rf"{re.escape(folder.casefold().rstrip('/'))}/[^/]+")
    return any(inside.fullmatch(leaf) for leaf in ground.leaves)


def _all_words(text: str, ground: Ground) -> bool:
    """Whether every word of a name was said, in whatever number or gender."""
    words = [w for w in _WORD.findall(fold(text)) if len(w) > 2 or w.isdigit()]
    return bool(words) and all(_was_said(word, ground.words) for word in words)


def _was_said(word: str, said: frozenset[str]) -> bool:
    if word in said:
        return True
    return len(word) >= 4 and any(
        other[:-1] == word[:-1] or other == word[:-1] or other[:-1] == word
        for other in said
        if len(other) >= 4
    )


# -- addresses ------------------------------------------------------------------------------------


def _url(url: str, ground: Ground) -> bool:
    """An address that was written or found as it is, or any of a site that the person named or a
    step brought. Whether one that was composed may be opened is for consent to ask."""
    if any(stands_in(url, text) for text in ground.said):
        return True
    wanted = _bare(url)
    texts = [*(text.casefold() for text in ground.said), *ground.leaves]
    host = (urlsplit(url).hostname or "").removeprefix("www.")
    for text in texts:
        if host in text and any(_bare(m[0]) == wanted for m in _ADDRESS.finditer(text)):
            return True
    return _is_named_host(host, ground) or _is_seen_host(host, ground)


def _bare(url: str) -> str:
    bare = re.sub(r"^https?://", "", url.casefold().strip()).removeprefix("www.")
    return bare.split("#", 1)[0].rstrip(".,;:!?/")


def _is_named_host(host: str, ground: Ground) -> bool:
    labels = host.split(".")
    if any(re.search(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", s) for s in _without_www(ground)):
        return True
    names = labels[:-1]
    if not names or labels[-1].isdigit() or ":" in host:
        return False
    main = names[-2] if len(names) > 1 and len(names[-1]) <= 3 else names[-1]
    return (len(main) >= 3 and main in ground.words) or all(n in ground.words for n in names)


def _is_seen_host(host: str, ground: Ground) -> bool:
    """Whether a step brought an address of this very site."""
    return any(
        re.split(r"[/?#:]", _bare(m[0]), maxsplit=1)[0] == host
        for leaf in ground.leaves
        if host and host in leaf
        for m in _ADDRESS.finditer(leaf)
        if leaf[m.start() - 1 : m.start()] != "@"
    )


def _without_www(ground: Ground) -> list[str]:
    return [text.replace("www.", "") for text in ground.folded]


# -- amounts and places ---------------------------------------------------------------------------


def _number(value: Any, kind: str, ground: Ground) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return True
    if any(is_vague(text) or speaks_of_time(text) for text in ground.folded):
        return True
    said = {number for text in ground.folded for number in numbers_in(text)}
    return any(abs(value - n * f) <= abs(value) * 1e-3 for n in said for f in _FACTORS[kind])


def _place(value: str, ground: Ground) -> bool:
    """Where the person is, or a place that was named: by this word, or by any, since a town has
    many names and the tool knows them better."""
    if value == ground.zone:
        return True
    parts = [w for w in _WORD.findall(fold(value)) if len(w) >= 3]
    if any(_was_said(part, ground.words) for part in parts):
        return True
    return any(names_a_place(text) for text in ground.folded)
