"""Searches around the person: from a fresh position without asking, else after the question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import (
    FinalKind,
    InboundKind,
    QuestionSettled,
    Role,
    StepStarted,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.positions import Position
from core.store import actors, positions
from tests.executors.photon_server import PhotonServer, photon_server
from tests.support.house import events_of, inbound, open_scripted, until
from tests.support.scripted_model import Rule

HERE = {"lat": 44.6, "lon": 10.9}
NEAREST = "dov'è la farmacia più vicina?"
STEPS = [
    Rule(user="farmacia", after=0, calls=[("find_places", {"queries": ["farmacia"]})]),
    Rule(user="farmacia", after=1, text=lambda a: a.last_result),
]
PLAN = [
    Rule(text=json.dumps({"steps": [{"tool": "find_places", "args": {"queries": "farmacia"}}]}))
]
ENGINES = pytest.mark.parametrize(
    ("engine", "rules"), [("simple", STEPS), ("metis", PLAN)], ids=["simple", "metis"]
)


@pytest.fixture
def photon() -> Iterator[PhotonServer]:
    with photon_server() as running:
        yield running


async def said(house: House, text: str, **fields: Any) -> TurnEvent:
    return (await events_of(house, inbound(text, **fields)))[-1]


async def at(house: House, data: dict[str, Any]) -> TurnEvent:
    return await said(house, "", kind=InboundKind.LOCATION, data=data)


async def is_at(house: House, position: Position, *, minutes: int = 15) -> None:
    expires = position.at + timedelta(minutes=minutes)
    async with house.stores.main.write() as tx:
        actor = await actors.find_host(tx)
        assert actor is not None
        await positions.keep(tx, actor.id, position, expires_at=expires)


async def kept(house: House) -> Position | None:
    async with house.stores.main.read() as tx:
        actor = await actors.find_host(tx)
        assert actor is not None
        return await positions.find_fresh(tx, actor.id, house.clock.now())


@ENGINES
async def test_nearest_with_a_fresh_position_is_found_without_a_question(
    tmp_path: Path, photon: PhotonServer, engine: str, rules: list[Rule]
) -> None:
    async with open_scripted(
        tmp_path, rules, metnos_engine=engine, metnos_photon_url=photon.endpoint
    ) as (house, _):
        await is_at(house, Position(44.6, 10.9, house.clock.now() - timedelta(minutes=14)))

        end = await said(house, NEAREST)

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        assert "Farmacia Centrale" in end.reply.plain
        assert "110 m" in end.reply.plain


@ENGINES
@pytest.mark.parametrize("stale", [False, True], ids=["unknown", "stale"])
async def test_nearest_without_a_fresh_position_asks_and_goes_on_where_they_are(
    tmp_path: Path, photon: PhotonServer, engine: str, rules: list[Rule], stale: bool
) -> None:
    async with open_scripted(
        tmp_path, rules, metnos_engine=engine, metnos_photon_url=photon.endpoint
    ) as (house, model):
        if stale:
            await is_at(house, Position(51.5, -0.1, house.clock.now() - timedelta(minutes=16)))

        question = await said(house, NEAREST)

        assert isinstance(question, TurnSuspended)
        assert question.reply.final_kind is FinalKind.AWAITING
        assert question.reply.plain.startswith("Per cercare «farmacia» mi serve sapere dove sei.")
        assert question.reply.buttons[0][0].kind == "location"
        assert photon.seen == []
        calls = len(model.asked)
        end = await at(house, {**HERE, "accuracy": 8.0})

        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id
        assert "Farmacia Centrale" in end.reply.plain
        assert len(model.asked) == calls + (engine == "simple")
        found = await kept(house)
        assert found is not None
        assert (found.lat, found.lon, found.accuracy_m) == (44.6, 10.9, 8.0)


async def test_nearest_is_not_searched_when_the_question_is_dropped(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        end = await said(house, "lascia stare")

        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.CANCELLED
        assert photon.seen == []
        assert await kept(house) is None


async def test_nearest_is_not_searched_when_nobody_answers(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(seconds=1)).timestamp()
            await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))

        told = await house.turns.expire()

        end = told[-1][1]
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.QUESTION_EXPIRED
        assert photon.seen == []


@pytest.mark.parametrize("broken", ["down", "off"])
async def test_nearest_when_nobody_can_be_asked_about_places_is_an_honest_failure(
    tmp_path: Path, photon: PhotonServer, broken: str
) -> None:
    photon.broken = (503, b"busy")
    url = photon.endpoint if broken == "down" else "off"
    async with open_scripted(tmp_path, PLAN, metnos_engine="metis", metnos_photon_url=url) as (
        house,
        _,
    ):
        await is_at(house, Position(44.6, 10.9, house.clock.now()))

        end = await said(house, NEAREST)

        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ERROR
        assert "nessun posto" not in end.reply.plain
        assert ("503" if broken == "down" else "METNOS_PHOTON_URL") in end.reply.plain


@pytest.mark.parametrize("known", [True, False])
async def test_get_location_tells_a_fresh_position_and_asks_otherwise(
    tmp_path: Path, known: bool
) -> None:
    rules = [
        Rule(user="cerca", after=0, calls=[("get_location", {})]),
        Rule(user="cerca", after=1, text=lambda a: json.dumps(a.last_result)),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        if known:
            then = house.clock.now() - timedelta(seconds=90)
            await is_at(house, Position(44.6, 10.9, then, 12.4))
            await said(house, "cerca")
        else:
            question = await said(house, "cerca")
            assert isinstance(question, TurnSuspended)
            assert question.reply.plain.startswith("Mi serve sapere dove sei.")
            await at(house, HERE)

        content = json.loads(model.asked[-1].last_result)["content"]
        assert (content["lat"], content["lon"], content["coords"]) == (44.6, 10.9, "44.6,10.9")
        assert content.get("accuracy_m") == (12 if known else None)
        assert (90 <= content["age_s"] < 150) if known else content["age_s"] < 60


@pytest.mark.parametrize("text", ["in che via sono??", "where am I?"])
async def test_where_the_person_is_needs_no_model(
    tmp_path: Path, photon: PhotonServer, text: str
) -> None:
    async with open_scripted(
        tmp_path, [], metnos_engine="metis", metnos_photon_url=photon.endpoint
    ) as (house, model):
        asked = await said(house, text)
        told = await at(house, HERE)

        assert isinstance(asked, TurnSuspended)
        assert isinstance(told, TurnClosed)
        assert told.final_kind is FinalKind.ANSWER
        assert "44.6" in told.reply.plain
        assert model.asked == []


async def test_position_of_one_person_is_nothing_to_another(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await is_at(house, Position(44.6, 10.9, house.clock.now()))
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, "terminal", "7", guest.id)

        question = await said(house, NEAREST, sender_id="7")

        assert isinstance(question, TurnSuspended)
        assert photon.seen == []


# -- an address that is typed -----------------------------------------------------------------


async def press(house: House, question: TurnEvent, label: str) -> TurnEvent:
    assert isinstance(question, TurnSuspended)
    button = next(b for row in question.reply.buttons for b in row if label in b.label)
    return await said(house, "", kind=InboundKind.CHOICE, data={"token": button.token})


WORDS = {
    "it": {
        "ask": NEAREST,
        "where": "Per cercare «farmacia» mi serve sapere dove sei.",
        "type": "Scrivo un indirizzo",
        "typing": "Scrivi via, numero e città",
        "which": "Quale di questi?",
        "unknown": "non lo trovo",
        "down": "ora non risponde",
        "off": "gli indirizzi non si cercano",
    },
    "en": {
        "ask": "where is the nearest pharmacy, farmacia?",
        "where": "To look for “farmacia” I need to know where you are.",
        "type": "Type an address",
        "typing": "Type street, number and town",
        "which": "Which of these?",
        "unknown": "I cannot find",
        "down": "does not work right now",
        "off": "are not looked up here",
    },
}
BOTH = pytest.mark.parametrize("lang", ["it", "en"])


def settled(events: list[TurnEvent]) -> str:
    return next(event.text for event in events if isinstance(event, QuestionSettled))


@BOTH
async def test_address_that_means_one_place_goes_on_and_is_kept(
    tmp_path: Path, photon: PhotonServer, lang: str
) -> None:
    words = WORDS[lang]
    async with open_scripted(
        tmp_path, STEPS, metnos_lang=lang, metnos_photon_url=photon.endpoint
    ) as (house, _):
        question = await said(house, words["ask"], lang=lang)
        assert isinstance(question, TurnSuspended)
        assert question.reply.plain.startswith(words["where"])
        typing = await press(house, question, words["type"])
        assert isinstance(typing, TurnSuspended)
        assert typing.reply.plain.startswith(words["typing"])
        assert typing.reply.expects == "text"
        assert all(b.kind != "location" for row in typing.reply.buttons for b in row)

        events = await events_of(house, inbound("Low Road 5, Hamlet"))

        assert isinstance(events[0], StepStarted)
        assert settled(events) == "📍 5 Low Road, Hamlet, United Kingdom"
        end = events[-1]
        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id
        found = await kept(house)
        assert found is not None
        assert (found.lat, found.lon, found.source) == (51.5, -0.1, "typed")
        _, asked, _ = photon.seen[-1]
        assert (float(asked["lat"][0]), float(asked["lon"][0])) == (51.5, -0.1)


@BOTH
async def test_address_that_means_several_places_is_chosen_before_anything_is_claimed(
    tmp_path: Path, photon: PhotonServer, lang: str
) -> None:
    words = WORDS[lang]
    async with open_scripted(
        tmp_path, STEPS, metnos_lang=lang, metnos_photon_url=photon.endpoint
    ) as (house, model):
        await said(house, words["ask"], lang=lang)
        choice = await said(house, "via doppia 1")

        assert isinstance(choice, TurnSuspended)
        assert choice.reply.plain.startswith(words["which"])
        labels = [b.label for row in choice.reply.buttons for b in row]
        assert labels[:2] == ["Via Doppia 1, Borgo, Italia", "Via Doppia 1, Altrove, Italia"]
        assert "\n2. Via Doppia 1, Altrove" in choice.reply.plain
        async with house.stores.main.read() as tx:
            rows = await tx.fetch_all("SELECT state FROM suspensions")
        assert [row["state"] for row in rows] == ["open"]
        assert await kept(house) is None
        assert len(model.asked) == 1

        end = await press(house, choice, "Borgo")

        assert isinstance(end, TurnClosed)
        assert "Farmacia" in end.reply.plain
        found = await kept(house)
        assert found is not None
        assert (found.lat, found.lon) == (44.61, 10.91)


@pytest.mark.parametrize(
    ("text", "lat"),
    [("2", 45.4), ("via Doppia 1, Altrove, Italia", 45.4), ("Low Road 5, Hamlet", 51.5)],
    ids=["number", "label", "another address"],
)
async def test_choice_between_places_is_answered_in_words_too(
    tmp_path: Path, photon: PhotonServer, text: str, lat: float
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        await said(house, "via doppia 1")
        end = await said(house, text)

        assert isinstance(end, TurnClosed)
        found = await kept(house)
        assert found is not None
        assert found.lat == lat


async def test_choice_between_places_is_over_when_a_place_is_shared(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        choice = await said(house, "via doppia 1")
        end = await at(house, HERE)

        assert isinstance(end, TurnClosed)
        assert "110 m" in end.reply.plain
        again = await press(house, choice, "Altrove")
        assert isinstance(again, TurnClosed)
        assert again.reply == end.reply


async def test_button_of_an_earlier_choice_means_nothing_to_a_later_one(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        earlier = await said(house, "via doppia 1")
        await said(house, "nessun posto così, Atlantide")

        asked = await press(house, earlier, "Altrove")

        assert isinstance(asked, TurnSuspended)
        assert await kept(house) is None


@BOTH
@pytest.mark.parametrize("why", ["unknown", "down", "off"])
async def test_address_that_leads_nowhere_is_said_and_asked_again(
    tmp_path: Path, photon: PhotonServer, lang: str, why: str
) -> None:
    words = WORDS[lang]
    url = "off" if why == "off" else photon.endpoint
    async with open_scripted(tmp_path, STEPS, metnos_lang=lang, metnos_photon_url=url) as (
        house,
        _,
    ):
        question = await said(house, words["ask"], lang=lang)
        photon.broken = (503, b"busy") if why == "down" else None

        events = await events_of(house, inbound("Viale Atlantide 7"))

        assert words[why] in settled(events)
        again = events[-1]
        assert isinstance(again, TurnSuspended)
        assert isinstance(question, TurnSuspended)
        assert again.turn_id == question.turn_id
        assert again.reply.plain.startswith(words["where"])
        assert again.reply.buttons[0][0].kind == "location"
        assert await kept(house) is None
        photon.broken = None
        end = await said(house, "44.6, 10.9")  # coordinates need nobody
        assert isinstance(end, TurnClosed)
        found = await kept(house)
        assert found is not None
        assert (found.lat, found.lon) == (44.6, 10.9)


async def test_address_is_asked_of_the_signed_program_and_noted_like_any_call(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        await said(house, "via doppia 1")

        policy = house.settings.metnos_home / "policy"
        lines = [
            json.loads(line)
            for path in sorted(policy.glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]
        assert [line["tool"] for line in lines] == ["find_places", "find_places"]
        assert "doppia" not in json.dumps(lines)
        async with house.stores.main.read() as tx:
            assert await tx.fetch_all("SELECT id FROM scratchpad") == []


async def test_crash_while_an_address_is_looked_up_leaves_the_question_open(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        question = await said(house, NEAREST)
        photon.hold.clear()
        walking = asyncio.create_task(events_of(house, inbound("via doppia 1", id="typed")))
        await until(lambda: bool(photon.seen))
        walking.cancel()
        await house.turns.close()
        photon.hold.set()
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        choice = await said(house, "via doppia 1", id="typed")

        assert isinstance(choice, TurnSuspended)
        assert isinstance(question, TurnSuspended)
        assert choice.turn_id == question.turn_id
        end = await press(house, choice, "Borgo")
        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id


async def test_address_delivered_again_after_it_was_taken_is_told_again(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        end = await said(house, "Low Road 5, Hamlet", id="typed")
        before = len(photon.seen)

        again = await said(house, "Low Road 5, Hamlet", id="typed")

        assert isinstance(again, TurnClosed)
        assert isinstance(end, TurnClosed)
        assert again.reply == end.reply
        assert len(photon.seen) == before


async def test_same_question_is_put_to_the_service_once_in_ten_minutes_for_each_person(
    tmp_path: Path, photon: PhotonServer
) -> None:
    """S18: such services ask for it. A failure is asked again, and so is another person's."""
    async with open_scripted(
        tmp_path, STEPS, metnos_photon_url=photon.endpoint, metnos_memory=False
    ) as (house, _):
        await is_at(house, Position(44.6, 10.9, house.clock.now()))
        photon.broken = (503, b"")
        failed = await said(house, NEAREST)
        photon.broken = None
        first = await said(house, f"{NEAREST}!")
        asked = len(photon.seen)
        second = await said(house, f"{NEAREST}?")
        again = len(photon.seen)

    ends = [end.reply.plain for end in (failed, first, second) if isinstance(end, TurnClosed)]
    assert ["Farmacia Centrale" in told for told in ends] == [False, True, True]
    assert asked > 0
    assert again == asked


