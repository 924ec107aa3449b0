"""find_places and get_places in the real cage, against a server of Photon's shape on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation, Provenance
from executors._sdk import geo, place_words
from executors._sdk.call import Call
from executors._sdk.result import Failure
from tests.executors.photon_server import PhotonServer, feature, photon_server
from tests.support.run_executor import TREE, observe

TEXTS = Texts.load(TREE.parent / "locales")


@pytest.fixture
def server() -> Iterator[PhotonServer]:
    with photon_server() as running:
        yield running


async def run(
    server: PhotonServer, name: str, *, lang: str = "it", granted: bool = True, **args: Any
) -> Observation:
    hosts = (server.grant,) if granted else ()
    services = {"photon": server.endpoint}
    return await observe(TREE / name, args, lang=lang, private_hosts=hosts, services=services)


def said(name: str, seen: Observation, lang: str) -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    blocks = Renderer(TEXTS, lang, "Europe/Rome", "/home/x").observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


def names(seen: Observation) -> list[str]:
    return [entry["name"] for entry in seen.entries or ()]


# -- find_places ------------------------------------------------------------------------------


async def test_find_places_of_a_kind_gives_the_nearest_first_with_distance_and_map(
    server: PhotonServer,
):
    seen = await run(server, "find_places", queries=["una farmacia"], near="Borgo")

    assert names(seen) == ["Farmacia Centrale", "Farmacia Lontana"]
    first = dict((seen.entries or ())[0])
    assert first["address"] == "Via Prima 12, 41100 Borgo, Italia"
    assert (first["lat"], first["lon"], first["coords"]) == (44.601, 10.9, "44.601,10.9")
    assert 105 <= first["distance_m"] <= 115
    assert first["distance"] == "110 m"
    assert first["map"].startswith("https://www.openstreetmap.org/?mlat=44.60100&mlon=10.90000")
    assert seen.metadata["near"] == "Borgo, Italia"
    assert seen.provenance is Provenance.EXTERNAL


async def test_find_places_by_words_looks_only_around_the_place_that_was_named(
    server: PhotonServer,
):
    seen = await run(server, "find_places", queries=["ramen"], near="44.6, 10.9")

    assert names(seen) == ["Ramen Sette"]
    _, asked, headers = server.seen[-1]
    assert (asked["lat"], asked["lon"]) == (["44.6"], ["10.9"])
    assert "bbox" in asked
    assert headers["User-Agent"] == "Metnos/0.1 (test)"
    assert len(server.seen) == 1


async def test_find_places_several_queries_share_one_look_for_the_place(server: PhotonServer):
    seen = await run(server, "find_places", queries=["ramen", "farmacia"], near="Borgo")

    assert {entry["query"] for entry in seen.entries or ()} == {"ramen", "farmacia"}
    assert [asked.get("q") for _, asked, _ in server.seen] == [["Borgo"], ["ramen"], None]


async def test_find_places_of_words_with_a_place_in_them_looks_there(server: PhotonServer):
    seen = await run(server, "find_places", queries=["farmacia vicino a Borgo"])

    assert names(seen)[0] == "Farmacia Centrale"


async def test_find_places_keeps_to_the_radius_that_was_asked_for(server: PhotonServer):
    seen = await run(server, "find_places", queries=["farmacie"], near="Borgo", radius_km=0.3)

    assert names(seen) == ["Farmacia Centrale"]


async def test_find_places_looks_farther_when_nothing_is_around_the_corner(server: PhotonServer):
    seen = await run(server, "find_places", queries=["aeroporto"], near="Borgo")

    assert seen.read(["distance"]) == "28 km"


async def test_find_places_nothing_found_is_not_a_failure(server: PhotonServer):
    seen = await run(server, "find_places", queries=["zeppelin"], near="Borgo")

    assert (seen.ok, seen.entries) == (True, ())
    assert seen.metadata["nothing_for"] == ["zeppelin"]
    assert "nessun posto" in said("find_places", seen, "it")
    assert "near Borgo" in said("find_places", seen, "en")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (503, b"busy", "http_status"),
        (429, b"{}", "http_status"),
        (200, b"<html>maintenance</html>", "bad_answer"),
        (200, b"{}", "bad_answer"),
        (200, b"[" * 100_000, "bad_answer"),
    ],
)
async def test_find_places_no_provider_answers_is_a_failure(
    server: PhotonServer, status: int, body: bytes, code: str
):
    server.broken = (status, body)

    seen = await run(server, "find_places", queries=["farmacia"])

    assert seen.error is not None
    assert (seen.ok, seen.error.code) == (False, code)
    assert "nessun posto" not in said("find_places", seen, "it")


async def test_find_places_near_an_unknown_place_says_which(server: PhotonServer):
    seen = await run(server, "find_places", queries=["farmacia"], near="Atlantide")

    assert seen.error is not None
    assert seen.error.code == "unknown_place"
    assert "Atlantide" in said("find_places", seen, "it")


async def test_find_places_own_server_that_was_not_granted_is_denied(server: PhotonServer):
    seen = await run(server, "find_places", queries=["farmacia"], granted=False)

    assert seen.error is not None
    assert seen.error.code == "host_denied"
    assert server.seen == []


async def test_find_places_never_reaches_another_host_than_the_service(server: PhotonServer):
    server.moved_to = f"http://127.0.0.1:{server.server_port}/api?q=farmacia"

    seen = await observe(
        TREE / "find_places",
        {"queries": ["zeppelin"]},
        private_hosts=("127.0.0.1", server.grant),
        services={"photon": server.endpoint},
    )

    assert seen.error is not None
    assert seen.error.code == "host_denied"
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("name", "args"),
    [("find_places", {"queries": ["zeppelin"]}), ("get_places", {"coords": ["44.6, 10.9"]})],
)
async def test_service_that_is_off_is_said_and_nobody_is_asked(
    server: PhotonServer, name: str, args: dict[str, Any]
):
    seen = await observe(TREE / name, args, services={"photon": ""})

    assert seen.error is not None
    assert seen.error.code == "service_off"
    assert "METNOS_PHOTON_URL" in said(name, seen, "it")
    assert server.seen == []


HERE = {"lat": 44.6, "lon": 10.9, "label": ""}


async def around(
    server: PhotonServer, about: str, *, known: bool = True, lang: str = "it", **args: Any
) -> Observation:
    """A search of somebody whose place is known, or not."""
    whereabouts = {"about": about, **({"position": HERE} if known else {})}
    return await observe(
        TREE / "find_places",
        args,
        lang=lang,
        private_hosts=(server.grant,),
        services={"photon": server.endpoint},
        whereabouts=whereabouts,
    )


@pytest.mark.parametrize(
    ("about", "args"),
    [
        ("elsewhere", {"queries": ["farmacia"], "near": "qui vicino"}),
        ("elsewhere", {"queries": ["farmacia più vicina"]}),
        ("elsewhere", {"queries": ["the nearest pharmacy"]}),
        ("elsewhere", {"queries": ["farmacia vicino a me"]}),
        ("here", {"queries": ["farmacia"]}),
        ("here", {"queries": ["la farmacia più vicina"], "near": "farmacia"}),
        ("here", {"queries": ["pharmacy"], "near": "nearest pharmacy"}),
        ("here", {"queries": ["pharmacy"], "near": "pharmacy near"}),
        ("open", {"queries": ["una farmacia"]}),
        ("here", {"queries": ["Centrale più vicina"]}),
    ],
)
async def test_find_places_around_the_person_starts_from_where_they_are(
    server: PhotonServer, about: str, args: dict[str, Any]
):
    seen = await around(server, about, **args)

    assert names(seen)[0] == "Farmacia Centrale"
    assert (seen.entries or ())[0]["distance"] == "110 m"
    assert seen.metadata["near"] == "te"
    unknown = await around(server, about, known=False, **args)
    assert unknown.error is not None
    assert unknown.error.code == "needs_location"


@pytest.mark.parametrize(
    ("about", "args"),
    [
        ("elsewhere", {"queries": ["farmacia"], "near": "Borgo"}),
        ("here", {"queries": ["farmacia"], "near": "Borgo"}),
        ("here", {"queries": ["farmacia vicino a Borgo"]}),
        ("open", {"queries": ["ramen sette"]}),
        ("elsewhere", {"queries": ["farmacia"]}),
        ("open", {"queries": ["farmacia", "ramen sette"]}),
    ],
)
async def test_find_places_elsewhere_never_needs_to_know_where_the_person_is(
    server: PhotonServer, about: str, args: dict[str, Any]
):
    seen = await around(server, about, known=False, **args)

    assert seen.ok
    assert "te" not in seen.metadata.values()


@pytest.mark.parametrize(("lang", "says"), [("it", "vicino a te"), ("en", "near you")])
async def test_find_places_nothing_around_the_person_says_around_whom(
    server: PhotonServer, lang: str, says: str
):
    seen = await around(server, "here", queries=["zeppelin"], lang=lang)

    assert says in said("find_places", seen, lang)


async def test_find_places_hostile_features_are_passed_over(server: PhotonServer):
    bad: list[Any] = [
        None,
        {},
        {"geometry": {"coordinates": [1]}, "properties": {}},
        feature(float("nan"), 1, name="nan"),
        feature(91, 1, name="beyond the pole"),
        feature(True, 1, name="flag"),
        feature(1, 1, name=["a", "list"]),
        feature(1, 1, name="due\nrighe \u202e", street={"a": 1}, city="B\x00orgo"),
    ]
    server.broken = (200, json.dumps({"features": bad}).encode())

    seen = await run(server, "find_places", queries=["x"])

    assert [(e["name"], e["address"]) for e in seen.entries or ()] == [("due righe", "B orgo")]


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_find_places_answer_names_the_place_its_distance_and_a_map(
    server: PhotonServer, lang: str
):
    seen = await run(server, "find_places", queries=["ramen"], near="Borgo", lang=lang)

    first, second = said("find_places", seen, lang).splitlines()
    assert first == "Ramen Sette, 220 m"
    assert second.startswith("Via Prima 3, Borgo, Italia · https://www.openstreetmap.org/")


# -- get_places -------------------------------------------------------------------------------


async def test_get_places_tells_the_address_of_each_point(server: PhotonServer):
    seen = await run(server, "get_places", coords=["44.601, 10.9", "51.5; -0.1"], lang="en")

    assert [entry["label"] for entry in seen.entries or ()] == [
        "Farmacia Centrale, Via Prima 12, 41100 Borgo, Italia",
        "5 Low Road, Hamlet, United Kingdom",
    ]
    assert "• 51.5,-0.1: 5 Low Road" in said("get_places", seen, "en")


async def test_get_places_in_the_sea_and_nobody_answering_are_told_apart(server: PhotonServer):
    sea = await run(server, "get_places", coords=["0.5, -30.5"])
    server.broken = (500, b"")
    down = await run(server, "get_places", coords=["44.6, 10.9"])

    codes = [seen.error.code for seen in (sea, down) if seen.error is not None]
    assert codes == ["unknown_place", "http_status"]


# -- a typed address --------------------------------------------------------------------------


def call(server: PhotonServer, lang: str = "it") -> Call:
    return Call({"lang": lang, "services": {"photon": server.endpoint}})


@pytest.mark.parametrize(
    ("address", "labels"),
    [
        ("Via Prima 12, Borgo", ["Farmacia Centrale, Via Prima 12, 41100 Borgo, Italia"]),
        ("via doppia 1", ["Via Doppia 1, Borgo, Italia", "Via Doppia 1, Altrove, Italia"]),
        ("piazza che non esiste", []),
    ],
    ids=["one", "several", "none"],
)
def test_geocode_typed_address_gives_what_it_may_mean(
    server: PhotonServer, address: str, labels: list[str]
):
    assert [place.label for place in geo.geocode(call(server), address)] == labels


def test_geocode_coordinates_mean_themselves(server: PhotonServer):
    assert geo.geocode(call(server), "0.5, -30.5") == [
        geo.Place("0.5,-30.5", "", geo.Spot(0.5, -30.5))
    ]


def test_geocode_empty_address_is_refused_before_anybody_is_asked(server: PhotonServer):
    with pytest.raises(Failure, match="invalid_args"):
        geo.geocode(call(server), " \n ")

    assert server.seen == []


def test_geography_asks_the_same_only_once(server: PhotonServer):
    world = geo.Geography(call(server))

    assert world.geocode("Borgo") == world.geocode("Borgo")
    assert len(server.seen) == 1


def test_geography_public_server_is_asked_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch):
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    asker = geo._Asker(Call({}), pause_s=geo._PUBLIC_PAUSE_S)

    asker._wait()
    asker._wait()

    assert len(waits) == 1
    assert 0.9 < waits[0] <= 1.0


# -- words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45.4642, 9.1900", (45.4642, 9.19)),
        ("45,4642; 9,19", (45.4642, 9.19)),
        ("41.9028,12.4964", (41.9028, 12.4964)),
        ("51.5007° N, 0.1246° W", (51.5007, -0.1246)),
        ("(-33.86 151.2)", (-33.86, 151.2)),
        ("95, 10", None),
        ("45.1", None),
        ("via Roma 12", None),
        ("", None),
    ],
)
def test_parse_spot_reads_pairs_of_degrees_only(text, expected):
    spot = geo.parse_spot(text)

    assert (None if spot is None else (spot.lat, spot.lon)) == expected


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_parse_spot_reads_back_what_it_wrote(lat: float, lon: float):
    spot = geo.parse_spot(geo.Spot(lat, lon).text)

    assert spot is not None
    assert abs(spot.lat - lat) < 1e-6
    assert abs(spot.lon - lon) < 1e-6


@pytest.mark.parametrize(
    ("query", "tag"),
    [
        ("una farmacia", "amenity:pharmacy"),
        ("la farmacia più vicina", "amenity:pharmacy"),
        ("Pharmacies", "amenity:pharmacy"),
        ("the nearest petrol station", "amenity:fuel"),
        ("un ufficio postale", "amenity:post_office"),
        ("un'officina", "shop:car_repair"),
        ("vet clinics", "amenity:veterinary"),
        ("ristoranti giapponesi", None),
        ("", None),
    ],
)
def test_tag_of_knows_kinds_and_nothing_more(query, tag):
    assert place_words.tag_of(query) == tag


@pytest.mark.parametrize(
    ("query", "what", "where"),
    [
        ("farmacia vicino a piazza Bologna, Roma", "farmacia", "piazza Bologna, Roma"),
        ("bar vicino alla stazione di Bologna", "bar", "stazione di Bologna"),
        ("un bancomat nei pressi del Duomo", "un bancomat", "Duomo"),
        ("vet clinics around Headingley", "vet clinics", "Headingley"),
        ("pharmacy near me", "pharmacy", "me"),
        ("Torre di Pisa", "Torre di Pisa", None),
        ("near", "near", None),
    ],
)
def test_split_near_tells_what_from_where(query, what, where):
    assert place_words.split_near(query) == (what, where)


@pytest.mark.parametrize(
    ("metres", "lang", "expected"),
    [(3, "it", "10 m"), (347, "it", "350 m"), (996, "it", "1,0 km"), (1249, "en", "1.2 km"),
     (27_800, "it", "28 km")],
)  # fmt: skip
def test_distance_text_is_no_finer_than_anybody_walks(metres, lang, expected):
    assert place_words.distance_text(metres, lang) == expected
