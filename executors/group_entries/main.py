"""Puts entries that have one value in common together, with their number and totals."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal
from zoneinfo import ZoneInfo

from executors._sdk import fields, result, values
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from executors._sdk.call import Call

_MOST_GROUPS = 1000
_MOST_TOTALS = 8
_BYTES = ("size", "bytes")
# Numbers that number things are not added up.
_NO_AMOUNT = frozenset(
    """id uid row line year anno code codice cap zip telefono tel phone cellulare cell mobile fax
    numero number iban piva interno ext""".split()
)
_EXACT = Context(prec=60)
_SPANS = {
    "giorno": "day", "day": "day", "data": "day", "date": "day",
    "settimana": "week", "week": "week", "mese": "month", "month": "month",
    "anno": "year", "year": "year",
}  # fmt: skip
# Of several fields of moments the first of these is meant.
_MOMENTS = ("date", "start", "begins", "day", "modified", "created", "taken")
_MONTHS = {
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre "
    "dicembre",
    "en": "January February March April May June July August September October November December",
}


def run(call: Call) -> dict[str, Any]:
    """One entry per group: `group`, `count`, `items` (its entries, whole and in their order),
    `totals` by field of numbers, `bytes` where they have a size, and where only one field is of
    numbers its sum as `total` and its name as `total_of`. Largest group first, then as they came.

    Moments are grouped by their day in the person's zone, or by the week, month or year when `by`
    says so instead of a field; these groups stand in their order. Entries without the field are a
    group of their own, "—".
    """
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    by, span = _wanted(str(call.args["by"]), entries, ZoneInfo(call.tz))
    parts: dict[str, list[dict[str, Any]]] = {}
    names: dict[str, str] = {}
    for entry in entries:
        value = fields.lookup(entry, by)
        name = "" if fields.is_missing(value) else values.as_text(value)[:200]
        if span and name:
            name = _start(name, span, ZoneInfo(call.tz))
        parts.setdefault(values.fold(name), []).append(entry)
        names.setdefault(values.fold(name), name or "—")
    if len(parts) > _MOST_GROUPS:
        raise Failure("too_large", f"{by!r} makes {len(parts)} groups, more than {_MOST_GROUPS}")
    columns = _amounts(entries, by, call)
    groups = [_group(names[key], by, items, columns) for key, items in parts.items()]
    if span:
        groups.sort(key=lambda group: str(group["group"]))
        for one in groups:
            one["group"] = _in_words(one["group"], span, call.lang)
    else:
        groups.sort(key=lambda group: -int(group["count"]))
    return result.done(groups, total=len(entries), by=by)


def _wanted(said: str, entries: Sequence[Mapping[str, Any]], zone: dt.tzinfo) -> tuple[str, str]:
    """The field, and the span of time its moments are put together by ("" for no moments)."""

    def dated(name: str) -> bool:
        found = [v for v in (fields.lookup(e, name) for e in entries) if not fields.is_missing(v)]
        return bool(found) and all(values.moment(v, tz=zone) is not None for v in found)

    span = _SPANS.get(values.fold(said), "")
    try:
        by = fields.known_field(said, entries)
    except Failure:
        by = _dated_field(entries, dated) if span else ""
        if not by:
            raise
        return by, span
    if not dated(by):
        return by, ""
    # A field of whole days is as good as its own text; with an hour each would stand alone.
    return by, span or "day"


def _dated_field(entries: Sequence[Mapping[str, Any]], dated: Callable[[str], bool]) -> str:
    names = fields.field_names(entries, most=50)
    ordered = [name for name in _MOMENTS if name in names] + names
    return next((name for name in ordered if dated(name)), "")


def _start(text: str, span: str, zone: dt.tzinfo) -> str:
    """The first day of the span that a moment lies in, as far as the span says it."""
    moment = values.moment(text, tz=zone)
    if moment is None:
        return text
    day = moment.astimezone(zone).date()
    if span == "week":
        day -= dt.timedelta(days=day.weekday())
    return str(day)[: {"year": 4, "month": 7}.get(span, 10)]


def _in_words(start: str, span: str, lang: str) -> str:
    parts = start.split("-")
    if start == "—" or span == "year" or len(parts) < 2:
        return start
    lang = "en" if lang == "en" else "it"
    named = f"{_MONTHS[lang].split()[int(parts[1]) - 1]} {parts[0]}"
    if span == "month":
        return named
    whole = f"{int(parts[2])} {named}"
    week = {"it": "settimana del", "en": "week of"}[lang]
    return f"{week} {whole}" if span == "week" else whole


def _amounts(entries: Sequence[Mapping[str, Any]], by: str, call: Call) -> dict[str, bool]:
    """The fields whose every value is a number, and whether these have a decimal comma."""
    found: dict[str, bool] = {}
    for name in fields.field_names(entries, most=50):
        if name == by or not _NO_AMOUNT.isdisjoint(values.fold(name).split()):
            continue
        present = [
            v for v in (fields.lookup(e, name) for e in entries) if not fields.is_missing(v)
        ]
        if any(isinstance(value, bool) for value in present):
            continue
        column = values.Column(present, lang=call.lang, tz=ZoneInfo(call.tz))
        if present and all(values.number(v, comma=column.comma) is not None for v in present):
            found[name] = column.comma
    return dict(list(found.items())[:_MOST_TOTALS])


def _group(
    name: str, by: str, items: Sequence[dict[str, Any]], columns: Mapping[str, bool]
) -> dict[str, Any]:
    totals = {field: _sum(items, field, comma) for field, comma in columns.items()}
    group: dict[str, Any] = {"group": name, by: name, "count": len(items), "items": list(items)}
    if totals:
        group["totals"] = totals
    size = next((field for field in _BYTES if field in totals), None)
    if size is not None:
        group["bytes"] = totals[size]
    elif len(totals) == 1:
        group["total_of"], group["total"] = next(iter(totals.items()))
    return result.item(**{key: value for key, value in group.items() if key != "ok"})


def _sum(items: Sequence[Mapping[str, Any]], field: str, comma: bool) -> int | float | str:
    total = Decimal(0)
    for item in items:
        amount = values.number(fields.lookup(item, field), comma=comma)
        total = total if amount is None else _EXACT.add(total, amount)
    return values.json_number(total)