async def test_new_request_while_a_place_is_asked_for_is_a_request(
    tmp_path: Path, photon: PhotonServer
) -> None:
    rules = [Rule(user="che ore sono", text="Le dieci."), *STEPS]
    async with open_scripted(tmp_path, rules, metnos_photon_url=photon.endpoint) as (house, _):
        question = await said(house, NEAREST)
        other = await said(house, "che ore sono adesso qui da te?")

        assert isinstance(other, TurnClosed)
        assert other.reply.plain == "Le dieci."
        end = await at(house, HERE)
        assert isinstance(end, TurnClosed)
        assert isinstance(question, TurnSuspended)
        assert end.turn_id == question.turn_id


async def test_place_among_several_fields_is_looked_up_and_the_next_one_asked(
    tmp_path: Path, photon: PhotonServer
) -> None:
    fields = [
        {"var": "where", "prompt": "Da dove parti?", "kind": "location"},
        {"var": "many", "prompt": "In quanti?", "kind": "number"},
    ]
    rules = [
        Rule(user="viaggio", after=0, calls=[("get_inputs", {"fields": fields})]),
        Rule(user="viaggio", after=1, text=lambda a: a.last_result),
    ]
    async with open_scripted(tmp_path, rules, metnos_photon_url=photon.endpoint) as (house, model):
        await said(house, "viaggio")
        choice = await said(house, "via doppia 1")
        assert isinstance(choice, TurnSuspended)
        after = await press(house, choice, "Altrove")
        assert isinstance(after, TurnSuspended)
        assert after.reply.plain.startswith("In quanti?")
        await said(house, "3")

        content = json.loads(model.asked[-1].last_result)["content"]
        place = {"lat": 45.4, "lon": 9.2, "address": "Via Doppia 1, Altrove, Italia"}
        assert content == {"where": place, "many": 3}
        assert await kept(house) is None  # where a journey begins is not where they are


