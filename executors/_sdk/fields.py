"""The fields of entries, whatever step or stranger the entries come from."""

from __future__ import annotations

from executors._sdk.result import Failure
from executors._sdk.values import MISSING, fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

# What people and models call a field that executors name otherwise.
_ALSO = {
    "size": ("bytes",), "bytes": ("size",), "dimensione": ("size", "bytes"),
    "extension": ("ext",), "estensione": ("ext",), "type": ("ext", "media_type", "kind"),
    "filename": ("name",), "file_name": ("name",), "nome": ("name",), "titolo": ("title",),
    "date": ("modified",), "data": ("date", "modified"), "mtime": ("modified",),
    "modified_at": ("modified",), "percorso": ("path",), "file": ("path", "name"),
    "data di modifica": ("modified",), "ultima modifica": ("modified",),
    "sha-256": ("sha256",), "sha 256": ("sha256",),
    **dict.fromkeys(
        ("hash", "impronta", "checksum", "digest"), ("sha256", "sha512", "sha1", "md5")
    ),
}  # fmt: skip


def as_entry(item: Any) -> dict[str, Any]:
    """An item of any list as an entry of one's own; what is no object becomes its `value`."""
    return dict(item) if isinstance(item, dict) else {"value": item}


def lookup(entry: Any, field: str) -> Any:
    """The value at a dotted path, or `MISSING`. A key that itself holds dots is found too."""
    if isinstance(entry, dict) and field in entry:
        return entry[field]
    value = entry
    for key in field.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif (
            isinstance(value, list) and key.isdecimal() and len(key) < 8 and int(key) < len(value)
        ):
            value = value[int(key)]
        else:
            return MISSING
    return value


def is_missing(value: Any) -> bool:
    return value is MISSING or value is None or value == ""


def field_names(entries: Iterable[Mapping[str, Any]], *, most: int = 20) -> list[str]:
    """The fields there are, nested ones dotted, in the order they appear; never `ok`."""
    names: dict[str, None] = {}
    for entry in entries:
        for name in _names(entry, "", 0):
            names.setdefault(name)
        if len(names) > most:
            break
    return [name for name in names if name != "ok"][:most]


def _names(value: Mapping[str, Any], prefix: str, depth: int) -> Iterator[str]:
    for key, inner in value.items():
        if isinstance(inner, dict) and inner and depth < 3:
            yield from _names(inner, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}"


def known_field(field: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """The field that is meant: as written, else in another case, else by another usual name.

    Raises `Failure(unknown_field)`, which lists what there is, when no entry has it. Without
    entries every field is as good as another.
    """
    if not entries or _has(field, entries):
        return field
    names = field_names(entries, most=200)
    meant = [name for name in names if fold(name) == fold(field)]
    meant += [name for name in _ALSO.get(fold(field), ()) if _has(name, entries)]
    if meant:
        return meant[0]
    known = ", ".join(names[:20])
    raise Failure("unknown_field", f"no {field!r}; there are: {known}", field=field, fields=known)


def _has(field: str, entries: Iterable[Mapping[str, Any]]) -> bool:
    return any(lookup(entry, field) is not MISSING for entry in entries)


def label_of(entry: Mapping[str, Any]) -> str:
    """What to call an entry in one line: its name, title, path, address, or first text."""
    for key in (
        "name",
        "title",
        "summary",
        "path",
        "subject",
        "url",
        "group",
        "value",
        "text",
    ):
        value = entry.get(key)
        if isinstance(value, (str, int, float)) and not isinstance(value, bool) and value != "":
            return str(value)[:200]
    texts = (value for value in entry.values() if isinstance(value, str) and value)
    return next(texts, "")[:200]
