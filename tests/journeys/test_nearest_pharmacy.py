"""Flow 17: the nearest pharmacy, from a place that is sent, typed, or kept to oneself."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.executors.json_server import Gone, JsonServer, json_server
from tests.executors.photon_server import PhotonServer, photon_server
from tests.executors.test_places_chain import KEY, google
from tests.journeys.stage import HOST, Stage, open_stage, ways
from tests.support.scripted_model import Ask, Rule

REQUEST = {
    "it": "trova la farmacia più vicina, caso {}",
    "en": "find the nearest pharmacy, case {}",
}
PROMPT = {"it": "Dove sei?", "en": "Where are you?"}
CANCEL = {"it": "lascia stare", "en": "never mind"}
DROPPED = {"it": "lascio stare", "en": "leave it"}
TOO_LATE = {"it": "in tempo", "en": "in time"}
FAILED = "(niente|nothing)"
WISH = "(farmacia|pharmacy)"


def _where(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
    lang = "it" if "farmacia" in ask.user else "en"
    return [("request_location_from_user", {"prompt": PROMPT[lang]})]


def _near(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
    word = "farmacia" if "farmacia" in ask.user else "pharmacy"
    return [("find_places", {"queries": [word], "near": "{{step1.lat}},{{step1.lon}}"})]


def _told(ask: Ask) -> str:
    found = [e for e in json.loads(ask.last_result).get("entries") or () if e.get("ok")]
    return str(found[0]["name"]) if found else "niente, nothing"


RULES = [
    Rule(user=WISH, after=0, calls=_where),
    Rule(user=WISH, after=1, calls=_near),
    Rule(user=WISH, text=_told),
]


@pytest.fixture(scope="module")
def photon() -> Iterator[PhotonServer]:
    with photon_server() as server:
        yield server


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, photon: PhotonServer) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("flow17")
    with open_stage(folder, RULES, METNOS_PHOTON_URL=photon.endpoint) as stage:
        yield stage


@pytest.fixture(autouse=True)
def working(photon: PhotonServer) -> Iterator[None]:
    yield
    photon.broken = None


def _asked(stage: Stage, lang: str, name: str) -> str:
    stage.speak(lang)
    request = REQUEST[lang].format(name)
    asked = stage.ask(HOST, request, PROMPT[lang])
    [[button], *_] = asked["markup"]["keyboard"]
    assert button["request_location"] is True
    return request


def _keyboard(stage: Stage) -> Any:
    return stage.telegram.tg.chats[stage.telegram.names[HOST]]["keyboard"]


@ways("it quiet", "en quiet", "it killed")
def test_pharmacy_is_found_from_the_place_that_the_button_sends(
    stage: Stage, lang: str, killed: bool
) -> None:
    request = _asked(stage, lang, f"button {killed}")
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "^📍", lat=44.6, lon=10.9)

    stage.hear(HOST, "Farmacia Centrale")
    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["awaiting", "answer"]
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["done"]
    assert _keyboard(stage) is None


@ways("it quiet", "en killed")
def test_place_that_is_refused_ends_the_turn_and_takes_the_keyboard_away(
    stage: Stage, photon: PhotonServer, lang: str, killed: bool
) -> None:
    request, seen = _asked(stage, lang, f"refused {killed}"), len(photon.seen)
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "^✖️")

    stage.hear(HOST, DROPPED[lang], kind="send")
    lines = stage.ended(request, 2)
    assert lines[1]["error_class"] == "cancelled"
    assert len(photon.seen) == seen
    assert _keyboard(stage) is None


@ways("it killed", "en killed")
def test_place_that_does_not_come_in_time_is_told(
    stage: Stage, photon: PhotonServer, lang: str, killed: bool
) -> None:
    request, seen = _asked(stage, lang, f"late {killed}"), len(photon.seen)
    if killed:
        stage.telegram.stop_bot(kill=True)
    stage.let_expire()
    if killed:
        stage.telegram.start_bot()

    stage.hear(HOST, TOO_LATE[lang], kind="send")
    stage.telegram.location(HOST, 44.6, 10.9)

    lines = stage.ended(request, 2)
    assert lines[1]["error_class"] == "question_expired"
    stage.settle()
    assert len(photon.seen) == seen
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["expired"]


@ways("it quiet", "en killed")
def test_provider_that_fails_is_told_and_the_next_request_finds(
    stage: Stage, photon: PhotonServer, lang: str, killed: bool
) -> None:
    request = _asked(stage, lang, f"failing {killed}")
    photon.broken = (503, b"")
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "^📍", lat=44.6, lon=10.9)

    stage.hear(HOST, FAILED)
    [step] = [s for s in stage.ended(request, 2)[1]["steps"] if s["tool"] == "find_places"]
    assert (step["ok"], step["error_class"]) == (False, "http_status")
    photon.broken = None
    _asked(stage, lang, f"mended {killed}")
    stage.telegram.press(HOST, "^📍", lat=44.6, lon=10.9)
    stage.hear(HOST, "Farmacia Centrale")
    stage.settle()


def _account(stage: Stage, *words: str, key: str = "") -> None:
    subprocess.run(
        [sys.executable, "-m", "bot", "accounts", *words],
        env={**stage.env, **stage.telegram.bot_env()}, cwd=stage.tmp, input=key,
        text=True, check=True, timeout=120, capture_output=True,
    )  # fmt: skip


@pytest.fixture
def maps(stage: Stage) -> Iterator[JsonServer]:
    """Google Places, with a key of the host's."""
    with json_server(google) as server:
        url = f"url={server.endpoint}"
        _account(stage, "add", "places", "mappe", "--secret-stdin", "--set", url, key=KEY)
        yield server
        _account(stage, "remove", "mappe")


@ways("it quiet")
def test_provider_that_fails_first_leaves_the_pharmacy_to_the_next(
    stage: Stage, photon: PhotonServer, maps: JsonServer, lang: str, killed: bool
) -> None:
    request = _asked(stage, lang, f"chain {killed}")
    maps.broken = Gone(503)
    if killed:
        stage.crash()
    stage.telegram.press(HOST, "^📍", lat=44.6, lon=10.9)
    stage.hear(HOST, "Farmacia Centrale")
    [step] = [s for s in stage.ended(request, 2)[1]["steps"] if s["tool"] == "find_places"]
    assert step["ok"] is True
    assert len(maps.seen) == 1

    maps.broken, asked = None, len(photon.seen)
    _asked(stage, lang, f"chain mended {killed}")
    stage.telegram.press(HOST, "^📍", lat=44.6, lon=10.9)
    stage.hear(HOST, "Vicina")
    assert len(photon.seen) == asked


@ways("it quiet", "en killed")
def test_pharmacy_is_found_from_an_address_that_is_typed_and_chosen(
    stage: Stage, lang: str, killed: bool
) -> None:
    request = _asked(stage, lang, f"typed {killed}")
    stage.telegram.press(HOST, "^✏️")
    stage.hear(HOST, "45.07")
    if killed:
        stage.crash()

    stage.telegram.say(HOST, "via Nessuna 999")
    stage.hear(HOST, "45.07")
    stage.ask(HOST, "Via Doppia 1", buttons=["Borgo", "Altrove"])
    if killed:
        stage.crash()
    stage.telegram.press(HOST, "Borgo")

    stage.hear(HOST, "Farmacia Lontana")
    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["awaiting", "answer"]
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["done"]
    assert _keyboard(stage) is None