# -- a place that nobody asked for ------------------------------------------------------------


async def test_place_that_nobody_asked_for_is_kept_and_said(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, []) as (house, model):
        end = await at(house, {**HERE, "accuracy": 20})

        assert isinstance(end, TurnClosed)
        assert end.error is None
        assert end.reply.plain == "📍 Tengo la tua posizione per 15 min. Che cosa vuoi fare?"
        found = await kept(house)
        assert found is not None
        assert found.accuracy_m == 20
        assert model.asked == []
        async with house.stores.main.read() as tx:
            assert await tx.fetch_all("SELECT id FROM turns") == []


async def test_venue_is_kept_with_its_name(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, []) as (house, _):
        end = await said(house, "Bar Sport, via Roma 1", kind=InboundKind.LOCATION, data=HERE)

        assert isinstance(end, TurnClosed)
        assert "Bar Sport, via Roma 1" in end.reply.plain
        found = await kept(house)
        assert found is not None
        assert (found.source, found.label) == ("venue", "Bar Sport, via Roma 1")


BAD: tuple[dict[str, Any], ...] = (
    {},
    {"lat": 44.6},
    {"lat": 91, "lon": 10.9},
    {"lat": 44.6, "lon": 181},
    {"lat": "44.6", "lon": "10.9"},
    {"lat": float("nan"), "lon": 10.9},
    {"lat": True, "lon": False},
)


