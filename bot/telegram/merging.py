"""What several messages that belong together mean: one request. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.telegram.inbound import Heard, Said, read
from bot.telegram.joining import LATE, MORE

_LIMIT = 4096


def heard(body: Mapping[str, Any], *, bot_id: str) -> Heard:
    """What a stored row means: one update, or several that were joined. Raises `ValueError` when
    it cannot be read."""
    first = read(body.get("update") or {}, bot_id=bot_id)
    if not isinstance(first, Said):
        return first
    rest = [read(raw, bot_id=bot_id) for raw in body.get(MORE) or ()]
    return replace(_merged([first, *(r for r in rest if isinstance(r, Said))]), late=LATE in body)


def _merged(parts: Sequence[Said]) -> Said:
    """All words in their order, all files. Number and address are those of the first."""
    first = parts[0]
    if len(parts) == 1:
        # A sticker alone is a word; with others it is what they speak of.
        is_word = bool(first.inbound.text) and all(m.kind == "sticker" for m in first.media)
        return replace(first, media=()) if is_word and not first.edited else first
    media = tuple(media for part in parts for media in part.media)
    quoted = [part.inbound.quoted for part in parts if part.inbound.quoted]
    inbound = replace(
        first.inbound, text=_text(parts), quoted="\n\n".join(quoted) if quoted else None
    )
    return replace(first, inbound=inbound, media=media)


def _text(parts: Sequence[Said]) -> str:
    text, before = "", ""
    for part in parts:
        said = part.inbound.text
        if not said:
            continue
        # A piece that fills a message was cut there, be it in the middle of a word.
        full = len(before.encode("utf-16-le")) // 2 >= _LIMIT
        text += said if full or not text else f"\n{said}"
        before = said
    return text
