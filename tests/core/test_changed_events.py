"""A moved or deleted event is put back by one word, on a real calendar server and in a file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from core.accounts import AccountKind
from core.messages import TurnClosed, TurnSuspended
from core.store import accounts, actors
from executors._sdk import ics
from tests.core.test_questions import press
from tests.core.test_questions import said as said_by_id
from tests.support import dav_server as dav
from tests.support.house import open_scripted
from tests.support.scripted_model import Ask, Rule

DAY = f"{datetime.now(ZoneInfo('Europe/Rome')) + timedelta(days=1):%Y%m%d}"
EVENT = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:d1\r\n"
    f"DTSTAMP:20260301T000000Z\r\nDTSTART:{DAY}T100000Z\r\nDTEND:{DAY}T110000Z\r\n"
    "SUMMARY:Dentista\r\nX-COLOR:red\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


def acts(ask: Ask) -> list[tuple[str, Mapping[str, Any]]]:
    if "cancella" in ask.user or "cancel" in ask.user:
        return [("delete_events", {"event_ids": ["{{step1.id}}"]})]
    return [
        (
            "change_events",
            {
                "event_ids": ["{{step1.id}}"],
                "start": "alle 15" if "sposta" in ask.user else "3 pm",
            },
        )
    ]


RULES = [
    Rule(
        user="dentist",
        after=0,
        calls=lambda ask: [("read_events", {"time_window": ask.user.split()[4]})],
    ),
    Rule(user="dentist", after=1, calls=acts),
    Rule(text="Ok."),
]


@pytest.mark.parametrize("keeps", ["server", "file"])
@pytest.mark.parametrize(
    ("lang", "words", "undo", "back"),
    [
        (
            "it",
            "sposta il dentista di domani alle 15",
            "annulla",
            "Rimesso com'era: Dentista",
        ),
        (
            "en",
            "move the dentist of tomorrow to 3 pm",
            "undo that",
            "Put back: Dentista",
        ),
    ],
)
async def test_moved_or_deleted_event_is_put_back(
    tmp_path: Path, lang: str, words: str, undo: str, back: str, keeps: str
) -> None:
    (tmp_path / "dav").mkdir()
    with dav.dav_host(tmp_path / "dav") as host:
        async with open_scripted(tmp_path, RULES, metnos_lang=lang, metnos_memory=False) as (
            house,
            _,
        ):
            file = tmp_path / "notes" / "Calendario.ics"

            def kept() -> list[str]:
                if keeps == "server":
                    return ics.blocks_of(host.read("casa/d1.ics") or "")
                return ics.blocks_of(file.read_bytes().decode())

            if keeps == "server":
                host.make("casa")
                host.put("casa/d1.ics", EVENT)
                async with house.stores.main.write() as tx:
                    person = await actors.find_host(tx)
                    assert person is not None
                    values = {"url": host.url, "user": dav.USER}
                    vault, now = house.stores.vault, house.clock.now()
                    kind = AccountKind.CALENDAR
                    await accounts.put(
                        tx, vault, person.id, "Casa", kind, values, dav.PASSWORD, now
                    )
            else:
                file.write_bytes(EVENT.encode())
            before = kept()
            card: Any = (await said_by_id(house, words, id="t:1"))[-1]
            assert isinstance(card, TurnSuspended), card.reply.plain
            end = (await press(house, card, "✅", id="t:2"))[-1]
            assert isinstance(end, TurnClosed)
            assert kept() != before
            undone: Any = (await said_by_id(house, undo, id="t:3"))[-1]

            assert back in undone.reply.plain
            assert kept() == before
            again: Any = (await said_by_id(house, undo, id="t:4"))[-1]
            assert kept() == before
            assert back not in again.reply.plain
