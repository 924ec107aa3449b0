"""Reading and comparing values of entries: numbers, sizes, dates, words, and their order.

Entries come from anywhere, so nothing here trusts a type and nothing raises on an odd one.
Numbers are exact (`Decimal`). `1.234` is read as the column around it is written, else as the
person's language writes it.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from decimal import Decimal, InvalidOperation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

MISSING = object()
MAX_EXACT = 2**53
_TEXT_LIMIT = 10_000
_NUMBER_LIMIT = 60

_CURRENCY = r"(?:€|\$|£|¥|EUR|USD|GBP|CHF|JPY|euro|dollari)"
_UNITS = {
    "byte": 1, "bytes": 1, "b": 1, "k": 10**3, "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_NUMBER = re.compile(
    rf"""(?P<open>\()? \s* (?P<sign>[+\-−])? \s* (?:{_CURRENCY})? \s* (?P<sign2>[+\-−])? \s*
    (?P<digits> \d[\d.,'’\s]* | [.,]\d+ ) (?P<exponent>[eE][+\-]?\d{{1,3}})?
    \s* (?:{_CURRENCY} | % | (?P<unit>[kKMGT]i?[bB]|k|[bB]ytes?|B))? \s* (?P<close>\))?""",
    re.VERBOSE | re.IGNORECASE,
)
_GROUPED = re.compile(r"\d{1,3}(?:[ '’]\d{3})+(?:[.,]\d+)?")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+\-]\d\d:?\d\d)?)?"
)
_SLASHED = re.compile(r"(\d{1,2})[/.](\d{1,2})[/.](\d{4})")


# -- words ------------------------------------------------------------------------------------


def fold(text: str) -> str:
    """Lower case without accents, blanks made one: for comparing words."""
    plain = unicodedata.normalize("NFKD", text[:_TEXT_LIMIT].casefold())
    return " ".join("".join(c for c in plain if not unicodedata.combining(c)).split())


def as_text(value: Any) -> str:
    """A single value as words; objects and lists as the words in them."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return " ".join(as_text(inner) for key, inner in value.items() if key != "blob")
    if isinstance(value, list):
        return " ".join(as_text(inner) for inner in value)
    return "" if value is None or value is MISSING else str(value)


# -- numbers ----------------------------------------------------------------------------------


def decimal_comma(values: Iterable[Any], *, lang: str) -> bool:
    """Whether numbers written in this column have a decimal comma.

    Decided by the texts that can be read in one way only (`1.234,56`, `12,5`, `1,234.56`); when
    none can or they disagree, by the language.
    """
    comma = point = 0
    for value in values:
        if not isinstance(value, str) or len(value) > _NUMBER_LIMIT:
            continue
        match = _NUMBER.fullmatch(value.strip())
        said = _separator(match["digits"]) if match else None
        comma += said == ","
        point += said == "."
    return comma > point if comma != point else lang == "it"


def _separator(digits: str) -> str | None:
    """The decimal separator of a written number, None when it could be either or there is none."""
    last_comma, last_point = digits.rfind(","), digits.rfind(".")
    if last_comma >= 0 and last_point >= 0:
        return "," if last_comma > last_point else "."
    for mark, place in ((",", last_comma), (".", last_point)):
        if place < 0:
            continue
        if digits.count(mark) > 1:
            return "." if mark == "," else ","
        after = len(digits) - place - 1
        whole = digits[:place]
        return None if after == 3 and whole not in {"", "0"} and len(whole) <= 3 else mark
    return None


def number(value: Any, *, comma: bool = False) -> Decimal | None:
    """A number, or a text that is nothing but one: `1.234,56 €`, `(12.50)`, `10 MB`, `15 %`.

    Sizes come out in bytes, percentages as written. None for what is no number, for booleans and
    for not-a-number. `comma` decides what one separator before three digits means.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, float):
        # repr is the shortest text of this float: 0.1 is meant, not 0.1000000000000000055.
        found = Decimal(repr(value))
        return found if found.is_finite() else None
    if not isinstance(value, str) or len(value) > _NUMBER_LIMIT:
        return None
    match = _NUMBER.fullmatch(value.strip())
    if match is None or bool(match["open"]) != bool(match["close"]):
        return None
    if match["sign"] and match["sign2"]:
        return None
    plain = _plain_digits(match["digits"].strip(), comma=comma)
    if plain is None:
        return None
    try:
        amount = Decimal(plain + (match["exponent"] or ""))
    except InvalidOperation:
        return None
    if match["unit"]:
        amount *= _UNITS[match["unit"].lower()]
    negative = (
        match["open"]
        or "-" in (sign := (match["sign"] or "") + (match["sign2"] or ""))
        or "−" in sign
    )
    return -amount if negative else amount


def _plain_digits(digits: str, *, comma: bool) -> str | None:
    """`1.234,56` → `1234.56`. None when the separators do not stand as in a number."""
    if re.search(r"[\s'’]", digits):
        tidy = re.sub(r"\s", " ", digits)
        if _GROUPED.fullmatch(tidy) is None:
            return None
        digits = re.sub(r"[ '’]", "", tidy)
    mark = _separator(digits)
    if mark is None:
        mark = "," if comma else "."
    grouping = "." if mark == "," else ","
    whole, _, fraction = digits.partition(mark)
    groups = whole.split(grouping)
    if len(groups) > 1 and not (
        1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
    ):
        return None
    if not fraction.isdecimal() and fraction:
        return None
    return f"{''.join(groups) or '0'}.{fraction or '0'}"


def json_number(amount: Decimal) -> int | float | str:
    """A number as JSON holds it without loss: whole, else a float, else its text."""
    if not amount.is_finite():
        return str(amount)
    if amount == amount.to_integral_value():
        return int(amount) if abs(amount) <= MAX_EXACT else format(amount, "f")
    near = float(amount)
    return near if Decimal(repr(near)) == amount else format(amount.normalize(), "f")


# -- dates ------------------------------------------------------------------------------------


def moment(value: Any, *, tz: dt.tzinfo) -> dt.datetime | None:
    """A date or time in ISO 8601 (or day/month/year), aware, in UTC; a date is its midnight."""
    if not isinstance(value, str) or not 8 <= len(value) <= 40:
        return None
    text = value.strip()
    slashed = _SLASHED.fullmatch(text)
    if slashed:
        text = f"{slashed[3]}-{slashed[2]:0>2}-{slashed[1]:0>2}"
    if not _DATE.fullmatch(text):
        return None
    try:
        found = dt.datetime.fromisoformat(text)
        found = found if found.tzinfo else found.replace(tzinfo=tz)
        # Comparing reaches outside the calendar at its two ends: such dates are words.
        return found.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def is_bare_date(value: Any) -> bool:
    """Whether a text names a whole day."""
    return isinstance(value, str) and ":" not in value


# -- order ------------------------------------------------------------------------------------


class Column:
    """One field of all entries, and how its values are to be read and ordered.

    A column is of numbers when every text in it is one, of dates likewise, else of words.
    """

    def __init__(self, values: Sequence[Any], *, lang: str, tz: dt.tzinfo) -> None:
        self.comma = decimal_comma(values, lang=lang)
        self.tz = tz
        texts = [value for value in values if isinstance(value, str) and value]
        self.numeric = all(number(text, comma=self.comma) is not None for text in texts)
        self.dated = bool(texts) and all(moment(text, tz=tz) is not None for text in texts)

    def key(self, value: Any) -> tuple[int, Any]:
        """A sort key: false and true, numbers, dates, words, then the rest by its words."""
        if isinstance(value, bool):
            return (0, Decimal(int(value)))
        if self.dated and isinstance(value, str):
            found = moment(value, tz=self.tz)
            if found is not None:
                return (2, found)
        if self.numeric or not isinstance(value, str):
            amount = number(value, comma=self.comma)
            if amount is not None:
                return (1, amount)
        return (3 if isinstance(value, str) else 4, fold(as_text(value)))