@pytest.mark.parametrize("asked", [False, True], ids=["unasked", "asked"])
async def test_place_that_is_none_gets_a_word_and_leaves_everything_as_it_is(
    tmp_path: Path, photon: PhotonServer, asked: bool
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, model):
        if asked:
            await said(house, NEAREST)
        calls = len(model.asked)

        for data in BAD:
            end = await at(house, data)

            assert isinstance(end, TurnClosed), data
            assert "non c'è una posizione" in end.reply.plain, data
            assert await kept(house) is None, data

        assert len(model.asked) == calls
        assert photon.seen == []
        async with house.stores.main.read() as tx:
            rows = await tx.fetch_all("SELECT state FROM suspensions")
            assert await tx.fetch_all("SELECT key FROM effects") == []
        assert [row["state"] for row in rows] == (["open"] if asked else [])


@pytest.mark.parametrize("minutes", [15, 0], ids=["too old", "never kept"])
async def test_place_of_long_ago_or_of_a_house_that_keeps_none_is_not_kept(
    tmp_path: Path, minutes: int
) -> None:
    async with open_scripted(tmp_path, [], metnos_location_minutes=minutes) as (house, _):
        sent = inbound("", kind=InboundKind.LOCATION, data=HERE)
        if minutes:
            sent = replace(sent, received_at=house.clock.now() - timedelta(minutes=16))
        end = (await events_of(house, sent))[-1]

        assert isinstance(end, TurnClosed)
        assert ("troppo tempo" if minutes else "non si tengono") in end.reply.plain
        assert await kept(house) is None


