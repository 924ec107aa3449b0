"""Where a person is: a point with its age and accuracy, and whether a text speaks of "here".

Pure. Positions come from phones, from typed addresses and from channels: nothing is believed
before it was read by `read_position`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from core.answer_shapes import fold

MOST_LABEL = 200
# What Telegram promises of a shared place; beyond it an accuracy says nothing.
MOST_ACCURACY_M = 1500.0

_BESIDE = r"\s+(?:a|ad|al|allo|alla|ai|agli|alle|all)\b(?!\s+(?:me|noi|qui|qua)\b)"
_HERE = re.compile(
    rf"""(?x) \b(?:
      vicin[oaie]\s+a\s+(?:me|noi|qui) | accanto\s+a\s+me | (?:intorno|attorno)\s+a\s+(?:me|noi)
    | (?:qui|qua)\s+(?:vicino|intorno|attorno|accanto|in\s+zona) | nei\s+(?:dintorni|paraggi)
    | in\s+zona(?!\s+\w) | da\s+(?:queste\s+parti|qui) | dove\s+(?:sono|mi\s+trovo)
    | la\s+mia\s+posizione | piu\s+vicin[oaie]\b(?!{_BESIDE})
    | (?:near|around|close\s+to|next\s+to|closest\s+to|nearest\s+to)\s+(?:me|us|here)
    | (?:near|round|around)\s+here | around\s+me | nearby | close\s+by
    | where\s+(?:am\s+i|i\s+am) | my\s+(?:current\s+)?location
    | (?:nearest|closest)\b(?!.*\bto\b(?!\s+(?:me|us|here)\b))
    )(?!\w)"""
)

_WHERE = re.compile(
    r"""(?x) ^\W* (?: (?:mi\s+)?(?:sai\s+(?:dire|dirmi)|dici|dimmi|dirmi|puoi\s+dirmi)\s+
      | (?:can\s+you\s+)?tell\s+me\s+ | do\s+you\s+know\s+ )?
    (?: dove\s+(?:sono|mi\s+trovo|siamo|ci\s+troviamo)
    | in\s+(?:che|quale)\s+(?:via|strada|piazza|posto|zona|citta|paese|quartiere|indirizzo)
      \s+(?:sono|mi\s+trovo|siamo|ci\s+troviamo)
    | (?:qual\s+e\s+)?(?:la\s+mia\s+posizione|il\s+mio\s+indirizzo\s+attuale)
    | where\s+(?:am\s+i|i\s+am|are\s+we|we\s+are)
    | (?:what(?:\s+is|\s*s|s)?\s+)?my\s+(?:(?:current|exact)\s+)?(?:location|position)
    | (?:what(?:\s+is|\s*s|s)?\s+)?the\s+address\s+(?:here|where\s+i(?:\s*m|\s+am)(?:\s+standing)?)
    | (?:what|which)\s+(?:street|road|town|city|place|address)\s+am\s+i\s*(?:in|on|at)?
    ) (?:\s+(?:adesso|ora|attuale|esattamente|di\s+preciso|now|right\s+now|exactly))* \W*$"""
)


class Source(StrEnum):
    """How a position became known: shared once, moving along, a named place, a typed address."""

    SHARED = "shared"
    LIVE = "live"
    VENUE = "venue"
    TYPED = "typed"


@dataclass(frozen=True, slots=True)
class Position:
    """A point in degrees, `at` the moment when somebody was there. `accuracy_m` None: not told.
    `label` names it, "" when it has no name."""

    lat: float
    lon: float
    at: datetime
    accuracy_m: float | None = None
    source: Source = Source.SHARED
    label: str = ""

    @property
    def coords(self) -> str:
        """`45.4642,9.19`: to a tenth of a metre."""
        return f"{_short(self.lat)},{_short(self.lon)}"

    def age_s(self, now: datetime) -> int:
        """Whole seconds since then, never below 0: clocks differ."""
        return max(0, int((now - self.at).total_seconds()))


def read_position(
    data: Mapping[str, Any], *, at: datetime, source: Source = Source.SHARED, label: str = ""
) -> Position | None:
    """The position that `lat`, `lon` and perhaps `accuracy` tell; None when they are no point of
    the earth. An accuracy that says nothing is left out."""
    lat, lon = _number(data.get("lat")), _number(data.get("lon"))
    if lat is None or lon is None or not (-90 <= lat <= 90 and -180 <= lon <= 180):
        return None
    accuracy = _number(data.get("accuracy"))
    if accuracy is not None and not 0 < accuracy <= MOST_ACCURACY_M:
        accuracy = None
    text = " ".join("".join(c if c.isprintable() else " " for c in label).split())
    return Position(lat, lon, at, accuracy, source, text[:MOST_LABEL])


def speaks_of_here(text: str) -> bool:
    """Whether a request is about the surroundings of whoever makes it: `near me`, `la farmacia
    più vicina`, `where am I`. Not when it says nearest to what."""
    return _HERE.search(fold(text).replace("'", " ")) is not None


def asks_where(text: str) -> bool:
    """Whether a request asks where the person is, and nothing else: `where am I?`, `in che via
    sono?`."""
    return _WHERE.search(fold(text).replace("'", " ")) is not None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def _short(degrees: float) -> str:
    # Adding 0.0 makes -0.0 a plain zero.
    return f"{round(degrees, 6) + 0.0:.6f}".rstrip("0").rstrip(".")
