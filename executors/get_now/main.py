"""The date and time, here or in a place: by IANA zone, town, country, abbreviation or offset.

Towns stand in `cities.json` beside this file (made by `tests/support/make_cities.py`). It and the
modules that only a place needs are loaded when one is named: the bare time is asked most often.
"""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from executors._sdk import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_WEEKDAYS = {
    "it": ("lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
_HERE = frozenset({"", "qui", "here", "local", "locale", "ora locale", "local time"})
_OFFSET = r"(?:UTC|GMT)?\s*([+\-−])\s*(\d{1,2})(?::?([0-5]\d))?"
_LEADING = (
    r"(?:time in|ora (?:di|a|in)|a|ad|al|alle|in|at|to|di|the|nel|nella|negli|the city of|city of|"
    r"citta di) (.+)"
)
_TRAILING = r"(.+) (?:standard time|time|ora|city)"


def run(call: Call) -> dict[str, Any]:
    """One entry: the moment in the person's zone, or in that of the place asked for.

    `place` is a town ("in" can stand before it), `label` any other name of the zone asked for.
    """
    asked = str(call.args.get("timezone") or "").strip()
    if asked.casefold() in _HERE:
        return _entry(call, _zone(call.tz) or dt.UTC, call.tz)
    named = _by_offset(asked) or _by_key(asked, call.lang) or _by_name(asked, call.lang)
    return _entry(call, *named)


def fold(text: str) -> str:
    """Lower case, no accents, anything but letters and digits a single blank."""
    import unicodedata

    flat = unicodedata.normalize("NFKD", text.casefold())
    kept = (c if c.isalnum() else " " for c in flat if not unicodedata.combining(c))
    return " ".join("".join(kept).split())


def _entry(
    call: Call, zone: dt.tzinfo, name: str, place: str = "", label: str = ""
) -> dict[str, Any]:
    local = call.now.astimezone(zone).replace(microsecond=0)
    offset = local.strftime("%z")
    days = _WEEKDAYS.get(call.lang, _WEEKDAYS["en"])
    fields = {
        "timezone": name,
        "iso": local.isoformat(),
        "date": local.date().isoformat(),
        "time": local.strftime("%H:%M"),
        "weekday": days[local.weekday()],
        "utc_offset": f"{offset[:3]}:{offset[3:5]}",
    }
    named = {key: text for key, text in (("place", place), ("label", label)) if text}
    return result.done([result.item(**fields, **named)])


def _by_offset(asked: str) -> tuple[dt.tzinfo, str, str, str] | None:
    """`UTC+2`, `GMT -3:30`, `+05:30`: plain offsets from UTC, up to 14 hours."""
    import re

    match = re.fullmatch(_OFFSET, asked, re.IGNORECASE)
    if match is None:
        return None
    span = dt.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
    if span > dt.timedelta(hours=14):
        return None
    sign = "+" if match[1] == "+" else "-"
    name = f"UTC{sign}{int(match[2])}" + (f":{match[3]}" if int(match[3] or 0) else "")
    return dt.timezone(span if sign == "+" else -span), name, "", name


def _by_key(asked: str, lang: str) -> tuple[dt.tzinfo, str, str, str] | None:
    """An IANA name in any case, also with blanks: `asia/tokyo`, `America/new york`."""
    import re

    if "/" not in asked or not re.fullmatch(r"[A-Za-z0-9_+\-/ ]{3,64}", asked):
        return None
    words = re.split(r"([/_\-])", asked.replace(" ", "_"))
    key = "".join(word.capitalize() for word in words)
    for name in (asked, key, key.replace("_Of_", "_of_").replace("_Es_", "_es_")):
        zone = _zone(name)
        if zone is None:
            continue
        book = _book()
        place = book["places"][book["names"].get(fold(name.rsplit("/", 1)[1]), 0)]
        return (zone, name, *_shown(place, lang)) if place[0] == name else (zone, name, "", name)
    return None


def _by_name(asked: str, lang: str) -> tuple[dt.tzinfo, str, str, str]:
    import re

    book, spellings = _book(), _spellings(asked)
    for name in spellings:
        index = book["names"].get(name)
        if index is not None:
            place = book["places"][index]
            return ZoneInfo(place[0]), place[0], *_shown(place, lang)
    if not set(spellings).isdisjoint(book["many"]):
        detail = "this country has several time zones: name a city"
        raise result.Failure("unknown_place", detail, place=asked[:80])
    # EST5EDT, PRC, MET: old names of zones.
    zone = _zone(asked) if re.fullmatch(r"[A-Z][A-Z0-9]{1,8}", asked) else None
    if zone is not None:
        return zone, asked, "", asked
    raise result.Failure("unknown_place", _advice(asked, book["names"]), place=asked[:80])


def _shown(place: list[Any], lang: str) -> tuple[str, str]:
    """What to call a row of `places`: (town, "") or ("", label)."""
    shown = place[1] if lang == "it" else place[2]
    return ("", shown) if len(place) > 3 else (shown, "")


def _spellings(asked: str) -> list[str]:
    """The folded name, its parts before commas and brackets, all without "in the" and "time"."""
    import re

    whole = fold(asked)
    found = [whole]
    for part in (*re.split(r"[,(/]", asked), whole):
        name = fold(part)
        while name:
            found.append(name)
            match = re.fullmatch(_LEADING, name) or re.fullmatch(_TRAILING, name)
            name = match[1] if match else ""
    return [name for name in dict.fromkeys(found) if name]


def _advice(asked: str, names: dict[str, int]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(fold(asked)[:40], names, n=1, cutoff=0.84)
    hint = f"did you mean {near[0].title()}? " if near else ""
    return f"{hint}name a larger city nearby, or a zone such as Asia/Tokyo"


def _book() -> dict[str, Any]:
    import json

    # Through the loader, because what runs are verified bytes and no file at a path. `pkgutil`
    # would do the same and cost more than the rest of the call.
    loader: Any = globals()["__loader__"]
    folder = str(__file__).removesuffix("main.py")
    book: dict[str, Any] = json.loads(loader.get_data(f"{folder}cities.json"))
    return book


def _zone(key: str) -> ZoneInfo | None:
    try:
        return ZoneInfo(key)
    # A folder name, a key with a line break, a key that leaves the data: all unknown.
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
