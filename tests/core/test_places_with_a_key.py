"""A whole turn about places or the weather: whose key is used, who is asked next, what is asked of
the person."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.accounts import AccountKind
from core.messages import FinalKind, InboundKind, TurnClosed, TurnEvent, TurnSuspended
from core.store import accounts, actors
from tests.executors.json_server import Gone, JsonServer, json_server
from tests.executors.photon_server import PhotonServer, photon_server
from tests.executors.test_places_chain import KEY, google
from tests.executors.test_weather import open_meteo
from tests.support.house import events_of, inbound, open_scripted
from tests.support.scripted_model import Rule


def near(lang: str) -> list[Rule]:
    what = "farmacia" if lang == "it" else "pharmacy"
    args = {"queries": [what], "near": "Borgo"}
    return [
        Rule(user=what, after=0, calls=[("find_places", args)]),
        Rule(user=what, after=1, text=lambda ask: ask.last_result),
    ]


WEATHER = [
    Rule(user="tempo|weather", after=0, calls=[("get_weather", {"days": 2})]),
    Rule(user="tempo|weather", after=1, text=lambda ask: ask.last_result),
]


@pytest.fixture
def photon() -> Iterator[PhotonServer]:
    with photon_server() as running:
        yield running


@pytest.fixture
def maps() -> Iterator[JsonServer]:
    with json_server(google) as running:
        yield running


async def said(house: Any, text: str, **fields: Any) -> TurnEvent:
    return (await events_of(house, inbound(text, **fields)))[-1]


async def give_key(house: Any, server: JsonServer) -> None:
    values = {"url": server.endpoint}
    async with house.stores.main.write() as tx:
        host = await actors.find_host(tx)
        assert host is not None
        now = house.clock.now()
        await accounts.put(
            tx, house.stores.vault, host.id, "mappe", AccountKind.PLACES, values, KEY, now
        )


@pytest.mark.parametrize(
    ("lang", "broken", "found"),
    [("it", None, "Vicina"), ("en", Gone(503), "Farmacia Centrale")],
    ids=["up", "down"],
)
async def test_pharmacy_is_found_by_the_first_who_answers(
    tmp_path: Path,
    photon: PhotonServer,
    maps: JsonServer,
    lang: str,
    broken: Gone | None,
    found: str,
) -> None:
    async with open_scripted(
        tmp_path, near(lang), metnos_lang=lang, metnos_photon_url=photon.endpoint
    ) as (house, _):
        request = "farmacia vicino a Borgo" if lang == "it" else "pharmacy near Borgo"
        before = await said(house, request, lang=lang)
        assert isinstance(before, TurnClosed)
        assert "Farmacia Centrale" in before.reply.plain
        assert maps.seen == []
        await give_key(house, maps)
        maps.broken = broken

        end = await said(house, request, lang=lang)

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        assert found in end.reply.plain
        assert len(maps.seen) == (2 if broken is None else 1)
        assert KEY not in end.reply.plain


async def test_pharmacy_that_nobody_could_be_asked_for_is_no_pharmacy_that_is_not_there(
    tmp_path: Path, photon: PhotonServer, maps: JsonServer
) -> None:
    async with open_scripted(tmp_path, near("it"), metnos_photon_url="off") as (house, _):
        await give_key(house, maps)
        maps.broken = Gone(403)

        end = await said(house, "farmacia vicino a Borgo")

        assert isinstance(end, TurnClosed)
        assert "wrong_credentials" in end.reply.plain or "mappe" in end.reply.plain
        assert "Non ho trovato" not in end.reply.plain


@pytest.mark.parametrize(
    ("lang", "request_", "asks", "tells"),
    [
        ("it", "che tempo fa domani?", "dove sei", "pioggia leggera"),
        ("en", "what's the weather tomorrow?", "where you are", "light rain"),
    ],
)
async def test_weather_asks_where_the_person_is_and_goes_on(
    tmp_path: Path, lang: str, request_: str, asks: str, tells: str
) -> None:
    with json_server(open_meteo) as server:
        async with open_scripted(
            tmp_path, WEATHER, metnos_lang=lang, metnos_weather_url=server.endpoint
        ) as (house, _):
            question = await said(house, request_, lang=lang)
            assert isinstance(question, TurnSuspended)
            assert asks in question.reply.plain
            assert server.seen == []

            end = await said(house, "", kind=InboundKind.LOCATION, data={"lat": 44.6, "lon": 10.9})

            assert isinstance(end, TurnClosed)
            assert tells in end.reply.plain
            assert [asked.path for asked in server.seen] == ["/v1/forecast"]
