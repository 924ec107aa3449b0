"""Whether a web address may be contacted without asking: who wrote it, and what was read before.

Pure. An address carries what stands in it to whoever owns its host, so one that a model composed
after private things were read can carry them out, whatever talked the model into it. An address
that the person wrote, or that a page gave before anything private was read, carries nothing new.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from core.catalog.manifest import Manifest
from core.observation import Effects, Observation, Provenance
from core.turn_state import StepRecord

MOST_QUERY = 256
MOST_LABEL = 40
# What opens nothing that belongs to the person; everything else that is their own is private.
_PUBLIC_RIGHTS = frozenset({"compute:pure", "network:http", "time:read", "llm:local"})


class Doubt(StrEnum):
    """Why a person must agree first."""

    AFTER_PRIVATE = "composed_after_private"
    AFTER_EXTERNAL = "composed_after_external"
    CARRIES_MUCH = "composed_and_carries_much"


def doubt_about(
    url: str,
    *,
    said: Sequence[str],
    quoted: Sequence[str] = (),
    steps: Sequence[StepRecord],
    is_private: Callable[[str], bool],
    planned_blind: bool = False,
    told_before: bool = False,
) -> Doubt | None:
    """Why this canonical address needs consent; None when it may be contacted.

    `said`: the person's own words; `quoted`: what they forward or reply to, which came before
    everything. `is_private` tells of a tool whether it reads what is the person's own.
    `planned_blind`: written before anything was read in this turn. `told_before`: words from
    outside stood in the conversation or the quotation that the turn began with; what else stood
    there may be private, so that then no more than a host may be composed.

    Free are: an address that stands in the person's words or in what they quote; one that stands
    in an external observation from before the first private one (also as a link relative to its
    page); one that stands in a file read before anything external came in and anything was
    changed; and any address of a host that the person named, while nothing private or external
    was read. After something external no more than that host itself is.
    """
    if any(stands_in(url, text) for text in (*said, *quoted)):
        return None
    private = external = changed = False
    for record in steps:
        seen = record.observation
        if seen.effects is not Effects.NONE:
            changed = True
        if not seen.ok:
            continue
        own = is_private(record.tool)
        outside = seen.provenance is Provenance.EXTERNAL
        trusted = not private if outside else own and not external and not changed
        if trusted and _holds(seen, url):
            return None
        private, external = private or own, external or outside
    if planned_blind:
        private = external = False
    if private:
        return Doubt.AFTER_PRIVATE
    host = urlsplit(url).hostname or ""
    named = any(_names_host(host, text) for text in said)
    if (external or told_before) and not (named and _is_bare(url)):
        return Doubt.AFTER_EXTERNAL
    return Doubt.CARRIES_MUCH if _carries_much(url, host) else None


def reads_private(manifest: Manifest | None) -> bool:
    """Whether a tool reads what is the person's own: files, mail, calendar. An unknown one may."""
    if manifest is None:
        return True
    return any(right.name not in _PUBLIC_RIGHTS for right in manifest.capabilities)


def stands_in(url: str, text: str) -> bool:
    """Whether a canonical address stands in a text, in any of the spellings it is canonical for:
    without `https://`, without the last slash, host in capitals or with its letters."""
    parts = urlsplit(url)
    host = parts.netloc
    lowered = text.lower()
    if not any(name in lowered for name in _spelt(host)):
        return False
    rest = url[len(f"{parts.scheme}://{host}") :]
    tail = "/?" if rest == "/" else re.escape(rest)
    for name in _spelt(host):
        begin = rf"(?i:{parts.scheme}://)" if parts.scheme == "http" else r"(?i:https://)?"
        pattern = rf"(?<![\w.@:/-]){begin}(?i:{re.escape(name)}){tail}(?![\w%=&/?#-]|[.:@]\w)"
        if re.search(pattern, text):
            return True
    return False


def _spelt(host: str) -> set[str]:
    names = {host}
    if "xn--" in host:
        with contextlib.suppress(UnicodeError):
            names.add(host.encode("ascii").decode("idna"))
    return names


def _names_host(host: str, text: str) -> bool:
    return any(
        re.search(
            rf"(?<![\w.@-])(?i:(?:www\.)?{re.escape(name.removeprefix('www.'))})(?![\w-]|\.\w)",
            text,
        )
        for name in _spelt(host)
    )


def _holds(seen: Observation, url: str) -> bool:
    """Whether an observation holds the address whole, or as a link of a page of the same host."""
    parts = urlsplit(url)
    relative = url[len(f"{parts.scheme}://{parts.netloc}") :]
    link = re.compile(rf"""(?<=["'(=\s]){re.escape(relative)}(?=["')\s])""")
    for item in _items(seen):
        pages = {urlsplit(str(item[key])).netloc for key in ("url", "final_url") if item.get(key)}
        beside = parts.netloc in pages and len(relative) > 1
        for text in _texts(item):
            if stands_in(url, text) or (beside and link.search(f" {text} ")):
                return True
    return False


def _items(seen: Observation) -> Iterator[Mapping[str, Any]]:
    for entry in seen.entries or ():
        if entry.get("ok") is not False:
            yield entry
    if seen.content is not None:
        yield seen.content if isinstance(seen.content, Mapping) else {"content": seen.content}


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value; of blobs only the view, never the packed bytes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key != "blob":
                yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)


def _is_bare(url: str) -> bool:
    parts = urlsplit(url)
    return parts.path in {"", "/"} and not parts.query


def _carries_much(url: str, host: str) -> bool:
    return len(urlsplit(url).query) > MOST_QUERY or any(
        len(label) > MOST_LABEL for label in host.split(".")
    )
