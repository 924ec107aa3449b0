"""Text for people: messages by key in Italian and English, and numbers, dates and sizes by locale.

Texts live in `locales/<lang>/messages.po`; keys are dotted names, plural forms choose by `count`.
No language is the original: a key missing in one is a fault that the tests catch; at run time the
other language is shown rather than nothing.
"""

from __future__ import annotations

import datetime as dt
import logging
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from babel import Locale
from babel.dates import format_date, format_skeleton, format_time
from babel.lists import format_list
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

from core.errors import TextMissing

log = logging.getLogger(__name__)

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


@lru_cache(maxsize=8)
def _locale(lang: str) -> Locale:
    # English for people outside America: 24-hour clock and day before month, as UX asks.
    return Locale.parse({"it": "it_IT", "en": "en_GB"}.get(lang, lang))


@lru_cache(maxsize=1)
def _zones() -> Mapping[str, tuple[str, ...]]:
    """Time zones by what people call them: their names, and their cities in our languages."""
    found: dict[str, set[str]] = {}
    known = available_timezones()
    for zone in sorted(known):
        if "/" in zone and not zone.startswith(("Etc/", "posix/", "right/", "SystemV/", "US/")):
            city = zone.rpartition("/")[2].replace("_", " ")
            for name in (zone, city):
                found.setdefault(_plain(name), set()).add(zone)
    for lang in ("it", "en"):
        for zone, names in _locale(lang).time_zones.items():
            if zone in known and "city" in names:
                found.setdefault(_plain(names["city"]), set()).add(zone)
    return {name: tuple(sorted(zones)) for name, zones in found.items()} | {"utc": ("UTC",)}


@lru_cache(maxsize=8)
def _messages(data: bytes, lang: str) -> tuple[Mapping[str, tuple[str, ...]], int]:
    """What a `messages.po` says, and how many plural forms it has. Kept by its bytes: each is
    read once in a process."""
    catalog = read_po(BytesIO(data), locale=lang)
    messages = {
        (m.id if isinstance(m.id, str) else m.id[0]): (
            (m.string,) if isinstance(m.string, str) else tuple(m.string)
        )
        for m in catalog
        if m.id and m.string
    }
    return MappingProxyType(messages), catalog.num_plurals


def _plain(name: str) -> str:
    folded = unicodedata.normalize("NFKD", name.casefold())
    kept = "".join(c for c in folded if not unicodedata.combining(c))
    return " ".join(kept.replace("_", " ").split())


