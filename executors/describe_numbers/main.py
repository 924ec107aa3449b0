"""What a list of numbers is like: how many, sum, mean, middle, extremes, spread."""

from __future__ import annotations

import statistics
from decimal import Decimal, localcontext

from executors._sdk import fields, values
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from executors._sdk.call import Call

_MOST_FIELDS = 20
# A field of which so many values are numbers is one of numbers.
_SHARE = 0.8
_PRECISE = 60


def run(call: Call) -> dict[str, Any]:
    """One entry per field (one for bare `values`): `field`, `n`, `sum`, `mean`, `median`, `min`,
    `max`, `q1`, `q3`, `stdev` (of a sample; none of a single number), `skipped`.

    Without `fields` every field whose values are numbers, or nearly all of them.
    Raises `Failure`: not_numeric, unknown_field.
    """
    given = call.args.get("values")
    if given is not None:
        columns: dict[str, list[Any]] = {"": list(given)} if given else {}
    else:
        entries = [fields.as_entry(entry) for entry in call.args.get("entries") or ()]
        entries = [entry for entry in entries if entry.get("ok") is not False]
        columns = _columns(call, entries) if entries else {}
    return done([_described(name, column, call.lang) for name, column in columns.items()])


def _columns(call: Call, entries: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    asked = [str(name) for name in call.args.get("fields") or ()]
    if asked:
        known = [fields.known_field(name, entries) for name in asked]
        return {name: [fields.lookup(e, name) for e in entries] for name in known}
    found: dict[str, list[Any]] = {}
    for name in fields.field_names(entries, most=200):
        column = [fields.lookup(entry, name) for entry in entries]
        there = [value for value in column if not fields.is_missing(value)]
        comma = values.decimal_comma(there, lang=call.lang)
        numbers = [value for value in there if values.number(value, comma=comma) is not None]
        if there and len(numbers) >= _SHARE * len(there):
            found[name] = column
        if len(found) == _MOST_FIELDS:
            break
    if not found:
        names = ", ".join(fields.field_names(entries))
        raise Failure("not_numeric", f"no field holds numbers; there are: {names}", field=names)
    return found


def _described(name: str, column: Sequence[Any], lang: str) -> dict[str, Any]:
    there = [value for value in column if not fields.is_missing(value)]
    comma = values.decimal_comma(there, lang=lang)
    found = [values.number(value, comma=comma) for value in there]
    numbers = sorted(amount for amount in found if amount is not None)
    if not numbers:
        raise Failure("not_numeric", f"nothing to compute with in {name!r}", field=name)
    entry: dict[str, Any] = {"ok": True, **({"field": name} if name else {})}
    with localcontext() as context:
        context.prec = _PRECISE
        total = sum(numbers, Decimal(0))
        several = len(numbers) > 1
        first, middle, third = (
            statistics.quantiles(numbers, n=4, method="inclusive") if several else numbers * 3
        )
        entry |= {
            "n": len(numbers),
            "sum": _rounded(total),
            "mean": _rounded(total / len(numbers)),
            "median": _rounded(middle),
            "min": _rounded(numbers[0]),
            "max": _rounded(numbers[-1]),
            "q1": _rounded(first),
            "q3": _rounded(third),
        }
        if several:
            entry["stdev"] = _rounded(statistics.stdev(numbers))
    if skipped := len(column) - len(numbers):
        entry["skipped"] = skipped
    return entry


def _rounded(amount: Decimal) -> int | float | str:
    """At most twelve digits behind the point: what is beyond comes of dividing."""
    if amount.adjusted() > _PRECISE - 15:
        return values.json_number(amount)
    return values.json_number(round(amount, 12).normalize())
