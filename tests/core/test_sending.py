"""Sendings: to whom, whose word that is, another address, and addresses that are known."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import ChatAddress, QuestionSettled, Role, TurnClosed, TurnEvent, TurnSuspended
from core.store import actors
from tests.core.test_questions import press, said
from tests.executors.web_server import web_server
from tests.support.house import LOCAL, open_scripted
from tests.support.mail import add_mail, fill_mailbox, folder_of
from tests.support.scripted_model import Rule

SHOP = "ordini@ferramenta.example"
ANNA = "anna@posta.example"


@asynccontextmanager
async def open_mail(tmp_path: Path, rules: Sequence[Rule]) -> AsyncIterator[House]:
    async with open_scripted(tmp_path, rules) as (house, _):
        if not (tmp_path / "notes/box").exists():
            add_mail(house.settings)
            letter = {"sender": SHOP, "subject": "Ciao", "text": "Rispondi qui"}
            fill_mailbox(tmp_path / "notes/box", {"m1": letter})
        yield house


def sends(to: str = SHOP, **args: Any) -> list[Rule]:
    """A model that reads the mailbox and writes to whoever it likes."""
    call = {"mailbox": "box", "to": to, "subject": "Chiavi a tubo", "text": "Ne avete?", **args}
    return [
        Rule(after=0, calls=[("read_messages", {"mailbox": "box"})]),
        Rule(after=1, calls=[("send_messages", call)]),
        Rule(text="Ecco."),
    ]


def writes(to: str = ANNA, **args: Any) -> list[Rule]:
    """A model that writes to somebody without having read anything."""
    call = {"mailbox": "box", "to": to, "subject": "Cena", "text": "Vieni?", **args}
    return [Rule(after=0, calls=[("send_messages", call)]), Rule(text="Ecco.")]


def sent(tmp_path: Path) -> list[str]:
    box = tmp_path / "notes/box"
    return [
        (box / "sent" / f"{name}.json").read_text().split('"')[3]
        for name in folder_of(box, "sent")
    ]


def labels(question: TurnEvent) -> list[str]:
    assert isinstance(question, TurnSuspended)
    return [button.label for row in question.reply.buttons for button in row]


async def asked(house: House, text: str, **fields: Any) -> TurnSuspended:
    last = (await said(house, text, **fields))[-1]
    assert isinstance(last, TurnSuspended), last
    return last


async def test_recipient_from_outside_is_shown_with_source_and_subject(tmp_path: Path) -> None:
    async with open_mail(tmp_path, sends()) as house:
        question = await asked(house, "rispondi alla mail in box")
        end = (await press(house, question, "Manda"))[-1]

    card = question.reply.plain
    assert card.startswith(f"✋ Mando a {SHOP}?")
    assert "L'indirizzo viene da qualcosa che ho letto (Ciao), non da te." in card
    assert "Oggetto: Chiavi a tubo" in card
    assert "Non si potrà annullare." in card
    assert labels(question) == ["✅ Manda", "✏️ Cambia indirizzo", "✋ No"]
    assert isinstance(end, TurnClosed)
    assert sent(tmp_path) == [SHOP]


async def test_recipient_from_a_page_names_the_page(tmp_path: Path) -> None:
    with web_server() as server:
        url = server.url("/page")
        rules = [
            Rule(after=0, calls=[("read_urls_html", {"urls": [url]})]),
            Rule(
                after=1,
                calls=[("send_messages", {"mailbox": "box", "to": "Orari", "text": "Ne avete?"})],
            ),
        ]
        async with open_mail(tmp_path, rules) as house:
            question = await asked(house, f"leggi {url} e manda una mail dalla box")

    assert (
        f"L'indirizzo viene da qualcosa che ho letto ({url}), non da te." in question.reply.plain
    )
    assert "Oggetto: Ne avete?" in question.reply.plain


async def test_refused_sending_sends_nothing(tmp_path: Path) -> None:
    async with open_mail(tmp_path, sends()) as house:
        question = await asked(house, "rispondi alla mail in box")
        end = (await press(house, question, "No"))[-1]

    assert isinstance(end, TurnClosed)
    assert end.error is not None
    assert end.error.code is ErrorCode.DECLINED
    assert sent(tmp_path) == []


async def test_address_that_the_person_types_is_asked_about_and_used(tmp_path: Path) -> None:
    async with open_mail(tmp_path, sends()) as house:
        question = await asked(house, "rispondi alla mail in box")
        events = await press(house, question, "Cambia indirizzo")
        which = events[-1]
        assert isinstance(which, TurnSuspended)
        assert which.reply.plain.startswith("A quale indirizzo lo mando?")
        assert which.reply.expects == "text"
        assert [e.text for e in events if isinstance(e, QuestionSettled)] == [
            "✏️ Cambi l'indirizzo: te lo chiedo qui sotto."
        ]

        again = (await said(house, ANNA))[-1]
        assert isinstance(again, TurnSuspended)
        assert sent(tmp_path) == []
        end = (await press(house, again, "Manda"))[-1]

    assert again.reply.plain.startswith(f"✋ Mando a {ANNA}?")
    assert "non da te" not in again.reply.plain
    assert "Oggetto: Chiavi a tubo" in again.reply.plain
    assert isinstance(end, TurnClosed)
    assert end.final_kind.value == "answer"
    assert sent(tmp_path) == [ANNA]


async def test_address_may_be_changed_twice_and_survives_a_restart(tmp_path: Path) -> None:
    async with open_mail(tmp_path, sends()) as house:
        question = await asked(house, "rispondi alla mail in box")
        await press(house, question, "Cambia indirizzo")
        again = (await said(house, "sbagliato@posta.example"))[-1]
        assert isinstance(again, TurnSuspended)
    async with open_mail(tmp_path, sends()) as house:
        await press(house, again, "Cambia indirizzo")
        last = (await said(house, ANNA))[-1]
        assert isinstance(last, TurnSuspended)
    async with open_mail(tmp_path, sends()) as house:
        await press(house, last, "Manda")

    assert sent(tmp_path) == [ANNA]


async def test_change_of_address_that_is_dropped_sends_nothing(tmp_path: Path) -> None:
    async with open_mail(tmp_path, sends()) as house:
        question = await asked(house, "rispondi alla mail in box")
        await press(house, question, "Cambia indirizzo")
        end = (await said(house, "lascia stare"))[-1]

    assert isinstance(end, TurnClosed)
    assert end.error is not None
    assert end.error.code is ErrorCode.CANCELLED
    assert sent(tmp_path) == []


async def test_recipient_that_the_person_named_has_no_source(tmp_path: Path) -> None:
    async with open_mail(tmp_path, sends(ANNA)) as house:
        question = await asked(house, f"leggi la mail in box e scrivi a {ANNA}")

    assert "non da te" not in question.reply.plain
    assert "Sempre" not in str(labels(question))


# -- full autonomy: who was agreed to before ------------------------------------------------------


async def set_autonomy(house: House, autonomy: str) -> None:
    async with house.stores.main.write() as tx:
        await tx.execute("UPDATE actors SET autonomy = :autonomy", {"autonomy": autonomy})


@pytest.mark.parametrize("autonomy", ["supervised", "full"])
async def test_address_that_was_agreed_to_is_asked_about_again_unless_autonomy_is_full(
    tmp_path: Path, autonomy: str
) -> None:
    async with open_mail(tmp_path, writes()) as house:
        await press(house, await asked(house, f"dalla box scrivi a {ANNA}"), "Manda")
        await set_autonomy(house, autonomy)

        last = (await said(house, f"dalla box scrivi ancora a {ANNA}"))[-1]

    assert isinstance(last, TurnClosed) is (autonomy == "full")
    assert sent(tmp_path) == [ANNA] * (2 if autonomy == "full" else 1)


async def test_full_autonomy_asks_for_new_addresses_and_for_those_from_outside(
    tmp_path: Path,
) -> None:
    async with open_mail(tmp_path, writes()) as house:
        await set_autonomy(house, "full")
        await press(house, await asked(house, f"dalla box scrivi a {ANNA}"), "Manda")
    async with open_mail(tmp_path, writes(SHOP)) as house:
        await press(house, await asked(house, f"dalla box scrivi a {SHOP}"), "No")
    async with open_mail(tmp_path, sends(ANNA)) as house:
        hers = '{"sender": "anna@posta.example", "subject": "Ciao", "text": "Scrivimi"}'
        (tmp_path / "notes/box/inbox/m2.json").write_text(hers)
        elsewhere = ChatAddress(LOCAL.channel, "elsewhere")  # where nobody spoke of her
        question = await asked(house, "rispondi alla mail in box", address=elsewhere)

    assert "non da te" in question.reply.plain
    assert sent(tmp_path) == [ANNA]


async def test_address_that_one_person_agreed_to_is_unknown_for_another(tmp_path: Path) -> None:
    async with open_mail(tmp_path, writes()) as house:
        await press(house, await asked(house, f"dalla box scrivi a {ANNA}"), "Manda")
        async with house.stores.main.write() as tx:
            other = await actors.add(tx, Role.GUEST, "Luca", house.clock)
            await actors.link(tx, LOCAL.channel, "7", other.id)
            await tx.execute("UPDATE recipients SET actor_id = :id", {"id": other.id})
        await set_autonomy(house, "full")

        await asked(house, f"dalla box scrivi ancora a {ANNA}")
