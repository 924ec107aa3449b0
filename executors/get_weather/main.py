"""The weather of the coming days, for a place that is named or where the person is."""

from __future__ import annotations

import re
from datetime import date, timedelta

from executors._sdk import json_http, place_words, result, weather_words
from executors._sdk.http import Fetcher
from executors._sdk.json_http import number, text
from executors._sdk.result import Failure
from executors._sdk.values import fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

SETTING = "METNOS_WEATHER_URL"
PUBLIC = "https://api.open-meteo.com"
USUAL_DAYS = 3
MOST_DAYS = 16
_MAX_BYTES = 1_000_000
_TIMEOUT_S = 15.0
_DAILY = {
    "weather_code": "code",
    "temperature_2m_min": "min",
    "temperature_2m_max": "max",
    "precipitation_probability_max": "rain_percent",
    "precipitation_sum": "rain",
    "wind_speed_10m_max": "wind_max",
}
_IN = re.compile(r"(?i)^(?:ad?|in|at|for|near|vicino\s+ad?)\s+(?=\S{2})")
_SPOT = re.compile(r"\s*([+-]?\d{1,2}(?:\.\d+)?)\s*[,;\s]\s*([+-]?\d{1,3}(?:\.\d+)?)\s*")


def run(call: Call) -> dict[str, Any]:
    """One entry a day from today on, at most 16: `conditions`, `min`, `max`, `rain_percent`,
    `wind_max` in the person's units, with `temperature` and `wind` as they are told.

    Metadata: `place` as it was understood, `now`, and how many days were `used` of those asked
    for. A place that does not exist fails with `unknown_place`; no place and none known of the
    person, before anybody is asked, with `needs_location`; a service that is off with
    `service_off`.
    """
    forecast = json_http.endpoint(call, "weather", SETTING)
    units = call.args.get("units")
    imperial = units == "imperial" if units else weather_words.is_imperial(call.tz)
    asked = int(call.args.get("days") or USUAL_DAYS)
    fetcher = Fetcher(call, max_bytes=_MAX_BYTES, accept="application/json")
    lat, lon, label = _where(call, fetcher)
    about: dict[str, Any] = {
        "latitude": lat,
        "longitude": lon,
        "daily": ",".join(_DAILY),
        "current": "temperature_2m,weather_code",
        "timezone": "auto",
        "forecast_days": max(1, min(asked, MOST_DAYS)),
    }
    if imperial:
        about |= {"temperature_unit": "fahrenheit", "wind_speed_unit": "mph"}
        about["precipitation_unit"] = "inch"
    told = json_http.ask(fetcher, f"{forecast}/v1/forecast", about, total_timeout_s=_TIMEOUT_S)
    entries = _days(call, told, imperial=imperial)
    if not entries:
        raise Failure("bad_answer", "the answer holds no forecast")
    more: dict[str, Any] = {"place": label, "lat": lat, "lon": lon}
    now = _now(call, told, imperial=imperial)
    if now:
        more["now"] = now
    if asked > len(entries):
        more |= {"truncated": True, "used": len(entries), "available": asked}
    if forecast == PUBLIC:
        more["source"] = "Open-Meteo.com"
    return result.done(entries, **more)


# -- where ----------------------------------------------------------------------------------------


def _where(call: Call, fetcher: Fetcher) -> tuple[float, float, str]:
    said = _IN.sub("", " ".join(str(call.args.get("place") or "").split()))
    if said and not place_words.is_here(said):
        spot = _SPOT.fullmatch(said)
        if spot is None:
            return _looked_up(call, fetcher, said)
        lat, lon = float(spot[1]), float(spot[2])
        if abs(lat) > 90 or abs(lon) > 180:
            raise Failure("invalid_args", "no such latitude or longitude")
        return lat, lon, f"{spot[1]}, {spot[2]}"
    if call.position is None:
        raise Failure("needs_location", "where the person is is not known: ask for it")
    here = "here" if call.lang == "en" else "qui"
    lat, lon = float(call.position["lat"]), float(call.position["lon"])
    return lat, lon, str(call.position.get("label") or here)


