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
            found[kind].append(_entry(kind, partner, keys, changes))
        for entry in entries[len(partners) :]:
            found["only_first"].append(_entry("only_first", entry, keys, []))
    for key, entries in others.items():
        for entry in entries[len(mine.get(key, [])) :]:
            found["only_second"].append(_entry("only_second", entry, keys, []))
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
    kind: str, entry: Mapping[str, Any], keys: Sequence[str], changes: list[dict[str, Any]]
) -> dict[str, Any]:
    label = " · ".join(values.as_text(fields.lookup(entry, name))[:100] for name in keys)
    more: dict[str, Any] = {"where": kind, "label": label or fields.label_of(entry)}
    if changes:
        more["changes"] = changes
        more["changed"] = "; ".join(
            f"{c['field']}: {_short(c['before'])} → {_short(c['after'])}" for c in changes[:5]
        )
    mark = {"only_first": "−", "only_second": "+", "different": "≠", "equal": "="}[kind]
    return {**entry, **more, "mark": mark, "ok": True}


def _short(value: Any) -> str:
    return values.as_text(value)[:60] or "—"
