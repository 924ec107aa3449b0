"""What is said without a verb: notes of events, questions, lists; and what asks for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.accounts import AccountKind
from core.catalog.loader import Catalog, CatalogLoader
from core.execution.guests import catalog_for
from core.levels.candidates import Candidates
from core.levels.offhand import asks, deed_of, is_question, notes_event
from core.levels.wish import Wish
from tests.support.executors import signed_home
from tests.support.models import ScriptedModel
from tests.support.planning import Planner

NOTES = """
dentista giovedì alle 16 | dentist Thursday at 4 pm | cena con Paolo sabato sera
dinner with Paolo Saturday at 8pm | ore 15 riunione con Marco | compleanno di Luca il 3 maggio
Luca's birthday on May 3rd | gym at 7 | yoga at 6:30pm on Monday | idraulico domani mattina
volo per Londra il 12 maggio | Marco domani alle dieci
"""
NO_NOTES = """
dentista | giovedì alle 16 | dentista giovedì alle 16? | arrivo domani alle 8 | meteo domani
che ho giovedì alle 16 | impegni di domani | tomorrow's appointments | foto di ieri
il dentista era ieri alle 16 | mail a Marco: arrivo alle 8 | I was at the dentist at 4 pm
cancella la riunione di giovedì alle 16 | treni per Milano domani alle 8 | ci vediamo alle 8
leggi la posta di domani alle 8 | when is the dentist on Thursday | latte alle 8
"""
ASKING = """
leggi la mia posta | posta nuova? | c'è posta? | ci sono mail nuove? | le ultime mail
messaggi non letti | controlla la posta | per favore leggi i messaggi | vorrei leggere la posta
read my mail | any new mail? | unread messages | check my inbox | I want to read my messages
hai ricevuto mail da Anna? | hi, read the mail
"""
NOT_ASKING = """
messaggio ricevuto, grazie | ti ho scritto un messaggio | grazie del messaggio | messaggio
ho letto la mail di Anna | mi è arrivata una mail strana | i messaggi li leggo dopo
la posta è lenta oggi | message received, thanks | I wrote you a message | I read your message
thanks for the message | I got an email from Anna | the mail is slow today | che bella mail
"""


def each(text: str) -> list[str]:
    return [one.strip() for line in text.strip().splitlines() for one in line.split(" | ")]


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    return CatalogLoader.of(signed_home(tmp_path_factory.mktemp("home"))).current()


@pytest.fixture(scope="module")
def planner(catalog: Catalog) -> Planner:
    return Planner(ScriptedModel([]), replace(catalog, dormant={}))


def wish(planner: Planner, text: str) -> Wish:
    context = planner.context(text, "it")
    return planner.proposer.wish(context, Candidates().best(context, k_max=24))


@pytest.mark.parametrize("text", each(NOTES))
def test_note_of_an_event_is_one_and_its_tool_is_the_only_one(planner: Planner, text: str):
    assert notes_event(text)
    assert set(wish(planner, text).tools) == {"create_events"}
    assert "create_events" in Candidates().choose(planner.context(text, "it"), k_max=12)


@pytest.mark.parametrize("text", each(NO_NOTES))
def test_what_asks_orders_or_tells_is_no_note(text: str):
    assert not notes_event(text)


@pytest.mark.parametrize(
    ("text", "tool", "acts"),
    [
        ("latte nella lista della spesa", "write_lists", True),
        ("milk and eggs on the shopping list", "write_lists", True),
        ("meteo domani", "get_weather", False),
        ("weather tomorrow", "get_weather", False),
        ("posta nuova?", "read_messages", False),
        ("any new mail?", "read_messages", False),
        ("impegni di domani", "read_events", False),
        ("tomorrow's appointments", "read_events", False),
        ("numero di Anna", "find_contacts", False),
        ("farmacia più vicina", "find_places", False),
        ("nearest pharmacy", "find_places", False),
        ("spazio su disco", "get_host", False),
        ("disk space", "get_host", False),
        ("mail a Marco: arrivo alle 8", "send_messages", True),
        ("email to Marco: arriving at 8", "send_messages", True),
        ("messaggio ad Anna: arrivo", "send_messages", True),
        ("message to Anna: on my way", "send_messages", True),
        ("email di ieri", "read_messages", False),
        ("messages from Anna", "read_messages", False),
        ("via il latte dalla lista della spesa", "delete_lists", True),
        ("milk off the shopping list", "delete_lists", True),
        ("cosa c'è nella lista della spesa", "read_lists", False),
        ("what is on the shopping list", "read_lists", False),
        ("pioggia domani?", "get_weather", False),
        ("rain tomorrow?", "get_weather", False),
        ("libero domani?", "find_events_empty", False),
        ("duplicati in Foto", "find_files_hash", False),
    ],
)
def test_verbless_request_has_its_tool_and_makes_nothing_else(
    planner: Planner, text: str, tool: str, acts: bool
):
    found = wish(planner, text)

    assert tool in found.tools
    assert found.acting == ({tool} if acts else set())
    assert tool in Candidates().choose(planner.context(text, "it"), k_max=12)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("latte e uova nella lista della spesa", "write_lists"),
        ("milk and eggs on my shopping list", "write_lists"),
        ("leggi il latte nella lista", ""),
        ("il latte è nella lista", ""),
        ("what is on the shopping list", ""),
        ("mail to Marco: milk is on the list", "send_messages"),
        ("messaggio da Anna: arrivo", ""),
    ],
)
def test_deed_without_a_verb(text: str, tool: str):
    assert deed_of(text) == tool


def test_question_that_asks_for_a_deed_is_not_only_one():
    assert is_question("posta nuova?")
    assert not is_question("puoi segnare dentista giovedì?")
    assert not is_question("can you make a new folder?")


@pytest.mark.parametrize(
    ("texts", "kind"), [(ASKING, AccountKind.MAIL), (NOT_ASKING, None)], ids=["asks", "speaks"]
)
def test_account_is_lacking_for_what_is_asked_not_for_what_is_spoken_of(
    planner: Planner, catalog: Catalog, texts: str, kind: AccountKind | None
):
    for text in each(texts):
        context = planner.context(text, "it")
        asleep = catalog_for(context.actor, catalog)
        assert asks(text) is (kind is not None), text
        assert Candidates().lacking(replace(context, catalog=asleep)) is kind, text
