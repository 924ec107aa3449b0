"""Moments as people say them, in Italian and English: `giovedì 26 marzo alle 16:30`, `at 5 pm`."""

from __future__ import annotations

import re
import unicodedata
from datetime import date, datetime, time, timedelta

from executors._sdk.windows import NoWindow, read_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import tzinfo

_BEFORE = r"(?:(?:\b(?:alle|dalle|per le|ore|at|from)|\ball'|@)\s*(?:ore\s+)?)"
_HALF = r"(?P<half>am|pm|a\.m\.?|p\.m\.?)"
_OF = (
    r"(?:\s+(?:di|del|della|in the)\s+"
    r"(?P<part>mattina|pomeriggio|sera|notte|morning|afternoon|evening))"
)
_MORE = r"(?P<more> e mezz[ao]| e un quarto)"
_HOURS = (
    rf"{_BEFORE}(?P<hour>\d{{1,2}})(?:[:.h](?P<minute>\d{{2}}))?{_MORE}?\s*{_HALF}?{_OF}?(?![\d:])",
    rf"(?<![\d/.:-])(?P<hour>\d{{1,2}})[:h](?P<minute>\d{{2}})(?::\d{{2}})?\s*{_HALF}?{_OF}?(?![\d:])",
    rf"(?<![\d/.:-])(?P<hour>\d{{1,2}})\s*{_HALF}(?!\w)",
    r"(?:\b(?:a|at)\s+)?\b(?P<noon>mezzogiorno|noon|midday)\b",
    r"(?:\b(?:a|at)\s+)?\b(?P<midnight>mezzanotte|midnight)\b",
)
_LATER = re.compile(
    r"(?:tra|fra|in)\s+(\d{1,3}|un'?|una|uno|a|an|due|two|tre|three|mezz')\s*"
    r"(minut[oi]|minutes?|min|or[ae]|hours?|h|giorn[oi]|days?)(?:\s+e\s+mezz[ao])?"
)
_WORDS = {"due": 2, "two": 2, "tre": 3, "three": 3, "mezz'": 0.5}
_WEEKDAY = (
    "lunedi|martedi|mercoledi|giovedi|venerdi|sabato|domenica|"
    "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
)
_LATE = frozenset({"pomeriggio", "sera", "afternoon", "evening"})


def read_moment(text: object, now: datetime, zone: tzinfo) -> datetime | date:
    """The moment that `text` names, aware, in `zone`; a day when no hour is said.

    What is said without a year is the next one; an hour alone that has passed is tomorrow's.
    Raises `NoWindow` for what is no moment, or a part of a day without an hour.
    """
    plain = " ".join(str(text).split())
    iso = _iso(plain, zone)
    if iso is not None:
        return iso
    said, local = _folded(plain), now.astimezone(zone)
    match = _LATER.fullmatch(said)
    if match:
        return _later(match, local)
    for pattern in _HOURS:
        match = re.search(pattern, said)
        if match:
            rest = f"{said[: match.start()]} {said[match.end() :]}"
            return _at(match.groupdict(), _tidy(rest), local, zone)
    start, end = read_window(_undated(said), now, zone, forward=True)
    if start.time() != time() or end - start < timedelta(hours=22):
        raise NoWindow("no hour is said")
    return start.date()


def _iso(text: str, zone: tzinfo) -> datetime | date | None:
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
            return date.fromisoformat(text)
        if not re.match(r"\d{4}-\d{2}-\d{2}[ tT]\d", text):
            return None
        found = datetime.fromisoformat(text.upper().replace(" ", "T", 1))
        return found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)
    except (ValueError, OverflowError):
        return None


def _later(match: re.Match[str], local: datetime) -> datetime | date:
    count = float(match[1]) if match[1].isdigit() else _WORDS.get(match[1], 1)
    if match[0].endswith(("mezza", "mezzo")):
        count += 0.5
    if match[2].startswith(("g", "d")):
        return (local + timedelta(days=count)).date()
    seconds = count * (60 if match[2].startswith("m") else 3600)
    later = datetime.fromtimestamp(local.timestamp() + seconds, local.tzinfo)
    return later.replace(second=0, microsecond=0)


def _at(found: dict[str, str | None], rest: str, local: datetime, zone: tzinfo) -> datetime:
    hour, minute = int(found.get("hour") or 0), int(found.get("minute") or 0)
    if found.get("noon"):
        hour = 12
    minute = {"e mezza": 30, "e mezzo": 30, "e un quarto": 15}.get(
        (found.get("more") or "").strip(), minute
    )
    half, part = (found.get("half") or "")[:1], found.get("part")
    if half and not 1 <= hour <= 12:
        raise NoWindow("there is no such hour")
    if half == "p" or half == "a":
        hour = hour % 12 + (12 if half == "p" else 0)
    elif part in _LATE and hour < 12:
        hour += 12
    if hour == 24 and minute == 0:
        hour = 0
    if hour > 23 or minute > 59:
        raise NoWindow("there is no such hour")
    if not rest:
        made = datetime.combine(local.date(), time(hour, minute), zone)
        later = datetime.combine(local.date() + timedelta(days=1), time(hour, minute), zone)
        return made if made > local else later
    start, _ = read_window(_undated(rest), local, zone, forward=True)
    if start.hour >= 12 and hour < 12 and not half:
        hour += 12
    return datetime.combine(start.date(), time(hour, minute), zone)


def _undated(said: str) -> str:
    """`giovedi 26 marzo` without its weekday: the date says it."""
    return re.sub(
        rf"^(?:on |il )?(?:{_WEEKDAY})\b,?\s+(?=(?:il |the )?(?:\d|[a-z]+ \d))", "", said
    )


def _tidy(rest: str) -> str:
    rest = re.sub(r"[,;]", " ", rest)
    return re.sub(r"(?:^|\s)(?:alle|ore|at|il giorno)\s*$", "", " ".join(rest.split())).strip()


def _folded(text: str) -> str:
    flat = unicodedata.normalize("NFKD", text.casefold().replace("’", "'"))
    return "".join(c for c in flat if not unicodedata.combining(c)).strip(" .!?;")
