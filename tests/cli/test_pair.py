"""`metnos pair`: codes that the bot will take."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.messages import Role
from core.store import pairing
from core.store.lock import engine_lock
from core.store.stores import open_stores
from tests.cli.conftest import Cli
from tests.cli.test_setup import telegram  # noqa: F401
from tests.support.harness import Harness


def redeem(code: str) -> pairing.PairingResult:
    async def work() -> pairing.PairingResult:
        clock = SystemClock()
        stores = await open_stores(load_settings(), clock)
        try:
            async with stores.main.write() as tx:
                return await pairing.redeem_code(tx, code, "telegram", "7", "Anna", clock)
        finally:
            await stores.close()

    return asyncio.run(work())


@pytest.mark.parametrize("role", ["host", "guest"])
def test_pair_makes_a_code_that_makes_that_role(cli: Cli, role: str) -> None:
    ran = cli("pair", f"--{role}", "--json")

    said = json.loads(ran.out)
    result = redeem(said["code"])
    assert said["role"] == role
    assert said["link"] is None
    assert result.outcome is pairing.PairingOutcome.PAIRED
    assert result.actor is not None
    assert result.actor.role is Role(role)
    left = datetime.fromisoformat(said["expires_at"]) - datetime.now(UTC)
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)


def test_pair_shows_the_deep_link_of_the_bot(cli: Cli, telegram: Harness) -> None:  # noqa: F811
    cli.env(TELEGRAM_BOT_TOKEN=telegram.tg.token)

    ran = cli("pair", "--host")

    code = ran.out.split(": ")[1].split()[0]
    assert f"https://t.me/casa_bot?start={code}\n" in ran.out
    assert f"/pair {code}\n" in ran.out
    assert telegram.tg.token not in ran.out


def test_pair_without_telegram_still_gives_the_code(cli: Cli) -> None:
    cli.env(TELEGRAM_BOT_TOKEN="123456:" + "x" * 35, TELEGRAM_BASE_URL="http://127.0.0.1:9/bot")

    ran = cli("pair", "--host")

    assert ran.status == 0
    assert "does not tell the bot's name" in ran.out
    assert "/pair " in ran.out


@pytest.mark.parametrize("options", [[], ["--host", "--guest"]])
def test_pair_wants_exactly_one_role(cli: Cli, options: list[str]) -> None:
    ran = cli("pair", *options)

    assert ran.status == 2
    assert "--host" in ran.err


def test_pair_works_beside_a_running_engine(cli: Cli) -> None:
    cli("setup")

    with engine_lock(cli.home, "run"):
        assert cli("pair", "--guest").status == 0
