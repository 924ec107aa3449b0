"""`metnos doctor --live`: a health check that asks nobody."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.store import kv
from core.store.lock import LOCK_FILE
from core.store.stores import open_stores
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("prepared")


async def _note(home: Path, age: dt.timedelta, conflict: str | None = None) -> None:
    """As a running bot leaves it: the lock names this process, which lives."""
    stores = await open_stores(load_settings(metnos_home=home), SystemClock())
    try:
        async with stores.main.write() as tx:
            at = (SystemClock().now() - age).isoformat()
            await kv.put(tx, "telegram.last_poll", at)
            if conflict is not None:
                await kv.put(tx, "telegram.conflict", f"{at} {conflict}")
    finally:
        await stores.close()
    (home / LOCK_FILE).write_text(f"{os.getpid()}\nrun\n", encoding="utf-8")


def note(cli: Cli, minutes: float, conflict: str | None = None) -> None:
    asyncio.run(_note(cli.home, dt.timedelta(minutes=minutes), conflict))


def test_bot_that_hears_telegram_is_alive(cli: Cli):
    note(cli, 0.5)

    assert cli("doctor", "--live").status == 0


@pytest.mark.parametrize(("minutes", "conflict"), [(9, None), (0.5, "@casa_bot")])
def test_bot_that_does_not_hear_or_shares_its_token_is_not(
    cli: Cli, minutes: float, conflict: str | None
):
    note(cli, minutes, conflict)
    ran = cli("doctor", "--live")

    assert ran.status == 1
    assert conflict is None or conflict in ran.out


def test_bot_that_is_off_is_not_alive(cli: Cli):
    ran = cli("doctor", "--live")

    assert (ran.status, "not running" in ran.out) == (1, True)
