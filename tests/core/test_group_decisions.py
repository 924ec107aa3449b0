"""In a group a question is its asker's; what is to be allowed the host may decide too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bot.app import House
from core.errors import ErrorCode
from core.messages import (
    Actor,
    ChatAddress,
    InboundKind,
    QuestionSettled,
    Role,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.store import actors, turns
from tests.support.house import events_of, inbound, open_scripted, until
from tests.support.scripted_model import Rule

GROUP = ChatAddress("telegram", "-1007")
HOST, GUEST, OTHER = "42", "43", "44"
RULES = [
    Rule(user="cancella", after=0, calls=[("delete_files", {"paths": ["a.md"]})]),
    Rule(user="cancella", after=1, text="Fatto."),
    Rule(text="Non so."),
]


@asynccontextmanager
async def home(tmp_path: Path, *, delay: float = 0) -> AsyncIterator[tuple[House, Actor, Path]]:
    """A house with a host and two guests, one of whom has a file."""
    async with open_scripted(tmp_path, RULES) as (house, model):
        model.delay = delay
        async with house.stores.main.write() as tx:
            host = await actors.find_host(tx)
            assert host is not None
            await actors.link(tx, "telegram", HOST, host.id)
            guests = [await actors.add(tx, Role.GUEST, name, house.clock) for name in "ab"]
            for sender, guest in zip((GUEST, OTHER), guests, strict=True):
                await actors.link(tx, "telegram", sender, guest.id)
        note = house.settings.metnos_home / "files" / guests[0].id / "a.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text("mio")
        yield house, guests[0], note


async def said(house: House, sender: str, text: str = "", token: str = "") -> list[TurnEvent]:
    kind = InboundKind.CHOICE if token else InboundKind.TEXT
    data = {"token": token} if token else {}
    alone = ChatAddress("telegram", sender)
    id = f"test:{house.clock.new_id()}"
    return await events_of(
        house,
        inbound(text, id=id, address=GROUP, sender_id=sender, kind=kind, data=data, alone=alone),
    )


def token_of(event: TurnEvent, label: str) -> str:
    assert isinstance(event, TurnSuspended), event
    buttons = [button for row in event.reply.buttons for button in row]
    return next(button.token for button in buttons if label in button.label)


async def test_other_guest_cannot_decide_and_the_host_can_for_the_asker(tmp_path: Path) -> None:
    async with home(tmp_path) as (house, guest, note):
        asked = (await said(house, GUEST, "cancella a.md"))[-1]
        yes = token_of(asked, "Sì, questa")
        (refused,) = await said(house, OTHER, token=yes)
        stands = note.exists()
        events = await said(house, HOST, token=yes)
        again = await said(house, GUEST, token=yes)
        async with house.stores.main.read() as tx:
            stored = await turns.get(tx, events[-1].turn_id)

    assert isinstance(refused, TurnClosed)
    assert refused.error is not None
    assert refused.error.code is ErrorCode.NOT_AUTHORIZED
    assert stands
    settled = next(event for event in events if isinstance(event, QuestionSettled))
    assert "Approvato da chi mi ha in casa" in settled.text
    assert not note.exists()
    assert stored is not None
    assert (stored.actor_id, stored.state) == (guest.id, "closed")
    assert again[-1] == events[-1], "pressed again it only tells the end"


async def test_host_may_also_say_no_for_the_asker(tmp_path: Path) -> None:
    async with home(tmp_path) as (house, _, note):
        asked = (await said(house, GUEST, "cancella a.md"))[-1]
        events = await said(house, HOST, token=token_of(asked, "No"))

    settled = next(event for event in events if isinstance(event, QuestionSettled))
    assert "ha detto di no" in settled.text
    assert note.exists()


async def test_guest_cannot_decide_what_the_host_asked(tmp_path: Path) -> None:
    async with home(tmp_path) as (house, _, _note):
        (root,) = house.settings.metnos_files_roots or ()
        (root / "a.md").write_text("del padrone")
        asked = (await said(house, HOST, "cancella a.md"))[-1]
        (refused,) = await said(house, GUEST, token=token_of(asked, "Sì, questa"))

        assert (root / "a.md").exists()
    assert isinstance(refused, TurnClosed)
    assert refused.error is not None


async def test_turn_of_a_group_is_stopped_by_its_asker_or_the_host_alone(tmp_path: Path) -> None:
    async with home(tmp_path, delay=30) as (house, _, _note):
        for stopper in (GUEST, HOST):
            turn = asyncio.create_task(said(house, GUEST, "dimmi qualcosa"))
            await until(lambda: house.turns.status(GROUP) is not None)
            others = await house.turns.stop(GROUP, OTHER)
            mine = await house.turns.stop(GROUP, stopper)
            await turn

            assert (others, mine) == (False, True)
