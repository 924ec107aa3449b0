"""Flow 17: the nearest pharmacy, with the place by button, typed and chosen, or not given."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.executors.photon_server import PhotonServer, photon_server
from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

RULES = [
    Rule(user="farmacia", after=0, calls=[("find_places", {"queries": ["farmacia"]})]),
    Rule(user="farmacia", after=1, text=lambda a: f"Eccola: {a.last_result[:60]}"),
]
WORDS = {
    "it": {
        "ask": "dov'è la farmacia più vicina?",
        "where": "mi serve sapere dove sei",
        "type": "^✏️",
        "typing": "Scrivi via, numero e città",
        "which": "Quale di questi",
        "kept": "Tengo la tua posizione per 15 min",
        "followed": "Seguo la tua posizione",
        "unreadable": "non c'è una posizione",
        "down": "non risponde",
    },
    "en": {
        "ask": "where is the nearest farmacia?",
        "where": "I need to know where you are",
        "type": "^✏️",
        "typing": "Type street, number and town",
        "which": "Which of these",
        "kept": "I keep your location for 15 min",
        "followed": "I follow your location",
        "unreadable": "no location in this message",
        "down": "does not work right now",
    },
}
BOTH = pytest.mark.parametrize("lang", ["it", "en"])


@pytest.fixture
def photon() -> Iterator[PhotonServer]:
    with photon_server() as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, photon: PhotonServer) -> Iterator[World]:
    with open_world(tmp_path, RULES, METNOS_PHOTON_URL=photon.endpoint) as world:
        world.telegram.start_bot()
        yield world


def kept(world: World) -> list[tuple[object, ...]]:
    return world.rows("SELECT lat, lon, accuracy_m, source FROM positions")


@BOTH
def test_nearest_is_asked_for_and_found_by_the_location_button(world: World, lang: str) -> None:
    words = WORDS[lang]
    anna = world.host(lang=lang)
    world.telegram.say(anna, words["ask"])
    asked = world.telegram.expect(anna, words["where"], timeout=40)
    rows = asked["markup"]["keyboard"]
    assert rows[0][0]["request_location"] is True
    assert len([b for row in rows for b in row]) == 3

    world.telegram.location(anna, 44.6, 10.9, accuracy=9)

    settled = world.telegram.expect(anna, "✅", timeout=40)
    assert settled["markup"] == {"remove_keyboard": True}
    world.telegram.expect(anna, "Farmacia Centrale|Eccola", timeout=40)
    assert kept(world) == [(44.6, 10.9, 9.0, "shared")]
    world.telegram.say(anna, words["ask"])
    world.telegram.expect(anna, "Farmacia Centrale|Eccola", timeout=40)  # without a question
    world.telegram.assert_clean()


@pytest.mark.parametrize("killed", [False, True], ids=["quiet", "killed between"])
def test_nearest_is_found_by_an_address_that_is_typed_and_chosen(
    world: World, photon: PhotonServer, killed: bool
) -> None:
    words = WORDS["it"]
    anna = world.host()
    world.telegram.say(anna, words["ask"])
    world.telegram.expect(anna, words["where"], timeout=40)
    world.telegram.press(anna, words["type"])
    typing = world.telegram.expect(anna, words["typing"], timeout=40)
    assert typing["markup"]["force_reply"] is True
    photon.broken = (503, b"busy")
    world.telegram.say(anna, "via Doppia 1")
    world.telegram.expect(anna, words["down"], timeout=40)
    world.telegram.expect(anna, words["typing"], timeout=40)
    photon.broken = None
    world.telegram.say(anna, "via Doppia 1")
    choice = world.telegram.expect(anna, words["which"], timeout=40)
    assert len(choice["message"]["reply_markup"]["inline_keyboard"]) == 2
    assert kept(world) == []
    if killed:
        world.wait_for(
            lambda: not world.rows("SELECT 1 FROM outbox WHERE state = 'sending'"),
            timeout=40,
            what="sent",
        )
        world.telegram.stop_bot(kill=True)
        world.telegram.start_bot()

    world.telegram.press(anna, "^Via Doppia 1, Borgo")

    world.telegram.expect(anna, "📍 Via Doppia 1, Borgo", kind="edit", timeout=40)
    world.telegram.expect(anna, "Eccola", timeout=40)
    assert kept(world) == [(44.61, 10.91, None, "typed")]


@BOTH
def test_place_that_nobody_asked_for_is_kept_and_its_moves_are_silent(
    world: World, lang: str
) -> None:
    words = WORDS[lang]
    anna = world.host(lang=lang)
    world.telegram.location(anna, 44.6, 10.9, accuracy=12.5, live_period=900)
    world.telegram.expect(anna, words["followed"], timeout=40)

    world.telegram.move(anna, 44.7, 10.8)
    world.wait_for(lambda: kept(world)[0][0] == 44.7, timeout=40, what="the move")
    world.telegram.move(anna, 44.8, 10.7, stop=True)
    world.wait_for(lambda: kept(world)[0][0] == 44.8, timeout=40, what="the end")
    world.telegram.location(anna, 44.9, 10.6)
    world.telegram.expect(anna, words["kept"], timeout=40)

    assert len(world.texts(anna)) == 3  # paired, followed, kept
    world.telegram.assert_clean()


def test_place_of_somebody_revoked_is_dropped_without_a_word(world: World) -> None:
    world.host()
    bob = world.guest("bob")
    world.telegram.say(bob, WORDS["it"]["ask"])
    asked = world.telegram.expect(bob, WORDS["it"]["where"], timeout=40)
    said = len(world.texts(bob))
    with closing(sqlite3.connect(world.home / "private/metnos.db", timeout=30)) as database:
        database.execute(
            """DELETE FROM identities WHERE actor_id IN
               (SELECT id FROM actors WHERE role = 'guest')"""
        )
        database.execute("UPDATE actors SET revoked_at = 1 WHERE role = 'guest'")
        database.commit()

    world.telegram.location(bob, 44.6, 10.9)
    world.telegram.tap(bob, "x", message=asked["message"])
    world.telegram.expect_none(bob, 1.5)

    assert len(world.texts(bob)) == said
    assert kept(world) == []
