"""What two lists differ in: what only one of them has, and what both have but not alike."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from executors._sdk import fields, matching, result, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from executors._sdk.call import Call

# Where a thing lies and when it was looked at makes it no other thing.
_IDLE = frozenset({"ok", "path", "parent", "folder", "modified", "created", "row", "line", "file"})
_MOST_CHANGES = 50
# What fields of executors are called by people.
_NAMES = {
    "it": {
        "size": "dimensione", "bytes": "dimensione", "name": "nome", "title": "titolo",
        "summary": "titolo", "start": "inizio", "end": "fine", "location": "luogo",
        "text": "testo", "phone": "telefono", "org": "ditta", "ext": "tipo", "kind": "tipo",
    },
    "en": {"summary": "title", "org": "company", "ext": "type", "kind": "type"},
}  # fmt: skip
_SIZES = frozenset({"size", "bytes"})
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_ORDER = ("only_first", "only_second", "different", "equal")


def run(call: Call) -> dict[str, Any]:
    """One entry per difference: the entry whole, `where` (`only_first`, `only_second`,
    `different`), `label`, and of different ones `changes` (field, before, after) and `changed`,
    these in words. With `only` just those of one kind, `equal` among them.

    Entries are matched by `on_keys`, else by what names them; several of one key in their order.
    """
    first, second = (
        [fields.as_entry(item) for item in call.args[name]]
        for name in ("entries", "other_entries")
    )
    keys = matching.keys_of(first, second, call.args.get("on_keys"))
    mine, others = matching.by_key(first, keys), matching.by_key(second, keys)
    columns = _columns(first, second, keys, call)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in _ORDER}
    for key, entries in mine.items():
        partners = others.get(key, [])
        for entry, partner in zip(entries, partners, strict=False):
            changes = _changes(entry, partner, columns)
            kind = "different" if changes else "equal"
            found[kind].append(_entry(kind, partner, keys, changes, call.lang))
        for entry in entries[len(partners) :]:
            found["only_first"].append(_entry("only_first", entry, keys, [], call.lang))
    for key, entries in others.items():
        for entry in entries[len(mine.get(key, [])) :]:
            found["only_second"].append(_entry("only_second", entry, keys, [], call.lang))
    counts = {name: len(each) for name, each in found.items()}
    wanted = call.args.get("only")
    kinds = [wanted] if wanted else _ORDER[:3]
    shown = [entry for kind in kinds for entry in found[kind]]
    # An answer names only the parts that there are.
    said = {f"has_{name}": counts[name] for name in kinds if counts[name]}
    return result.done(shown, **counts, **said, keys=", ".join(keys))


def _columns(
    first: Sequence[Mapping[str, Any]],
    second: Sequence[Mapping[str, Any]],
    keys: Sequence[str],
    call: Call,
) -> dict[str, values.Column]:
    """The fields that both lists have, and how their values are read."""
    others = set(fields.field_names(second, most=_MOST_CHANGES))
    return {
        name: values.Column(
            [fields.lookup(entry, name) for entry in (*first, *second)],
            lang=call.lang,
            tz=ZoneInfo(call.tz),
        )
        for name in fields.field_names(first, most=_MOST_CHANGES)
        if name in others and name not in keys and name.casefold() not in _IDLE
    }


def _changes(
    before: Mapping[str, Any], after: Mapping[str, Any], columns: Mapping[str, values.Column]
) -> list[dict[str, Any]]:
    found = []
    for name, column in columns.items():
        old, new = fields.lookup(before, name), fields.lookup(after, name)
        if fields.is_missing(old) and fields.is_missing(new):
            continue
        if fields.is_missing(old) or fields.is_missing(new) or column.key(old) != column.key(new):
            old, new = (None if v is values.MISSING else v for v in (old, new))
            found.append({"field": name, "before": old, "after": new})
    return found


def _entry(
    kind: str,
    entry: Mapping[str, Any],
    keys: Sequence[str],
    changes: list[dict[str, Any]],
    lang: str,
) -> dict[str, Any]:
    label = " · ".join(values.as_text(fields.lookup(entry, name))[:100] for name in keys)
    more: dict[str, Any] = {"where": kind, "label": label or fields.label_of(entry)}
    if changes:
        more["changes"] = changes
        said = [_said(change, lang) for change in changes[:5]]
        more["changed"] = "; ".join(said) + ("; …" if len(changes) > len(said) else "")
    mark = {"only_first": "−", "only_second": "+", "different": "≠", "equal": "="}[kind]
    return {**entry, **more, "mark": mark, "ok": True}


def _said(change: Mapping[str, Any], lang: str) -> str:
    """A change in words: what people call the field, sizes with their unit."""
    field = change["field"]
    before, after = (
        _size(value, lang) if field in _SIZES else _short(value)
        for value in (change["before"], change["after"])
    )
    return f"{_NAMES.get(lang, {}).get(field, field)}: {before} → {after}"


def _size(value: Any, lang: str) -> str:
    """As the engine writes sizes: exact up to 100 kB."""
    if not isinstance(value, int) or isinstance(value, bool):
        return _short(value)
    if value < 100_000:
        return f"{value} byte" if lang == "it" or value == 1 else f"{value} bytes"
    size, unit = next(one for one in _UNITS if value >= one[0])
    amount = f"{value / size:.1f}".removesuffix(".0")
    return f"{amount.replace('.', ',') if lang == 'it' else amount} {unit}"


def _short(value: Any) -> str:
    return values.as_text(value)[:60] or "—"
