"""Counts, sums and averages over entries, whole or by groups; exact, says what it skipped."""

from __future__ import annotations

from decimal import Context, Decimal
from zoneinfo import ZoneInfo

from executors._sdk import fields, result, values
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from executors._sdk.call import Call

_OPS = ("count", "sum", "avg", "min", "max", "median")
_BYTES = frozenset({"size", "bytes"})
_MAX_GROUPS = 1000
# Wide enough that adding ten thousand amounts loses no cent.
_EXACT = Context(prec=60)
_ROUNDED = Context(prec=15)


def run(call: Call) -> dict[str, Any]:
    """`content`: value, op, key, n (values used), skipped (entries without a usable one).

    The value also stands under the name of the operation, with `_bytes`, `_date` or `_day` behind
    it, for the answer's sake. With `by`, `groups` holds group, value and n, greatest first; groups
    that came in are computed over each by itself.
    """
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    entries, grouped = _ungrouped(entries)
    op, key = str(call.args["op"]), call.args.get("key") or ""
    if op not in _OPS:
        raise Failure("invalid_args", f"op is one of: {', '.join(_OPS)}")
    if not key and op != "count":
        raise Failure("invalid_args", f"{op} needs `key`, the field to compute over")
    by = call.args.get("by") or grouped
    key, by = (field and fields.known_field(str(field), entries) for field in (key, by))
    column = values.Column(
        [fields.lookup(entry, key) for entry in entries], lang=call.lang, tz=ZoneInfo(call.tz)
    )
    content = _computed(entries, op, key, column)
    if entries and not content["n"] and op != "count":
        raise Failure("not_numeric", f"nothing to compute with in {key!r}", field=key)
    if by:
        content["groups"] = _groups(entries, op, key, by, column)
    # Nothing came in: an empty list beside the content makes the answer say so.
    return result.done(None if entries else [], content, count=content["n"], total=len(entries))


def _ungrouped(entries: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """The entries that groups are made of, each under its group's name, and the field of that;
    entries that are no groups as they are."""
    if not entries or not all(
        isinstance(entry.get("items"), list) and "group" in entry for entry in entries
    ):
        return entries, ""
    return [
        {**fields.as_entry(item), "group": entry["group"]}
        for entry in entries
        for item in entry["items"]
    ], "group"


def _computed(
    entries: Sequence[Mapping[str, Any]], op: str, key: str, column: values.Column
) -> dict[str, Any]:
    found = [(fields.lookup(entry, key) if key else True, entry) for entry in entries]
    used = [(value, entry) for value, entry in found if not fields.is_missing(value)]
    content: dict[str, Any] = {"value": None, "op": op, "key": key}
    if op == "count":
        content["value"] = len(used)
    else:
        amounts = [
            (values.number(value, comma=column.comma), value, entry) for value, entry in used
        ]
        numeric = [
            (amount, value, entry) for amount, value, entry in amounts if amount is not None
        ]
        if op in {"min", "max"} and not numeric:
            content.update(_extreme(used, op, column))
        else:
            used = [(value, entry) for _, value, entry in numeric]
            content["value"] = _number([amount for amount, _, _ in numeric], op)
            if op in {"min", "max"} and numeric:
                choose = min if op == "min" else max
                content["label"] = fields.label_of(choose(numeric, key=lambda row: row[0])[2])
    content["n"] = len(used)
    content["skipped"] = len(entries) - len(used)
    if content["skipped"]:
        content["without"] = content["skipped"]  # an answer speaks of it only when there are some
    if content["value"] is not None:
        content[_named(op, key, content["value"], column)] = content["value"]
    return content


def _named(op: str, key: str, value: Any, column: values.Column) -> str:
    if op == "count":
        return "counted"
    if isinstance(value, str) and column.dated:
        return f"{op}_{'day' if values.is_bare_date(value) else 'date'}"
    return f"{op}_bytes" if key.rsplit(".", 1)[-1] in _BYTES else op


def _number(amounts: list[Decimal], op: str) -> int | float | str | None:
    """The result over exact numbers; None when there are none, but nothing sums to 0."""
    if op == "sum":
        total = Decimal(0)
        for amount in amounts:
            total = _EXACT.add(total, amount)
        return values.json_number(total)
    if not amounts:
        return None
    if op == "avg":
        total = Decimal(0)
        for amount in amounts:
            total = _EXACT.add(total, amount)
        return values.json_number(_ROUNDED.divide(total, Decimal(len(amounts))))
    ordered = sorted(amounts)
    if op in {"min", "max"}:
        return values.json_number(ordered[0 if op == "min" else -1])
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return values.json_number(ordered[middle])
    pair = _EXACT.add(ordered[middle - 1], ordered[middle])
    return values.json_number(_EXACT.divide(pair, Decimal(2)))


def _extreme(
    used: Sequence[tuple[Any, Mapping[str, Any]]], op: str, column: values.Column
) -> dict[str, Any]:
    """The first or last of dates or words, as it is written, and the entry that holds it."""
    if not used:
        return {}
    choose = min if op == "min" else max
    value, entry = choose(used, key=lambda pair: column.key(pair[0]))
    return {"value": values.as_text(value)[:500], "label": fields.label_of(entry)}


def _groups(
    entries: Sequence[Mapping[str, Any]], op: str, key: str, by: str, column: values.Column
) -> list[dict[str, Any]]:
    parts: dict[str, list[Mapping[str, Any]]] = {}
    names: dict[str, str] = {}
    for entry in entries:
        value = fields.lookup(entry, by)
        name = "" if fields.is_missing(value) else values.as_text(value)[:200]
        parts.setdefault(values.fold(name), []).append(entry)
        names.setdefault(values.fold(name), name)
    if len(parts) > _MAX_GROUPS:
        raise Failure("too_large", f"{by!r} makes {len(parts)} groups, more than {_MAX_GROUPS}")
    sized = op != "count" and key.rsplit(".", 1)[-1] in _BYTES
    groups = []
    for folded, members in parts.items():
        content = _computed(members, op, key, column)
        group = {"group": names[folded] or "—", "value": content["value"], "n": content["n"]}
        groups.append({**group, "bytes": group["value"]} if sized else group)
    filled = [group for group in groups if group["value"] is not None]
    order = values.Column([group["value"] for group in filled], lang="en", tz=column.tz)
    filled.sort(key=lambda group: order.key(group["value"]), reverse=op != "min")
    return filled + [group for group in groups if group["value"] is None]
