"""Make a text document, docx unless the name says html, md or txt, of a text in Markdown.

The text is the person's, the model's, or what earlier steps read. A file that is there already is
never touched: the new one gets a number.
"""

from __future__ import annotations

from executors._sdk import documents, making
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_NAMES = {"it": "Documento", "en": "Document"}
_MOST_CHARS = 5_000_000
_BODIES = ("content", "text", "summary", "body")
_TITLES = ("title", "name", "subject")


def run(call: Call) -> dict[str, Any]:
    """One entry: `path`, `bytes`, `words`; `wanted` when that name was taken. None when there was
    nothing to put into it."""
    text = _text(call)
    if not text.strip():
        return done([])
    spot, data = _made(call, text)
    entry = making.put(call, spot.place, [data])
    entry |= {"name": spot.place.name, "words": len(text.split())}
    if spot.wanted is not None:
        entry["wanted"] = spot.wanted.path
    return done([entry])


def preview(call: Call) -> dict[str, Any]:
    """The file that would be made, without making it."""
    text = _text(call)
    if not text.strip():
        return making.previewed([])
    spot, data = _made(call, text)
    return making.previewed([making.foreseen(call, spot.place, data)])


def _made(call: Call, text: str) -> tuple[making.Spot, bytes]:
    title = str(call.args.get("title") or "")
    default = _NAMES.get(call.lang, _NAMES["en"])
    spot = making.spot_for(call, call.args.get("path"), ext="docx", title=title, default=default)
    ext = spot.place.name.rpartition(".")[2].lower()
    if ext not in documents.MADE:
        formats = ", ".join(documents.MADE)
        raise Failure("unsupported_format", f"a document is {formats}", formats=formats)
    return spot, documents.made(text, ext, title=title, now=call.now)


def _text(call: Call) -> str:
    """The text that was given, then those of the entries, each under its name where there are
    several. Raises `Failure` too_large, missing_input."""
    content = call.args.get("content")
    parts = [content] if isinstance(content, str) and content.strip() else []
    given = call.args.get("entries") or ()
    entries = [e for e in given if isinstance(e, dict) and e.get("ok") is not False]
    for entry in entries:
        body = next((entry[k] for k in _BODIES if isinstance(entry.get(k), str)), None)
        if body is None:
            continue
        name = next((entry[k] for k in _TITLES if isinstance(entry.get(k), str)), "")
        parts.append(f"## {name}\n\n{body}" if name and len(entries) > 1 else body)
    if entries and not parts:
        raise Failure("missing_input", "what the step brought has no text")
    text = "\n\n".join(parts)
    if len(text) > _MOST_CHARS:
        raise Failure("too_large", f"a document holds {_MOST_CHARS} characters")
    return text
