"""The chain of those who are asked about places: Google Places with a key, then Photon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from tests.executors.file_cases import run
from tests.executors.json_server import Asked, Gone, JsonServer, json_server
from tests.executors.photon_server import PhotonServer, photon_server
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")
KEY = "AIza-not-a-real-key"
WEEK = [
    f"{day}: 08:00–19:{n}0" for n, day in enumerate(("lun", "mar", "mer", "gio", "ven", "sab"))
]
BAD_KEY = b"""{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.",
"status": "INVALID_ARGUMENT", "details": [{"reason": "API_KEY_INVALID"}]}}"""


def place(name: str, lat: float, **more: Any) -> dict[str, Any]:
    """One place as Google writes it."""
    return {
        "displayName": {"text": name, "languageCode": "it"},
        "formattedAddress": f"Via {name}, 1, Borgo",
        "location": {"latitude": lat, "longitude": 10.9},
        "primaryType": "pharmacy",
        **more,
    }


HOURS = {"currentOpeningHours": {"openNow": True, "weekdayDescriptions": [*WEEK, "dom: Chiuso"]}}
KNOWN = [place("Lontana", 44.62), place("Vicina", 44.601, **HOURS), place("Altrove", 45.5)]


def google(asked: Asked) -> Any:
    assert (asked.method, asked.path) == ("POST", "/v1/places:searchText")
    if asked.headers.get("X-Goog-Api-Key") != KEY:
        return Gone(400, BAD_KEY)
    if not asked.headers.get("X-Goog-FieldMask"):
        return Gone(400, b'{"error": {"code": 400, "status": "INVALID_ARGUMENT"}}')
    words = asked.body["textQuery"].casefold()
    if "farmaci" in words or "pharmac" in words:
        return {"places": KNOWN}
    return {"places": [place("Borgo", 44.6)]} if words == "borgo" else {}


@pytest.fixture(scope="module")
def running() -> Iterator[tuple[JsonServer, PhotonServer]]:
    with json_server(google) as first, photon_server() as second:
        yield first, second


@pytest.fixture
def servers(
    running: tuple[JsonServer, PhotonServer],
) -> Iterator[tuple[JsonServer, PhotonServer]]:
    first, second = running
    first.seen.clear()
    second.seen.clear()
    yield running
    first.broken, first.answer, second.broken = None, google, None


def account(server: JsonServer, key: str = KEY) -> dict[str, str]:
    return {"name": "mappe", "kind": "places", "url": server.endpoint, "key": key}


def look(
    servers: tuple[JsonServer, PhotonServer], *, photon: bool = True, key: str = KEY, **more: Any
) -> dict[str, Any]:
    name = more.pop("name", "find_places")
    args = more.pop("args", {"queries": ["farmacia"], "near": "44.6, 10.9"})
    services = {"photon": servers[1].endpoint if photon else ""}
    return run(name, args, services=services, accounts=[account(servers[0], key)], **more)


def names(seen: dict[str, Any]) -> list[str]:
    return [entry["name"] for entry in seen["entries"]]


def said(seen: Observation, lang: str, name: str = "find_places") -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


async def caged(
    servers: tuple[JsonServer, PhotonServer], lang: str, key: str = KEY, query: str = "farmacia"
) -> Observation:
    return await observe(
        TREE / "find_places",
        {"queries": [query], "near": "44.6, 10.9"},
        lang=lang,
        private_hosts=(servers[0].grant, servers[1].grant),
        services={"photon": servers[1].endpoint},
        accounts=[account(servers[0], key)],
        account_hosts={"places": [servers[0].grant]},
    )


@pytest.mark.parametrize(
    ("lang", "opening"), [("it", "aperto ora, 08:00–19:20"), ("en", "open now, 08:00–19:20")]
)
async def test_places_with_a_key_are_googles_with_their_hours(
    servers: tuple[JsonServer, PhotonServer], lang: str, opening: str
) -> None:
    seen = await caged(servers, lang)

    entries = [dict(entry) for entry in seen.entries or ()]
    assert [entry["name"] for entry in entries] == ["Vicina", "Lontana"]
    assert entries[0]["opening"] == opening
    assert entries[0]["distance"] == "110 m"
    assert entries[0]["map"].startswith("https://www.openstreetmap.org/")
    assert "opening" not in entries[1]
    assert opening in said(seen, lang)
    assert servers[1].seen == []
    [asked] = servers[0].seen
    assert asked.body["languageCode"] == lang
    circle = asked.body["locationBias"]["circle"]
    assert circle["center"] == {"latitude": 44.6, "longitude": 10.9}
    assert KEY not in str(seen.to_json())


def test_places_without_a_key_are_photons(servers: tuple[JsonServer, PhotonServer]) -> None:
    args = {"queries": ["farmacia"], "near": "44.6, 10.9"}

    seen = run("find_places", args, services={"photon": servers[1].endpoint})

    assert names(seen) == ["Farmacia Centrale", "Farmacia Lontana"]
    assert servers[0].seen == []


def test_places_that_google_does_not_know_are_looked_for_by_the_next(
    servers: tuple[JsonServer, PhotonServer],
) -> None:
    seen = look(servers, args={"queries": ["ramen"], "near": "Borgo"})

    assert names(seen) == ["Ramen Sette"]
    assert "unanswered" not in seen["metadata"]
    assert servers[0].seen[0].body["textQuery"] == "Borgo"


FAILING = {
    "bad key": (Gone(400, BAD_KEY), "wrong_credentials"),
    "unauthorized": (Gone(401, b"{}"), "wrong_credentials"),
    "forbidden": (Gone(403, b'{"error": {"status": "PERMISSION_DENIED"}}'), "wrong_credentials"),
    "bad request": (Gone(400, b'{"error": {"status": "INVALID_ARGUMENT"}}'), "http_status"),
    "too many": (Gone(429, b'{"error": {"status": "RESOURCE_EXHAUSTED"}}'), "http_status"),
    "down": (Gone(503, b"busy"), "http_status"),
    "no json": (Gone(200, b"<html>"), "bad_answer"),
    "half json": (Gone(200, b'{"places": ['), "bad_answer"),
    "cut": (Gone(200, b'{"places": []}', cut=True), "network"),
    "no list": (Gone(200, b'{"places": {}}'), "bad_answer"),
    "elsewhere": (Gone(302, headers={"Location": "http://10.0.0.1/"}), "network"),
}


@pytest.mark.parametrize("broken", FAILING)
def test_places_of_the_next_are_told_when_the_first_fails_with_a_word_about_it(
    servers: tuple[JsonServer, PhotonServer], broken: str
) -> None:
    servers[0].broken, code = FAILING[broken]

    seen = look(servers)

    assert names(seen) == ["Farmacia Centrale", "Farmacia Lontana"]
    refused = code == "wrong_credentials"
    assert seen["metadata"]["unanswered"] == (
        "mappe: chiave rifiutata" if refused else "mappe: nessuna risposta"
    )


@pytest.mark.parametrize("broken", FAILING)
@pytest.mark.parametrize("photon", ["down", "off"])
def test_places_that_nobody_could_be_asked_for_are_a_failure(
    servers: tuple[JsonServer, PhotonServer], broken: str, photon: str
) -> None:
    servers[0].broken, code = FAILING[broken]
    servers[1].broken = (503, b"busy")

    seen = look(servers, photon=photon == "down")

    assert (seen["ok"], seen["error"]["code"]) == (False, code)
    if code == "wrong_credentials":
        assert seen["error"]["params"]["name"] == "mappe"


@pytest.mark.parametrize("who", ["google", "photon"])
def test_places_that_one_looked_for_in_vain_were_not_found(
    servers: tuple[JsonServer, PhotonServer], who: str
) -> None:
    if who == "google":
        servers[1].broken = (503, b"busy")
    else:
        servers[0].broken = Gone(503)

    seen = look(servers, args={"queries": ["zeppelin"], "near": "44.6, 10.9"})

    assert (seen["ok"], seen["entries"]) == (True, [])
    assert seen["metadata"]["nothing_for"] == ["zeppelin"]
    assert seen["metadata"]["unanswered"] == (
        "mappe: nessuna risposta" if who == "photon" else "Photon: nessuna risposta"
    )


def test_places_with_a_key_need_no_photon(servers: tuple[JsonServer, PhotonServer]) -> None:
    seen = look(servers, photon=False, args={"queries": ["farmacia"], "near": "Borgo"})

    assert names(seen) == ["Vicina", "Lontana"]
    assert seen["metadata"]["near"] == "Borgo, Via Borgo, 1, Borgo"


def test_places_first_that_is_silent_is_not_waited_for(
    servers: tuple[JsonServer, PhotonServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executors._sdk.google_places._TIMEOUT_S", 0.3)
    servers[0].broken = Gone(hangs=True)

    seen = look(servers, args={"queries": ["farmacia", "ramen"], "near": "44.6, 10.9"})

    assert "Farmacia Centrale" in names(seen)
    assert len(servers[0].seen) == 1  # who failed once is not asked again in the same call


def test_places_hostile_ones_are_passed_over(servers: tuple[JsonServer, PhotonServer]) -> None:
    bad: list[Any] = [
        None,
        "x",
        {},
        place("", 44.6),
        {**place("a", 44.6), "location": None},
        place("b", 95),
        place("c", float("inf")),
        {**place("d", 44.6), "displayName": "d"},
        place("Buona\n\x1b[31m", 44.6, currentOpeningHours={"weekdayDescriptions": "x"}),
    ]
    servers[0].answer = lambda asked: {"places": bad}

    assert names(look(servers)) == ["Buona [31m"]


@pytest.mark.parametrize(("lang", "word"), [("it", "chiave rifiutata"), ("en", "key refused")])
async def test_places_key_that_is_refused_is_said_under_what_was_found(
    servers: tuple[JsonServer, PhotonServer], lang: str, word: str
) -> None:
    seen = await caged(servers, lang, key="wrong")

    assert "Farmacia Centrale" in said(seen, lang)
    assert f"mappe: {word}" in said(seen, lang)


# -- get_places, both ways --------------------------------------------------------------------


@pytest.mark.parametrize("has_key", [True, False])
def test_address_is_looked_up_as_coordinates_are(
    servers: tuple[JsonServer, PhotonServer], has_key: bool
) -> None:
    keys = [account(servers[0])] if has_key else []
    args = {"coords": ["44.602, 10.9"], "addresses": ["Borgo"]}

    seen = run("get_places", args, services={"photon": servers[1].endpoint}, accounts=keys)

    back, forth = seen["entries"]
    assert (back["label"], back["asked"]) == (
        "Ramen Sette, Via Prima 3, Borgo, Italia",
        "44.602,10.9",
    )
    assert (forth["asked"], forth["found_at"]) == ("Borgo", "44.6,10.9")
    assert forth["label"] == ("Borgo, Via Borgo, 1, Borgo" if has_key else "Borgo, Italia")


def test_address_that_may_mean_several_places_tells_them_all(
    servers: tuple[JsonServer, PhotonServer],
) -> None:
    seen = look(servers, name="get_places", args={"addresses": ["via doppia 1"]})

    assert [entry["found_at"] for entry in seen["entries"]] == ["44.61,10.91", "45.4,9.2"]
    assert [entry["asked"] for entry in seen["entries"]] == ["via doppia 1"] * 2


def test_address_that_does_not_exist_does_not_cost_the_others(
    servers: tuple[JsonServer, PhotonServer],
) -> None:
    seen = look(servers, name="get_places", args={"addresses": ["Atlantide", "Borgo"]})

    assert [entry.get("error", {}).get("code") for entry in seen["entries"]] == [
        "unknown_place",
        None,
    ]


def test_address_that_nobody_could_be_asked_for_is_a_failure(
    servers: tuple[JsonServer, PhotonServer],
) -> None:
    servers[0].broken, servers[1].broken = Gone(500), (503, b"busy")

    seen = look(servers, name="get_places", args={"addresses": ["Borgo"]})

    assert (seen["ok"], seen["error"]["code"]) == (False, "http_status")


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_address_is_told_with_its_coordinates(
    servers: tuple[JsonServer, PhotonServer], lang: str
) -> None:
    seen = await observe(
        TREE / "get_places",
        {"addresses": ["Borgo"]},
        lang=lang,
        private_hosts=(servers[1].grant,),
        services={"photon": servers[1].endpoint},
    )

    assert said(seen, lang, "get_places").startswith("Borgo, Italia (44.6,10.9)\nhttps://")
