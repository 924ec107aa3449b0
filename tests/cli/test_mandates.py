"""`metnos grants agreed` and `forget`: what need not be asked again, beside a running engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from bot.cli.beside import write_store
from core.clock import SystemClock
from core.config import load_settings
from core.store import actors, approvals
from core.store.approvals import Bond
from core.store.database import Transaction
from tests.cli.conftest import Cli


def test_agreed_lists_what_stands_and_forget_takes_it_back(cli: Cli) -> None:
    assert cli("grants", "agreed").out == "No yes for good.\n"

    async def work(tx: Transaction) -> None:
        host = await actors.ensure_local_host(tx, SystemClock())
        now = datetime.now(UTC)
        bond = Bond("empty the box", "delete_files", "0" * 64, "1" * 64, ("/srv/box",))
        await approvals.grant(tx, host.id, bond, most=34, now=now)
        await approvals.remember_recipients(tx, host.id, ["Anna@posta.example"], now)

    write_store(load_settings(), work)
    listed = cli("grants", "agreed")
    data = json.loads(cli("grants", "agreed", "--json").out)

    assert "«empty the box»" in listed.out
    assert "/srv/box" in listed.out
    assert "at most 34 items" in listed.out
    assert "anna@posta.example" in listed.out
    assert [one["most"] for one in data["mandates"]] == [34]
    assert cli("grants", "forget", str(data["mandates"][0]["id"])).out == (
        "Taken back: «empty the box»\n"
    )
    assert cli("grants", "forget", "ANNA@posta.example").status == 0
    assert cli("grants", "forget", "anna@posta.example").status == 1
    assert cli("grants", "forget", "1").status == 1
    assert cli("grants", "agreed").out == "No yes for good.\n"
