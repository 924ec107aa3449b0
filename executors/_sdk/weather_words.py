"""The weather in words, Italian and English: WMO codes, days, measures in the person's units."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

# WMO 4677 as weather models use it.
_CONDITIONS = {
    0: ("sereno", "clear sky"),
    1: ("quasi sereno", "mostly clear"),
    2: ("parzialmente nuvoloso", "partly cloudy"),
    3: ("coperto", "overcast"),
    45: ("nebbia", "fog"),
    48: ("nebbia gelata", "freezing fog"),
    51: ("pioviggine leggera", "light drizzle"),
    53: ("pioviggine", "drizzle"),
    55: ("pioviggine intensa", "heavy drizzle"),
    56: ("pioviggine gelata leggera", "light freezing drizzle"),
    57: ("pioviggine gelata", "freezing drizzle"),
    61: ("pioggia leggera", "light rain"),
    63: ("pioggia", "rain"),
    65: ("pioggia forte", "heavy rain"),
    66: ("pioggia gelata leggera", "light freezing rain"),
    67: ("pioggia gelata", "freezing rain"),
    71: ("neve leggera", "light snow"),
    73: ("neve", "snow"),
    75: ("neve forte", "heavy snow"),
    77: ("nevischio", "snow grains"),
    80: ("rovesci leggeri", "light showers"),
    81: ("rovesci", "showers"),
    82: ("rovesci violenti", "violent showers"),
    85: ("rovesci di neve leggeri", "light snow showers"),
    86: ("rovesci di neve forti", "heavy snow showers"),
    95: ("temporale", "thunderstorm"),
    96: ("temporale con grandine", "thunderstorm with hail"),
    99: ("temporale con forte grandine", "thunderstorm with heavy hail"),
}
_DAYS = (
    ("lunedì", "Monday"),
    ("martedì", "Tuesday"),
    ("mercoledì", "Wednesday"),
    ("giovedì", "Thursday"),
    ("venerdì", "Friday"),
    ("sabato", "Saturday"),
    ("domenica", "Sunday"),
)
_NAMED = (("oggi", "today"), ("domani", "tomorrow"), ("dopodomani", "the day after tomorrow"))
# Where temperatures are told in Fahrenheit, as zones of time.
_US_CITIES = """
Adak Anchorage Boise Chicago Denver Detroit Juneau Los_Angeles Louisville Menominee Metlakatla
New_York Nome Phoenix Sitka Yakutat Puerto_Rico
""".split()
_US_ZONES = frozenset({*(f"America/{city}" for city in _US_CITIES), "Pacific/Honolulu"})
_US_PARTS = ("US/", "America/Indiana/", "America/Kentucky/", "America/North_Dakota/")


def is_imperial(tz: str) -> bool:
    """Whether people of this time zone speak of Fahrenheit and miles."""
    return tz in _US_ZONES or tz.startswith(_US_PARTS)


def conditions(code: float | None, lang: str) -> str:
    """`pioggia leggera`; "" for a code that is not known."""
    known = _CONDITIONS.get(int(code)) if code is not None else None
    return known[_at(lang)] if known else ""


def day_name(day: date, today: date, lang: str) -> str:
    """`oggi`, `tomorrow`, `sabato 21`."""
    ahead = (day - today).days
    if 0 <= ahead < len(_NAMED):
        return _NAMED[ahead][_at(lang)]
    return f"{_DAYS[day.weekday()][_at(lang)]} {day.day}"


def degrees(value: float, *, imperial: bool) -> str:
    """`8 °C`, to a whole degree."""
    return f"{_whole(value)} °{'F' if imperial else 'C'}"


def span(low: float | None, high: float | None, lang: str, *, imperial: bool) -> str:
    """`da 8 a 15 °C`; only one of them when the other is not known."""
    known = [value for value in (low, high) if value is not None]
    if not known:
        return ""
    last = degrees(known[-1], imperial=imperial)
    if len(known) == 1 or _whole(known[0]) == _whole(known[-1]):
        return last
    return f"da {_whole(known[0])} a {last}" if lang != "en" else f"{_whole(known[0])} to {last}"


def wind(speed: float, lang: str, *, imperial: bool) -> str:
    """`vento fino a 24 km/h`."""
    most = f"{_whole(speed)} {'mph' if imperial else 'km/h'}"
    return f"wind up to {most}" if lang == "en" else f"vento fino a {most}"


def _whole(value: float) -> str:
    return f"{round(value) + 0:d}"


def _at(lang: str) -> int:
    return 1 if lang == "en" else 0
