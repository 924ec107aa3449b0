"""Keeps the entries that meet conditions: field, comparison, value; or words found anywhere."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo

from executors._sdk import fields, result, values
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from executors._sdk.call import Call

    Test = Callable[[Mapping[str, Any]], bool]

_OPS = ("eq", "ne", "contains", "not_contains", "gt", "ge", "lt", "le", "matches", "exists", "in")
_MAX_CONDITIONS = 20
_MAX_PATTERN = 200
_TRUE = frozenset({"true", "si", "yes", "vero", "1"})
_FALSE = frozenset({"false", "no", "falso", "0"})


def run(call: Call) -> dict[str, Any]:
    """The entries that meet all conditions (`any`: at least one), whole and in their order."""
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    tests = [_test(condition, entries, call) for condition in _conditions(call.args.get("where"))]
    join = any if call.args.get("any") else all
    kept = [entry for entry in entries if join(test(entry) for test in tests)]
    # A single one is named in the answer, whatever its fields are called.
    named = {"label": fields.label_of(kept[0])} if len(kept) == 1 else {}
    return result.done([{**entry, "ok": True} for entry in kept], total=len(entries), **named)


def _conditions(where: Any) -> list[Any]:
    conditions = where if isinstance(where, list) else [where]
    if not conditions or any(condition in ("", None, {}) for condition in conditions):
        raise Failure("invalid_args", "`where` is empty: give words, or {field, op, value}")
    if len(conditions) > _MAX_CONDITIONS:
        raise Failure("invalid_args", f"at most {_MAX_CONDITIONS} conditions")
    return conditions


def _test(condition: Any, entries: Sequence[Mapping[str, Any]], call: Call) -> Test:
    """One condition as a function of an entry. Raises `Failure` when it cannot mean anything."""
    if not isinstance(condition, dict):
        condition = {"value": condition}
    field, op = str(condition.get("field") or ""), str(condition.get("op") or "")
    wanted = condition.get("value")
    if not field:
        words = values.fold(values.as_text(wanted))
        return lambda entry: words in values.fold(_words_of(entry))
    op = op or "eq"
    if op not in _OPS:
        raise Failure("invalid_args", f"no op {op!r}; there are: {', '.join(_OPS)}")
    if op != "exists":
        field = fields.known_field(field, entries)
    if field == "ext" and isinstance(wanted, str):
        # Written ".pdf" as often as "pdf".
        wanted = wanted.strip().removeprefix(".")
    column = [fields.lookup(entry, field) for entry in entries]
    holds = _Reading(column, call).operator(op, wanted)
    return lambda entry: holds(fields.lookup(entry, field))


def _words_of(entry: Mapping[str, Any]) -> str:
    return values.as_text({key: value for key, value in entry.items() if key != "ok"})


class _Reading:
    """How the values of one field are read and compared with what is wanted."""

    def __init__(self, column: Sequence[Any], call: Call) -> None:
        self.tz = ZoneInfo(call.tz)
        self.comma = values.decimal_comma(column, lang=call.lang)
        # What is wanted is written as the person writes, not as the column is.
        self.wanted_comma = call.lang == "it"

    def operator(self, op: str, wanted: Any) -> Callable[[Any], bool]:
        """The test of one value."""
        match op:
            case "eq":
                return lambda value: self.same(value, wanted)
            case "ne":
                return lambda value: not self.same(value, wanted)
            case "contains":
                return lambda value: self.holds(value, wanted)
            case "not_contains":
                return lambda value: not self.holds(value, wanted)
            case "gt":
                return lambda value: self.order(value, wanted) == 1
            case "ge":
                return lambda value: self.order(value, wanted) in {0, 1}
            case "lt":
                return lambda value: self.order(value, wanted) == -1
            case "le":
                return lambda value: self.order(value, wanted) in {-1, 0}
            case "matches":
                pattern = _pattern(wanted)
                return lambda value: pattern.search(values.as_text(value)[:10_000]) is not None
            case "exists":
                asked = _truth(wanted) is not False
                return lambda value: fields.is_missing(value) is not asked
        # "pdf, docx" is how people write a list.
        many = wanted if isinstance(wanted, list) else values.as_text(wanted).split(",")
        return lambda value: any(self.same(value, each) for each in many)

    def same(self, value: Any, wanted: Any) -> bool:
        """Equal as numbers, moments, truths or folded words; nothing equals only nothing."""
        if fields.is_missing(value) or fields.is_missing(wanted):
            return fields.is_missing(value) and fields.is_missing(wanted)
        if isinstance(value, bool) or isinstance(wanted, bool):
            return _truth(value) is not None and _truth(value) is _truth(wanted)
        if isinstance(value, list) and not isinstance(wanted, list):
            return any(self.same(inner, wanted) for inner in value)
        if values.fold(values.as_text(value)) == values.fold(values.as_text(wanted)):
            return True
        return self.order(value, wanted) == 0

    def holds(self, value: Any, wanted: Any) -> bool:
        words = values.fold(values.as_text(wanted))
        return bool(words) and words in values.fold(values.as_text(value))

    def order(self, value: Any, wanted: Any) -> int | None:
        """-1, 0 or 1 as the value is below, at or above the wanted one; None: not to be compared.

        Against a bare date whole days are compared, so that "until the 30th" holds the 30th.
        """
        if fields.is_missing(value) or isinstance(value, bool):
            return None
        amount = values.number(value, comma=self.comma)
        limit = values.number(wanted, comma=self.wanted_comma)
        if amount is not None and limit is not None:
            return (amount > limit) - (amount < limit)
        then, until = (values.moment(each, tz=self.tz) for each in (value, wanted))
        if then is not None and until is not None:
            if values.is_bare_date(wanted):
                day, last = then.astimezone(self.tz).date(), until.astimezone(self.tz).date()
                return (day > last) - (day < last)
            return (then > until) - (then < until)
        if isinstance(value, str) and isinstance(wanted, str) and amount is limit is None:
            left, right = values.fold(value), values.fold(wanted)
            return (left > right) - (left < right)
        return None


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = values.fold(values.as_text(value))
    return True if word in _TRUE else False if word in _FALSE else None


def _pattern(wanted: Any) -> re.Pattern[str]:
    text = values.as_text(wanted)
    if not text or len(text) > _MAX_PATTERN:
        raise Failure("invalid_args", f"a regular expression of 1-{_MAX_PATTERN} characters")
    try:
        return re.compile(text, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as exc:
        raise Failure("invalid_args", f"no regular expression: {exc}") from exc
