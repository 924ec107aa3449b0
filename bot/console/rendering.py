"""Pages as HTML: templates that escape everything, and values in the visitor's language."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from base64 import b64encode
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from core.clock import Clock
from core.i18n import Texts

_HERE = Path(__file__).parent
_FIELD, _ASIDE = re.compile(r"\{[a-z_]+\}"), re.compile(r"\s*\(\{[a-z_]+\}\)")
_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))


@dataclass(frozen=True, slots=True)
class Words:
    """Texts and values in one language and on one clock."""

    texts: Texts
    lang: str
    tz: str
    clock: Clock

    def t(self, key: str, **params: Any) -> str:
        return self.texts.say(key, self.lang, **params)

    def has(self, key: str) -> bool:
        return self.texts.has(key, self.lang)

    def fault(self, code: str) -> str:
        """What went wrong, for a code of ours, without the values that were not kept with it; ""
        for a code that is not ours."""
        key = f"error.{code}"
        text = self.t(key) if self.has(key) else ""
        return _FIELD.sub("…", _ASIDE.sub("", text))

    def number(self, value: float) -> str:
        return self.texts.number(value, self.lang)

    def percent(self, share: float) -> str:
        """0.66 → `66 %`."""
        return f"{self.number(round(100 * share))} %"

    def money(self, amount: float) -> str:
        """Two decimals, four below a cent; euro, which prices are set in."""
        digits = 4 if 0 < abs(amount) < 0.01 else 2
        whole, _, part = f"{abs(amount):.{digits}f}".partition(".")
        mark = "," if self.number(0.5)[1] == "," else "."
        sign = "-" if amount < 0 else ""
        return f"{sign}{self.number(int(whole))}{mark}{part} €"

    def bytes(self, count: float) -> str:
        return self.texts.bytes(count, self.lang)

    def when(self, moment: dt.datetime | None) -> str:
        """`30 novembre, 10:42`, today's only by the time; a dash for never."""
        if moment is None:
            return "—"
        time = self.time(moment)
        return time if self._is_today(moment) else f"{self.day(moment)}, {time}"

    def time(self, moment: dt.datetime) -> str:
        return self.texts.time(moment, self.lang, self.tz)

    def day(self, moment: dt.date) -> str:
        return self.texts.day(moment, self.lang, self.tz)

    def iso(self, moment: dt.datetime) -> str:
        """For the `datetime` attribute of `<time>`."""
        return moment.isoformat(timespec="seconds")

    def ago(self, moment: dt.datetime | None) -> str:
        """`3 ore fa`; a dash for never."""
        if moment is None:
            return "—"
        seconds = max(0.0, (self.clock.now() - moment).total_seconds())
        return self.t("console.ago", span=self.span(seconds))

    def span(self, seconds: float) -> str:
        """A length of time in its largest unit: `6 giorni`, `12 s`, `340 ms`."""
        if seconds < 1:
            return self.t("console.milliseconds", count=round(1000 * seconds))
        if seconds < 10:
            return self.t("console.seconds", value=round(seconds, 1))
        for size, unit in _UNITS:
            if seconds >= size:
                return self.t(f"telegram.span.{unit}", count=int(seconds // size))
        return self.t("telegram.span.second", count=int(seconds))

    def _is_today(self, moment: dt.datetime) -> bool:
        from zoneinfo import ZoneInfo

        zone = ZoneInfo(self.tz)
        return moment.astimezone(zone).date() == self.clock.now().astimezone(zone).date()


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates. What is missing in a template is an error, what is shown is escaped."""
    found = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.globals["style"] = stylesheet()
    found.filters["pretty"] = _pretty
    return found


def _pretty(value: Any) -> str:
    """Data of plans and observations, as it is read best."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


@dataclass(frozen=True, slots=True)
class Style:
    """The one stylesheet. `name` changes with its content; `source` is its hash for a policy that
    lets it stand inside a page, which pages without a session do: nothing else is served there."""

    text: str
    name: str
    source: str


@lru_cache(maxsize=1)
def stylesheet() -> Style:
    # No "<" stands in it, so that it means the same inside a page.
    text = (_HERE / "static" / "console.css").read_text(encoding="utf-8")
    if "<" in text:
        raise ValueError("the stylesheet cannot stand inside a page")
    digest = hashlib.sha256(text.encode()).digest()
    return Style(
        text, f"console-{digest.hex()[:12]}.css", f"'sha256-{b64encode(digest).decode()}'"
    )


def render(template: str, words: Words, **data: Any) -> str:
    return environment().get_template(template).render(t=words.t, w=words, **data)
