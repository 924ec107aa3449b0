"""Sendings to people who are named: found, chosen between, asked for, and reached in Telegram."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import ChatAddress, Role, TurnClosed, TurnSuspended
from core.store import actors, effects
from tests.core.test_questions import press
from tests.core.test_questions import said as said_by_id
from tests.support.executors import manifest_toml, signed_executor
from tests.support.house import open_scripted
from tests.support.scripted_model import Ask, Rule

PEOPLE = {
    "Anna Rossi": "anna.rossi@posta.example",
    "Anna Bianchi": "anna.bianchi@posta.example",
    "Carlo": "carlo@posta.example",
}
PAIRED = (("Berta", "77"), ("Carlo", "78"))
QUERY = """
[args.properties.query]
type = "string"
description = { it = "chi", en = "who" }
x-metnos-type = "span"

[args.properties.max_results]
type = "integer"
description = { it = "quanti", en = "how many" }
x-metnos-type = "number"
"""
CODE = f"""
def run(call):
    people = {json.dumps(PEOPLE)}
    wanted = call.args["query"].lower()
    found = [dict(ok=True, name=n, email=m) for n, m in people.items() if wanted in n.lower()]
    return dict(ok=True, entries=found, metadata=dict(count=len(found)))
"""


def sends(**args: Any) -> list[Rule]:
    def call(ask: Ask) -> list[tuple[str, Mapping[str, Any]]]:
        name = ask.user.split()[2].strip(",:")
        return [("send_messages", {"to": [name], "body": "ciao", **args})]

    return [Rule(after=0, calls=call), Rule(text="Ecco.")]


@asynccontextmanager
async def home(
    tmp_path: Path,
    rules: list[Rule],
    people: Sequence[tuple[str, str]] = PAIRED,
    **settings: Any,
) -> AsyncIterator[House]:
    async with open_scripted(tmp_path, rules, metnos_memory=False, **settings) as (house, _):
        signed_executor(house.settings, manifest_toml("find_contacts", args=QUERY), CODE)
        async with house.stores.main.write() as tx:
            for name, sender in people:
                guest = await actors.add(tx, Role.GUEST, name, house.clock)
                await actors.link(tx, "telegram", sender, guest.id)
        yield house


async def said(house: House, text: str, **fields: Any) -> Any:
    return (await said_by_id(house, text, id=f"test:{house.clock.new_id()}", **fields))[-1]


async def tap(house: House, shown: Any, label: str) -> Any:
    return (await press(house, shown, label, id=f"t:{house.clock.new_id()}"))[-1]


async def queued(house: House, chat: str) -> list[dict[str, Any]]:
    async with house.stores.main.read() as tx:
        rows = await tx.fetch_all(
            "SELECT body FROM outbox WHERE chat_key = ? ORDER BY place",
            (ChatAddress("telegram", chat).key,),
        )
    return [json.loads(row["body"]) for row in rows]


async def test_paired_person_gets_it_in_telegram_once_after_a_yes(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    note = tmp_path / "notes/lista.md"
    note.write_text("pane")
    async with home(tmp_path, sends(attachments=[str(note)])) as house:
        card = await said(house, f"manda a Berta: ciao, con {note}")
        assert isinstance(card, TurnSuspended)
        assert card.reply.plain.startswith("✋ Mando a Berta (Telegram)?")
        assert await queued(house, "77") == []
        end = await tap(house, card, "✅")
        again = (await press(house, card, "✅", id="t:again"))[-1]

        assert isinstance(end, TurnClosed)
        assert isinstance(again, TurnClosed)
        [message] = await queued(house, "77")
        assert ["text", "ciao"] in message["blocks"]
        assert [file["name"] for file in message["attachments"]] == ["lista.md"]
        async with house.stores.main.read() as tx:
            [effect] = await effects.of_turn(tx, end.turn_id)
        assert effect.state is effects.EffectState.DONE


async def test_refused_sending_reaches_nobody(tmp_path: Path) -> None:
    async with home(tmp_path, sends()) as house:
        card = await said(house, "manda a Berta: ciao")
        end = await tap(house, card, "✋")

        assert end.error.code is ErrorCode.DECLINED
        assert await queued(house, "77") == []


async def test_one_of_several_is_chosen_and_stands_on_the_card(tmp_path: Path) -> None:
    async with home(tmp_path, sends()) as house:
        which = await said(house, "manda a Anna: ciao")
        assert isinstance(which, TurnSuspended)
        assert which.reply.plain.startswith("Ho 2 «Anna». A chi scrivo?")
        end = await tap(house, which, "Bianchi")

        # There is no mail account: the very address has come as far as the program that sends.
        assert end.error.code is ErrorCode.NEEDS_CREDENTIALS
        assert await queued(house, "77") == []


async def test_contact_and_paired_person_are_told_apart_by_the_words(tmp_path: Path) -> None:
    async with home(tmp_path, sends()) as house:
        both = await said(house, "manda a Carlo: ciao")
        labels = [b.label for row in both.reply.buttons for b in row]
        assert labels[:2] == ["Carlo (Telegram)", "Carlo <carlo@posta.example>"]
        await said(house, "annulla")
        chat = await said(house, "manda a Carlo su Telegram: ciao")
        assert chat.reply.plain.startswith("✋ Mando a Carlo (Telegram)?")
        await said(house, "annulla")
        mail = await said(house, "manda a Carlo una mail: ciao")
        assert mail.error.code is ErrorCode.NEEDS_CREDENTIALS


async def test_nobody_of_that_name_is_asked_for(tmp_path: Path) -> None:
    async with home(tmp_path, sends()) as house:
        asked = await said(house, "manda a Zoe: ciao")
        assert isinstance(asked, TurnSuspended)
        assert asked.reply.plain.startswith("Non trovo nessun «Zoe» tra i tuoi contatti.")
        card = await said(house, "Berta")

        assert card.reply.plain.startswith("✋ Mando a Berta (Telegram)?")


@pytest.mark.parametrize(
    ("lang", "words", "which", "none"),
    [
        ("it", "manda su Telegram a Berta, Anna e Zoe: ciao", "Ho 2 «Anna».",
         "Non trovo nessun «Zoe»"),
        ("en", "send Berta, Anna and Zoe this on Telegram: ciao", "I have 2 “Anna”.",
         "I find no “Zoe”"),
    ],
)  # fmt: skip
async def test_of_several_names_those_that_are_not_clear_are_asked_about(
    tmp_path: Path, lang: str, words: str, which: str, none: str
) -> None:
    to = ["Berta", "Anna", "Zoe"]
    rules = [Rule(after=0, calls=[("send_messages", {"to": to, "body": "ciao"})]), Rule(text="k")]
    people = (*PAIRED, ("Anna Verdi", "79"), ("Anna Neri", "80"))
    async with home(tmp_path, rules, people, metnos_lang=lang) as house:
        asked = await said(house, words)
        assert asked.reply.plain.startswith(which)
        asked = await tap(house, asked, "Anna Neri")
        assert asked.reply.plain.startswith(none)
        card = await said(house, "Carlo")
        for name in ("Berta", "Anna Neri", "Carlo"):
            assert f"{name} (Telegram)" in card.reply.plain
        assert "Verdi" not in card.reply.plain
        await tap(house, card, "✅")

        assert [len(await queued(house, chat)) for chat in ("77", "78", "79", "80")] == [
            1,
            1,
            0,
            1,
        ]


async def test_address_beside_a_name_that_was_asked_about_is_no_word_of_the_persons(
    tmp_path: Path,
) -> None:
    to = ["Anna", "ladro@altrove.example"]
    rules = [Rule(after=0, calls=[("send_messages", {"to": to, "body": "ciao"})]), Rule(text="k")]
    async with home(tmp_path, rules) as house:
        asked = await said(house, "manda una mail a Anna: ciao")
        end = await tap(house, asked, "Bianchi")

        assert asked.reply.plain.startswith("Ho 2 «Anna».")
        assert "Non sono sicuro di quale elemento intendi" in end.reply.plain
        assert "Non ho cambiato nulla." in end.reply.plain


async def test_guest_sends_to_nobody_else(tmp_path: Path) -> None:
    async with home(tmp_path, sends()) as house:
        who: dict[str, Any] = {"address": ChatAddress("telegram", "78"), "sender_id": "78"}
        end = await said(house, "manda a Berta: ciao", **who)

        assert isinstance(end, TurnClosed)
        assert await queued(house, "77") == []