@dataclass(frozen=True, slots=True)
class Texts:
    """All texts of all languages, loaded once. `strict` makes a missing key an error (tests)."""

    messages: Mapping[str, Mapping[str, tuple[str, ...]]]
    strict: bool = False
    _plural: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def zones_named(name: str) -> tuple[str, ...]:
        """The time zones that a person may mean: by their name, or a city's in any language of
        ours. Of the names of one clock (an old and a new one) the one that is used is given."""
        found = _zones().get(_plain(name), ())
        canonical = tuple(zone for zone in found if zone in _locale("en").time_zones)
        return canonical or found

    @classmethod
    def load(cls, root: Path, *, strict: bool = False) -> Texts:
        """Read `<root>/<lang>/messages.po` of every language there is.

        Raises `TextMissing` when there is none, since nothing could be said to anybody.
        """
        messages: dict[str, Mapping[str, tuple[str, ...]]] = {}
        plural: dict[str, Any] = {}
        for path in sorted(root.glob("*/messages.po")):
            lang = path.parent.name
            messages[lang], plural[lang] = _messages(path.read_bytes(), lang)
        if not messages:
            raise TextMissing("no locales found")
        return cls(messages, strict, plural)

    @property
    def langs(self) -> tuple[str, ...]:
        return tuple(self.messages)

    def has(self, key: str, lang: str) -> bool:
        return key in self.messages.get(lang, {})

    def say(self, key: str, lang: str, **params: Any) -> str:
        """The text of `key` in `lang`, its `{name}` fields filled from `params`.

        Numbers are written as the language writes them. `count` chooses the plural form. A key
        that is missing in `lang` is taken from another language and logged (strict: raises).
        """
        forms = self.messages.get(lang, {}).get(key)
        if forms is None:
            if self.strict:
                raise TextMissing(f"{key} has no text in {lang}")
            log.error("text missing", extra={"key": key, "lang": lang})
            others = (m[key] for m in self.messages.values() if key in m)
            forms = next(others, (key,))
        text = forms[0]
        if len(forms) > 1 and isinstance(params.get("count"), (int, float)):
            text = forms[0] if params["count"] == 1 else forms[-1]
        return self.fill(text, lang, params)

    def fill(self, text: str, lang: str, params: Mapping[str, Any]) -> str:
        """Put values into `{name}` fields. A field without a value stays as it stands."""

        def value(match: re.Match[str]) -> str:
            if match[1] not in params:
                return match[0]
            found = params[match[1]]
            if isinstance(found, bool) or not isinstance(found, (int, float)):
                return str(found)
            return self.number(found, lang)

        return _FIELD.sub(value, text)

    # -- values ---------------------------------------------------------------------------------

    def number(self, value: float, lang: str) -> str:
        """1234.5 → `1.234,5` in Italian; at most six decimals."""
        locale = _locale(lang)
        # Italian leaves four digits ungrouped in prose, but figures read better grouped.
        return str(format_decimal(value, format="#,##0.######", locale=locale))

    def bytes(self, value: float, lang: str) -> str:
        """A size: exact up to 100 kB, then in kB, MB, GB (powers of ten), one decimal."""
        count = int(value)
        if count < 100_000:
            return self.say("unit.byte", lang, count=count)
        size, unit = next((s, u) for s, u in _UNITS if count >= s)
        return f"{self.number(round(count / size, 1), lang)} {unit}"

    def date(self, moment: dt.date, lang: str, tz: str | None = None) -> str:
        """`30 novembre 2026`."""
        return str(format_date(_local(moment, tz), "d MMMM y", locale=_locale(lang)))

    def day(self, moment: dt.date, lang: str, tz: str | None = None) -> str:
        """`30 novembre`, with the year only when it is not this one."""
        local = _local(moment, tz)
        zone = local.tzinfo if isinstance(local, dt.datetime) else None
        form = "d MMMM" if local.year == dt.datetime.now(zone).year else "d MMMM y"
        return str(format_date(local, form, locale=_locale(lang)))

    def short_day(self, day: dt.date, lang: str) -> str:
        """`9 nov`: for where there is little room."""
        return format_skeleton("MMMd", day, locale=_locale(lang))

    def weekday(self, moment: dt.date, lang: str, tz: str | None = None) -> str:
        return str(format_date(_local(moment, tz), "EEEE", locale=_locale(lang)))

    def time(self, moment: dt.datetime, lang: str, tz: str | None = None) -> str:
        """`10:42`, on the clock of `tz`, or of the moment's own offset."""
        local = _local(moment, tz)
        return str(format_time(local, "HH:mm", tzinfo=local.tzinfo, locale=_locale(lang)))

    def datetime(self, moment: dt.datetime, lang: str, tz: str | None = None) -> str:
        """`lunedì 30 novembre 2026, 10:42`."""
        local = _local(moment, tz)
        day = str(format_date(local, "EEEE d MMMM y", locale=_locale(lang)))
        return f"{day}, {self.time(local, lang)}"

    def list(self, items: Sequence[str], lang: str) -> str:
        """`a, b e c`."""
        return str(format_list(list(items), locale=_locale(lang)))


def _local(moment: Any, tz: str | None) -> Any:
    if tz is None or not isinstance(moment, dt.datetime):
        return moment
    return moment.astimezone(ZoneInfo(tz))
