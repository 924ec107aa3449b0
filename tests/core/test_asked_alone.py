"""What is wished in a group but asked one person alone: put in private, told in the group."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import (
    ChatAddress,
    FinalKind,
    InboundKind,
    QuestionSettled,
    Reply,
    Role,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.store import actors, outbox, suspensions, turns
from tests.core.test_questions import note
from tests.support.house import events_of, inbound, open_scripted, until
from tests.support.scripted_model import Ask, Rule, ScriptedModel

GROUP = ChatAddress("telegram", "-1007", "3")
ALONE = ChatAddress("telegram", "42")
CANARY = "canary-ada-71"
LOGIN = [{"var": "word", "prompt": "Che parola d'ordine?", "kind": "secret"}]
RULES = [
    Rule(user="porta", after=0, calls=[("get_inputs", {"fields": LOGIN})]),
    Rule(user="porta", after=1, text="Grazie."),
    Rule(user="vicino", after=0, calls=[("request_location_from_user", {"prompt": "Dove sei?"})]),
    Rule(user="vicino", after=1, text="Visto."),
    Rule(user="cancella", after=0, calls=[("delete_files", {"paths": ["a.md"]})]),
    Rule(user="cancella", after=1, text="Fatto."),
    Rule(text="Non so."),
]


@asynccontextmanager
async def home(tmp_path: Path, *more: Rule) -> AsyncIterator[tuple[House, ScriptedModel]]:
    async with open_scripted(tmp_path, [*more, *RULES]) as (house, model):
        async with house.stores.main.write() as tx:
            host = await actors.find_host(tx)
            assert host is not None
            await actors.link(tx, "telegram", "42", host.id)
        yield house, model


async def said(
    house: House, text: str, *, at: ChatAddress, sender: str = "42", **fields: Any
) -> list[TurnEvent]:
    """What somebody says in the group or alone; a channel knows where a person is alone."""
    alone = ChatAddress("telegram", sender) if at == GROUP else None
    fields.setdefault("id", f"test:{house.clock.new_id()}")
    return await events_of(
        house, inbound(text, address=at, sender_id=sender, alone=alone, **fields)
    )


async def waits(house: House, text: str) -> TurnSuspended:
    last = (await said(house, text, at=GROUP))[-1]
    assert isinstance(last, TurnSuspended), last
    return last


async def rows(house: House, address: ChatAddress) -> list[Reply]:
    """What has been put into the outbox for a conversation, in its order."""
    async with house.stores.main.read() as tx:
        found = await tx.fetch_all(
            "SELECT body FROM outbox WHERE chat_key = ? ORDER BY place", (address.key,)
        )
    return [Reply.from_json(json.loads(row["body"])) for row in found]


async def test_secret_wished_in_a_group_is_asked_alone_and_the_answer_told_in_the_group(
    tmp_path: Path,
) -> None:
    async with home(tmp_path) as (house, model):
        await waits(house, "apri la porta")

        (asked,) = await rows(house, ALONE)
        (notice,) = await rows(house, GROUP)
        assert asked.secret
        assert "«apri la porta»" in asked.plain
        assert "Che parola d'ordine?" in asked.plain
        assert notice.plain == "Questo te lo chiedo in privato: rispondimi lì."
        assert notice.buttons == ()

    async with home(tmp_path) as (house, model):  # also across a restart
        events = await said(house, CANARY, at=ALONE)

        settled = [event for event in events if isinstance(event, QuestionSettled)]
        end = events[-1]
        assert settled[0].text.endswith("continuo nel gruppo.")
        assert isinstance(end, TurnClosed)
        assert end.final_kind is FinalKind.ANSWER
        assert (await rows(house, GROUP))[-1].plain.startswith("Grazie.")
        assert CANARY not in str([ask.body for ask in model.asked])
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, end.turn_id)
        assert stored is not None
        assert stored.conversation == GROUP.key
    for path in (tmp_path / "home").rglob("*"):
        assert not path.is_file() or CANARY.encode() not in path.read_bytes(), path


async def test_place_wished_in_a_group_is_asked_alone(tmp_path: Path) -> None:
    async with home(tmp_path) as (house, _):
        question = await waits(house, "che c'è vicino?")
        assert question.reply.expects == "location"

        in_group = (
            await said(
                house, "", at=GROUP, kind=InboundKind.LOCATION, data={"lat": 45.0, "lon": 7.6}
            )
        )[-1]
        assert isinstance(in_group, TurnClosed)
        assert in_group.turn_id != question.turn_id

        end = (
            await said(
                house, "", at=ALONE, kind=InboundKind.LOCATION, data={"lat": 45.0, "lon": 7.6}
            )
        )[-1]

        assert isinstance(end, TurnClosed)
        assert end.turn_id == question.turn_id
        assert (await rows(house, GROUP))[-1].plain.startswith("Visto.")


async def test_consent_wished_in_a_group_is_asked_there(tmp_path: Path) -> None:
    note(tmp_path)
    async with home(tmp_path) as (house, _):
        await waits(house, "cancella a.md")

        assert await rows(house, ALONE) == []
        assert (await rows(house, GROUP))[-1].plain.startswith("✋ Elimino")


@pytest.mark.parametrize("sender", ["42", "7"], ids=["their own words", "somebody else's"])
async def test_words_in_the_group_answer_nothing_that_is_asked_alone(
    tmp_path: Path, sender: str
) -> None:
    async with home(tmp_path) as (house, _):
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, "telegram", "7", guest.id)
        question = await waits(house, "apri la porta")
        token = question.reply.buttons[-1][0].token

        pressed = await said(
            house, "", at=GROUP, sender=sender, kind=InboundKind.CHOICE, data={"token": token}
        )
        told = (await said(house, "annulla", at=GROUP, sender=sender))[-1]

        async with house.stores.main.read() as tx:
            ((_, state),) = await suspensions.of_turn(tx, question.turn_id)
        assert state == "open"
        assert isinstance(pressed[-1], TurnClosed)
        assert pressed[-1].error is not None
        assert pressed[-1].error.code is ErrorCode.NOT_AUTHORIZED
        assert told.turn_id != question.turn_id


async def test_answer_given_alone_waits_for_what_the_group_works_on(tmp_path: Path) -> None:
    begun, gate = threading.Event(), threading.Event()

    def slowly(_: Ask) -> str:
        begun.set()
        gate.wait(60)
        return "Eccomi."

    async with home(tmp_path, Rule(user="lento", text=slowly)) as (house, _):
        question = await waits(house, "apri la porta")
        slow = asyncio.create_task(said(house, "lento", at=GROUP))
        await until(begun.is_set)

        answers = [asyncio.create_task(said(house, CANARY, at=ALONE)) for _ in range(2)]
        await asyncio.sleep(0.2)
        async with house.stores.main.read() as tx:
            ((_, state),) = await suspensions.of_turn(tx, question.turn_id)
        assert state == "open"
        gate.set()
        await slow
        both = await asyncio.gather(*answers)

        assert (await rows(house, GROUP))[-2].plain.startswith("Eccomi.")
        assert (await rows(house, GROUP))[-1].plain.startswith("Grazie.")
        ends = [events[-1] for events in both if events[-1].turn_id == question.turn_id]
        assert len(ends) == 1


async def test_question_asked_alone_that_runs_out_is_told_in_the_group(tmp_path: Path) -> None:
    async with home(tmp_path) as (house, _):
        question = await waits(house, "apri la porta")
        async with house.stores.main.write() as tx:
            past = (house.clock.now() - timedelta(seconds=1)).timestamp()
            await tx.execute("UPDATE suspensions SET expires_at = ?", (past,))

        told = await house.turns.expire()

        assert {address for address, _ in told} == {GROUP}
        assert told[-1][1].turn_id == question.turn_id
        assert (await rows(house, GROUP))[-1].plain.startswith("Non ho avuto risposta")
        assert await house.turns.expire() == []


@pytest.mark.parametrize("where", [GROUP, ALONE], ids=["in the group", "alone"])
async def test_stop_drops_what_is_asked_alone(tmp_path: Path, where: ChatAddress) -> None:
    async with home(tmp_path) as (house, _):
        question = await waits(house, "apri la porta")

        assert await house.turns.stop(where, "42")
        assert not await house.turns.stop(where, "42")

        async with house.stores.main.read() as tx:
            ((_, state),) = await suspensions.of_turn(tx, question.turn_id)
        assert state == "cancelled"
        assert (await rows(house, GROUP))[-1].plain.startswith("Va bene, lascio stare")


async def test_chat_that_was_never_opened_is_told_in_the_group_and_can_be_tried_again(
    tmp_path: Path,
) -> None:
    async with home(tmp_path) as (house, _):
        question = await waits(house, "apri la porta")
        assert await house.turns.expire() == []
        async with house.stores.main.write() as tx:
            now = house.clock.now()
            while (item := await outbox.claim_next(tx, "telegram", now=now)) is not None:
                if item.key == question.outbox_key:
                    await outbox.mark_dead(tx, item.key, "forbidden", now)
                else:
                    await outbox.mark_sent(tx, item.key, "11", now)

        told = await house.turns.expire()

        end = told[-1][1]
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.PRIVATE_CHAT_CLOSED
        said_there = (await rows(house, GROUP))[-1]
        assert "apri la chat con me" in said_there.plain
        assert [b.label for row in said_there.buttons for b in row] == ["🔁 Richiedimelo"]
        assert await house.turns.expire() == []
        late = (await said(house, CANARY, at=ALONE, data={"secret": True}))[-1]
        assert isinstance(late, TurnClosed)
        assert late.error is not None
