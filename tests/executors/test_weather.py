"""get_weather against a server of Open-Meteo's shape on loopback, in the cage and out of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation, Provenance
from executors._sdk import json_http, weather_words
from tests.executors.file_cases import run
from tests.executors.json_server import FAULTS, Asked, Gone, JsonServer, json_server
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")
DAYS = ["2026-03-18", "2026-03-19", "2026-03-20", "2026-03-21", "2026-03-22"]
DAILY: dict[str, list[Any]] = {
    "weather_code": [61, 0, 95, 71, 3],
    "temperature_2m_min": [8.2, -0.4, 5, -3.6, 1],
    "temperature_2m_max": [14.6, 12.5, 5.4, 0.2, None],
    "precipitation_probability_max": [80, 0, 45, 60, None],
    "precipitation_sum": [6.4, 0, 2.5, 12, None],
    "wind_speed_10m_max": [24.1, 9.7, 30, 41.2, None],
}


def town(
    name: str, latitude: float, longitude: float, country: str, admin1: str
) -> dict[str, Any]:
    at = {"latitude": latitude, "longitude": longitude}
    return {"id": 1, "name": name, **at, "country": country, "admin1": admin1}


TOWNS = [
    town("Lecce", 40.35, 18.17, "Italia", "Puglia"),
    town("Oban", 56.41, -5.47, "Regno Unito", "Scozia"),
    town("Borgo", 44.6, 10.9, "Italia", "Emilia"),
    town("Borgo", 42.5, 9.4, "Francia", "Corsica"),
]


def open_meteo(asked: Asked) -> Any:
    if asked.path == "/v1/search":
        found = [t for t in TOWNS if t["name"].casefold() == asked.query["name"].casefold()]
        return (
            {"results": found, "generationtime_ms": 0.5} if found else {"generationtime_ms": 0.5}
        )
    assert asked.path == "/v1/forecast"
    if not -90 <= float(asked.query["latitude"]) <= 90:
        return Gone(400, b'{"error": true, "reason": "Latitude must be in range of -90 to 90"}')
    wanted = int(asked.query["forecast_days"])
    asked_for = asked.query["daily"].split(",")
    daily = {name: DAILY[name][:wanted] for name in asked_for}
    return {
        "latitude": float(asked.query["latitude"]),
        "longitude": float(asked.query["longitude"]),
        "utc_offset_seconds": 3600,
        "timezone": "Europe/Rome",
        "current": {"time": "2026-03-18T10:00", "temperature_2m": 11.4, "weather_code": 2},
        "daily": {"time": DAYS[:wanted], **daily},
    }


@pytest.fixture(scope="module")
def running() -> Iterator[JsonServer]:
    with json_server(open_meteo) as server:
        yield server


@pytest.fixture
def server(running: JsonServer) -> Iterator[JsonServer]:
    running.seen.clear()
    yield running
    running.broken, running.answer = None, open_meteo


def services(server: JsonServer) -> dict[str, str]:
    return {"weather": server.endpoint, "weather_places": server.endpoint}


def looked(server: JsonServer, **about: Any) -> dict[str, Any]:
    args = about.pop("args", {"place": "Lecce"})
    return run("get_weather", args, services=services(server), **about)


def said(seen: Observation, lang: str) -> str:
    manifest = parse_manifest(
        (TREE / "get_weather" / "manifest.toml").read_bytes(), folder="get_weather"
    )
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


@pytest.mark.parametrize(
    ("lang", "lines"),
    [
        (
            "it",
            [
                "Lecce, Puglia, Italia, ora 11 °C, parzialmente nuvoloso.",
                "• oggi: pioggia leggera, da 8 a 15 °C, pioggia al 80 %, vento fino a 24 km/h",
                "• domani: sereno, da 0 a 12 °C, pioggia al 0 %, vento fino a 10 km/h",
                "• dopodomani: temporale, 5 °C, pioggia al 45 %, vento fino a 30 km/h",
                "• sabato 21: neve leggera, da -4 a 0 °C, pioggia al 60 %, vento fino a 41 km/h",
                "• domenica 22: coperto, 1 °C",
            ],
        ),
        (
            "en",
            [
                "Lecce, Puglia, Italia, now 11 °C, partly cloudy.",
                "• today: light rain, 8 to 15 °C, rain 80 %, wind up to 24 km/h",
                "• tomorrow: clear sky, 0 to 12 °C, rain 0 %, wind up to 10 km/h",
                "• the day after tomorrow: thunderstorm, 5 °C, rain 45 %, wind up to 30 km/h",
                "• Saturday 21: light snow, -4 to 0 °C, rain 60 %, wind up to 41 km/h",
                "• Sunday 22: overcast, 1 °C",
            ],
        ),
    ],
)
async def test_weather_of_a_town_is_told_day_by_day(
    server: JsonServer, lang: str, lines: list[str]
) -> None:
    seen = await observe(
        TREE / "get_weather",
        {"place": "Lecce", "days": 5},
        lang=lang,
        private_hosts=(server.grant,),
        services=services(server),
    )

    assert said(seen, lang).splitlines() == lines
    assert seen.provenance is Provenance.EXTERNAL
    place, forecast = server.seen
    assert (place.query["name"], place.query["language"]) == ("Lecce", lang)
    assert (forecast.query["latitude"], forecast.query["forecast_days"]) == ("40.35", "5")
    assert forecast.query["timezone"] == "auto"


@pytest.mark.parametrize(("lang", "label"), [("it", "qui"), ("en", "here")])
@pytest.mark.parametrize("args", [{}, {"place": "qui"}, {"place": "around here"}])
def test_weather_without_a_place_is_that_where_the_person_is(
    server: JsonServer, lang: str, label: str, args: dict[str, Any]
) -> None:
    position = {"lat": 44.6, "lon": 10.9, "label": ""}
    where = {"about": "open", "position": position}

    seen = looked(server, args=args, lang=lang, whereabouts=where)

    assert seen["metadata"]["place"] == label
    assert [asked.path for asked in server.seen] == ["/v1/forecast"]
    named = {**where, "position": {**position, "label": "Via Prima 1"}}
    assert looked(server, args=args, whereabouts=named)["metadata"]["place"] == "Via Prima 1"


def test_weather_asks_nobody_while_the_place_of_the_person_is_not_known(
    server: JsonServer,
) -> None:
    seen = looked(server, args={"days": 1}, whereabouts={"about": "open"})

    assert seen["error"]["code"] == "needs_location"
    assert server.seen == []


@pytest.mark.parametrize(
    ("said", "lat"),
    [
        ("Borgo", 44.6),
        ("borgo, francia", 42.5),
        ("a Borgo, Corsica", 42.5),
        ("Rione Nuovo, Lecce", 40.35),
        ("in Lecce", 40.35),
        ("56.41,-5.47", 56.41),
    ],
)
def test_weather_place_is_the_one_that_was_meant(
    server: JsonServer, said: str, lat: float
) -> None:
    assert looked(server, args={"place": said})["metadata"]["lat"] == lat


def test_weather_of_a_place_that_is_not_known_says_which(server: JsonServer) -> None:
    seen = looked(server, args={"place": "Atlantide"})

    assert (seen["error"]["code"], seen["error"]["params"]) == (
        "unknown_place",
        {"place": "Atlantide"},
    )


@pytest.mark.parametrize(
    ("tz", "args", "unit"),
    [
        ("Europe/Rome", {}, None),
        ("Europe/London", {}, None),
        ("America/Toronto", {}, None),
        ("America/New_York", {}, "fahrenheit"),
        ("America/Indiana/Knox", {}, "fahrenheit"),
        ("America/New_York", {"units": "metric"}, None),
        ("Europe/Rome", {"units": "imperial"}, "fahrenheit"),
    ],
)
def test_weather_is_told_in_the_units_of_the_person(
    server: JsonServer, tz: str, args: dict[str, Any], unit: str | None
) -> None:
    seen = looked(server, args={"place": "Oban", **args}, tz=tz, lang="en")

    assert server.seen[-1].query.get("temperature_unit") == unit
    mark = "°F" if unit else "°C"
    assert seen["entries"][0]["temperature"].endswith(mark)
    assert seen["entries"][0]["wind"].endswith("mph" if unit else "km/h")


def test_weather_today_is_the_day_at_the_place(server: JsonServer) -> None:
    seen = looked(server, now="2026-03-18T23:30:00+00:00")

    assert [entry["day"] for entry in seen["entries"]] == ["mercoledì 18", "oggi", "domani"]


def test_weather_of_more_days_than_are_told_says_so(server: JsonServer) -> None:
    seen = looked(server, args={"place": "Lecce", "days": 9})

    about = seen["metadata"]
    assert (about["truncated"], about["used"], about["available"]) == (True, 5, 9)


@pytest.mark.parametrize("broken", FAULTS)
@pytest.mark.parametrize("place", ["Lecce", "40.35, 18.17"])
def test_weather_that_nobody_tells_is_a_failure(
    server: JsonServer, broken: str, place: str
) -> None:
    server.broken, code = FAULTS[broken]

    seen = looked(server, args={"place": place})

    assert (seen["ok"], seen["error"]["code"]) == (False, code)
    assert seen["error"]["params"]["host"] == "localhost"


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"daily": []},
        {"daily": {"time": "today"}},
        {"daily": {"time": []}},
        {"daily": {"time": ["2026-03-18"], "weather_code": "sun"}},
        {"daily": {"time": ["soon", None, 7], "weather_code": [1, 2, 3]}},
        {"daily": {"time": ["2026-03-18"], "temperature_2m_max": [True]}},
        {"daily": {"time": ["2026-03-18"]}, "utc_offset_seconds": 1e300, "current": "warm"},
    ],
)
def test_weather_that_tells_nothing_is_no_weather(server: JsonServer, told: Any) -> None:
    server.answer = lambda asked: told

    seen = looked(server, args={"place": "40.35, 18.17"})

    assert (seen["ok"], seen["error"]["code"]) == (False, "bad_answer")


def test_weather_half_told_tells_what_is_known(server: JsonServer) -> None:
    daily = {"time": [*DAYS], "weather_code": [1234, 61], "temperature_2m_max": [None, 20, "x"]}
    server.answer = lambda asked: {"daily": daily, "current": {"weather_code": 0}}

    seen = looked(server, args={"place": "40.35, 18.17"})

    assert [entry["date"] for entry in seen["entries"]] == DAYS[:2]
    assert "conditions" not in seen["entries"][0]
    assert seen["entries"][1]["temperature"] == "20 °C"
    assert seen["metadata"]["now"] == "sereno"


def test_weather_server_that_is_silent_is_not_waited_for(
    server: JsonServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executors.get_weather.main._TIMEOUT_S", 0.3)
    server.broken = Gone(hangs=True)

    assert looked(server)["error"]["code"] == "timeout"


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_weather_that_is_switched_off_is_said(server: JsonServer, lang: str) -> None:
    off = {"weather": "", "weather_places": ""}

    seen = await observe(TREE / "get_weather", {"place": "Lecce"}, lang=lang, services=off)

    assert seen.error is not None
    assert seen.error.code == "service_off"
    assert "METNOS_WEATHER_URL" in said(seen, lang)


async def test_weather_without_a_network_says_that_it_could_not_connect(
    server: JsonServer,
) -> None:
    closed = services(server)
    with json_server(open_meteo) as gone:
        closed = services(gone)
        grant = gone.grant

    seen = await observe(
        TREE / "get_weather", {"place": "Lecce"}, private_hosts=(grant,), services=closed
    )

    assert seen.error is not None
    assert seen.error.code == "network"
    assert said(seen, "it") == "Non sono riuscito a collegarmi (localhost)."


def test_weather_codes_have_words_in_both_languages() -> None:
    for code in range(100):
        words = [weather_words.conditions(code, lang) for lang in ("it", "en")]
        assert bool(words[0]) == bool(words[1])
    assert weather_words.conditions(1000, "it") == ""


def test_words_of_strangers_stay_on_one_line() -> None:
    assert json_http.text("a\nb\x1b[0m\u202ec" + "x" * 500, 9) == "a b [0m c"
    assert json_http.text(True) == json_http.text(None) == json_http.text({}) == ""
    assert json_http.number(float("nan")) is None