def _looked_up(call: Call, fetcher: Fetcher, said: str) -> tuple[float, float, str]:
    """The likeliest place of this name. What follows a comma chooses between several; when
    nothing has the first name, what follows is looked for: `Porta Romana, Milano`."""
    url = f"{json_http.endpoint(call, 'weather_places', SETTING)}/v1/search"
    parts = [part.strip() for part in said.split(",") if part.strip()]
    for at, name in enumerate(parts[:3]):
        asked = {"name": name[:100], "count": 10, "language": call.lang, "format": "json"}
        found = json_http.ask(fetcher, url, asked, total_timeout_s=_TIMEOUT_S).get("results")
        places = [p for p in found if _is_place(p)] if isinstance(found, list) else []
        if places:
            best = max(places, key=lambda place: _agreement(place, parts[at + 1 :]))
            return float(best["latitude"]), float(best["longitude"]), _label(best)
    raise Failure("unknown_place", "no such place: name a town", place=said[:80])


def _is_place(place: Any) -> bool:
    if not isinstance(place, dict) or not text(place.get("name")):
        return False
    lat, lon = number(place.get("latitude")), number(place.get("longitude"))
    return lat is not None and lon is not None and abs(lat) <= 90 and abs(lon) <= 180


def _agreement(place: dict[str, Any], words: list[str]) -> int:
    fields = ("country", "country_code", "admin1", "admin2", "admin3", "admin4")
    known = {fold(text(place.get(field))) for field in fields}
    return sum(fold(word) in known for word in words)


def _label(place: dict[str, Any]) -> str:
    parts = [text(place.get(field)) for field in ("name", "admin1", "country")]
    return ", ".join(part for part in dict.fromkeys(parts) if part)


# -- when -----------------------------------------------------------------------------------------


def _days(call: Call, told: dict[str, Any], *, imperial: bool) -> list[dict[str, Any]]:
    """A day without anything known of it is left out, and so is one that has no date."""
    daily = told.get("daily")
    if not isinstance(daily, dict) or not isinstance(daily.get("time"), list):
        return []
    seconds = number(told.get("utc_offset_seconds")) or 0
    today = (call.now + timedelta(seconds=max(-86_400, min(seconds, 86_400)))).date()
    entries = []
    for at, moment in enumerate(daily["time"][:MOST_DAYS]):
        try:
            day = date.fromisoformat(str(moment))
        except ValueError:
            continue
        values = {name: _value(daily.get(key), at) for key, name in _DAILY.items()}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            entries.append(_entry(call, day, today, known, imperial=imperial))
    return entries


def _value(listed: Any, at: int) -> float | None:
    return number(listed[at]) if isinstance(listed, list) and at < len(listed) else None


def _entry(
    call: Call, day: date, today: date, known: dict[str, float], *, imperial: bool
) -> dict[str, Any]:
    low, high = known.get("min"), known.get("max")
    code, speed = known.pop("code", None), known.get("wind_max")
    shown: dict[str, Any] = {
        "date": day.isoformat(),
        "day": weather_words.day_name(day, today, call.lang),
        "conditions": weather_words.conditions(code, call.lang),
        "temperature": weather_words.span(low, high, call.lang, imperial=imperial),
        **{name: int(value) if value.is_integer() else value for name, value in known.items()},
    }
    if speed is not None:
        shown["wind"] = weather_words.wind(speed, call.lang, imperial=imperial)
    return result.item(**{name: value for name, value in shown.items() if value != ""})


def _now(call: Call, told: dict[str, Any], *, imperial: bool) -> str:
    current = told.get("current")
    if not isinstance(current, dict):
        return ""
    degrees = number(current.get("temperature_2m"))
    warm = "" if degrees is None else weather_words.degrees(degrees, imperial=imperial)
    words = weather_words.conditions(number(current.get("weather_code")), call.lang)
    return ", ".join(filter(None, (warm, words)))