async def test_place_of_long_before_its_question_is_no_answer(
    tmp_path: Path, photon: PhotonServer
) -> None:
    """As when the bot was away, and the message comes with what has been waiting."""
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        question = await said(house, NEAREST)
        sent = inbound("", kind=InboundKind.LOCATION, data=HERE)
        old = replace(sent, received_at=house.clock.now() - timedelta(hours=3))

        end = (await events_of(house, old))[-1]

        assert isinstance(end, TurnClosed)
        assert end.turn_id != question.turn_id
        assert "troppo tempo" in end.reply.plain
        assert photon.seen == []
        async with house.stores.main.read() as tx:
            rows = await tx.fetch_all("SELECT state FROM suspensions")
        assert [row["state"] for row in rows] == ["open"]


async def test_place_is_used_for_its_question_also_where_none_is_kept(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(
        tmp_path, STEPS, metnos_photon_url=photon.endpoint, metnos_location_minutes=0
    ) as (house, _):
        await said(house, NEAREST)
        end = await at(house, HERE)

        assert isinstance(end, TurnClosed)
        assert "110 m" in end.reply.plain
        assert await kept(house) is None


async def test_place_that_replies_to_another_message_answers_no_question(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        end = await at(house, {**HERE, "reply_to": "an old message"})

        assert isinstance(end, TurnClosed)
        assert "Che cosa vuoi fare?" in end.reply.plain
        assert photon.seen == []
        async with house.stores.main.read() as tx:
            rows = await tx.fetch_all("SELECT state FROM suspensions")
        assert [row["state"] for row in rows] == ["open"]


async def test_place_after_the_question_ran_out_is_only_kept(
    tmp_path: Path, photon: PhotonServer
) -> None:
    async with open_scripted(tmp_path, STEPS, metnos_photon_url=photon.endpoint) as (house, _):
        await said(house, NEAREST)
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(seconds=1)).timestamp()
            await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))

        end = await at(house, HERE)

        assert isinstance(end, TurnClosed)
        assert "Che cosa vuoi fare?" in end.reply.plain
        assert photon.seen == []
        assert await kept(house) is not None
