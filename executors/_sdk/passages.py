"""Entries as short texts for a model to read. The engine asks it: nothing here does."""

from __future__ import annotations

from executors._sdk import fields, result, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

# What says nothing to a reader, or is of machines.
_SILENT = frozenset(
    {"ok", "id", "uid", "blob", "sha256", "encoding", "media_type", "truncated", "cut", "links",
     "message_id", "in_reply_to", "references", "html", "bytes", "lines", "more_chars",
     "language", "final_url"}
)  # fmt: skip
_BODIES = ("text", "body", "content", "summary", "description")
_MOST_FIELD = 400
# Characters of one passage: about a thousand tokens.
PART = 4000
MOST = 60_000


def of_entries(
    entries: Sequence[Mapping[str, Any]], *, most_each: int, most: int = MOST
) -> dict[str, Any]:
    """The passages of these entries as the result of a call: one entry per passage with `text`,
    `item` (the number of the entry, from 0) and `label`.

    Long texts become several passages of at most 4000 characters, cut where a line or sentence
    ends; of one entry `most_each` characters are taken, of all `most`. `metadata` says how many
    entries and characters are `used` of those `available`, and `truncated`.
    """
    found: list[dict[str, Any]] = []
    chars = used_items = 0
    cut = False
    for number, entry in enumerate(entries):
        head, body = _words(entry)
        whole = f"{head}\n{body}".strip()
        room = min(most_each, most - chars)
        if room <= 0:
            cut = True
            break
        text = whole[:room]
        cut = cut or len(text) < len(whole)
        label = fields.label_of(entry)[:80]
        found += [result.item(item=number, label=label, text=part) for part in _parts(text)]
        chars += len(text)
        used_items += 1
    return result.done(found, used=used_items, available=len(entries), truncated=cut, chars=chars)


def _words(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The small fields in lines, and the long text."""
    if set(entry) - {"ok"} == {"value"}:
        return "", values.as_text(entry["value"])
    name = next((n for n in _BODIES if isinstance(entry.get(n), str) and entry[n].strip()), "")
    lines = []
    for key, value in entry.items():
        if key in _SILENT or key == name or fields.is_missing(value) or value is False:
            continue
        words = " ".join(values.as_text(value).split())[:_MOST_FIELD]
        if words:
            lines.append(f"{key}: {words}")
    return "\n".join(lines), entry[name].strip() if name else ""


def _parts(text: str) -> Iterator[str]:
    while len(text) > PART:
        at = max(text.rfind("\n", PART // 2, PART), text.rfind(". ", PART // 2, PART))
        at = PART if at < 0 else at + 1
        yield text[:at]
        text = text[at:]
    if text.strip():
        yield text
