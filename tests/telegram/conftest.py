"""A fake Telegram and the test bot as a process, with people the bot knows."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.messages import Role
from core.store import actors, pairing
from core.store.stores import open_stores
from tests.support.harness import Harness

ROOT = Path(__file__).parents[2]


class World(Harness):  # type: ignore[misc]  # the harness is taken over untyped
    """The harness with our bot's home; people added before the start are known to the bot."""

    forks = True

    def __init__(self, tmp_path: Path, **fake) -> None:
        self.home, self.notes = tmp_path / "home", tmp_path / "notes"
        self.notes.mkdir(exist_ok=True)
        super().__init__(
            [sys.executable, "-m", "tests.telegram.bot_main"],
            env={
                "METNOS_HOME": str(self.home),
                "METNOS_LANG": "it",
                "METNOS_FILES_ROOTS": str(tmp_path / "notes"),
                "METNOS_TZ": "Europe/Rome",
                "PYTHONPATH": str(ROOT),
                "PATH": os.environ["PATH"],
            },
            cwd=tmp_path,
            log=tmp_path / "bot.log",
            inherit=False,
            **fake,
        )

    def know(self, *names: str, lang: str = "it") -> None:
        """People the bot knows: the first is the host."""
        ids = [str(self.user(name, language_code=lang)) for name in names]
        self.env["TEST_HOSTS"] = " ".join(ids)

    def code(self, role: Role = Role.HOST) -> str:
        """A pairing code made on the local machine, beside the running bot."""

        async def make() -> str:
            stores = await open_stores(load_settings(metnos_home=self.home), SystemClock())
            try:
                async with stores.main.write() as tx:
                    return await pairing.create_code(tx, role, SystemClock())
            finally:
                await stores.close()

        return asyncio.run(make())

    def revoke(self, name: str) -> None:
        """Withdraw somebody's right on the local machine, beside the running bot."""

        async def withdraw() -> None:
            stores = await open_stores(load_settings(metnos_home=self.home), SystemClock())
            try:
                async with stores.main.write() as tx:
                    actor = await actors.find_actor(tx, "telegram", str(self.names[name]))
                    assert actor is not None
                    await actors.revoke(tx, actor.id, SystemClock().now())
            finally:
                await stores.close()

        asyncio.run(withdraw())

    def rows(self, sql: str) -> list[tuple]:
        import sqlite3

        with sqlite3.connect(self.home / "private" / "metnos.db") as db:
            return db.execute(sql).fetchall()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as world:
        yield world
