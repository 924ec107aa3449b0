"""A whole world for journeys: the bot as a process, a fake Bot API and a scripted model over HTTP.

The bot sees nothing of the test's environment but what stands here.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.clock import SystemClock
from core.config import load_settings
from core.messages import Role
from core.store import pairing
from core.store.stores import open_stores
from tests.support.executors import prepare_home
from tests.support.harness import Harness
from tests.support.processes import PATIENCE_S
from tests.support.scripted_model import Rule, ScriptedModel

REPO = Path(__file__).resolve().parents[2]


class World:
    """One home, one bot, any number of people."""

    def __init__(
        self, tmp: Path, model: ScriptedModel, base_url: str, env: dict[str, str]
    ) -> None:
        self.tmp, self.model = tmp, model
        self.home, self.notes = tmp / "home", tmp / "notes"
        self.notes.mkdir(exist_ok=True)
        self.env = {
            "METNOS_HOME": str(self.home),
            "METNOS_LANG": "it",
            "METNOS_TZ": "Europe/Rome",
            "METNOS_LLM_BASE_URL": base_url,
            "METNOS_LLM_MODEL": "scripted",
            "METNOS_ENGINE": "simple",
            "METNOS_MOST_TOOLS": "60",  # scripts call tools that their requests do not speak of
            "METNOS_MEMORY": "0",  # requests are repeated here to be planned anew
            "METNOS_CONSOLE": "off",  # worlds stand side by side, and would share its port
            "METNOS_FILES_ROOTS": str(self.notes),
            "METNOS_PRIVATE_HOSTS": "127.0.0.1",
            "PYTHONPATH": str(REPO),
            "PATH": os.defpath,
            "HOME": str(tmp),
            **env,
        }
        prepare_home(self.home)
        command = [sys.executable, "-m", "bot", "run"]
        self.telegram: Any = Harness(
            command, env=self.env, cwd=tmp, log=tmp / "bot.log", inherit=False
        )
        self.telegram.forks = True

    def cli(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A `metnos` command beside the bot."""
        return subprocess.run(
            [sys.executable, "-m", "bot", *args],
            env={**self.env, **self.telegram.bot_env()},
            cwd=self.tmp,
            capture_output=True,
            text=True,
            check=check,
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    def host(self, name: str = "anna", *, lang: str = "it") -> str:
        """A person who is paired as the host; the bot runs."""
        return self._pair(name, Role.HOST, lang)

    def guest(self, name: str, *, lang: str = "it") -> str:
        return self._pair(name, Role.GUEST, lang)

    def _pair(self, name: str, role: Role, lang: str) -> str:
        self.telegram.user(name, language_code=lang)
        self.telegram.say(name, f"/start {self.code(role)}")
        self.telegram.expect(name, "", timeout=PATIENCE_S)
        return name

    def code(self, role: Role) -> str:
        """A pairing code, made as `metnos pair` makes it, without its half second of start."""

        async def make() -> str:
            clock = SystemClock()
            stores = await open_stores(load_settings(metnos_home=self.home), clock)
            try:
                async with stores.main.write() as tx:
                    return await pairing.create_code(tx, role, clock)
            finally:
                await stores.close()

        return asyncio.run(make())

    def texts(self, name: str) -> list[str]:
        return [text for text in self.telegram.texts(name) if text]

    def log_lines(self) -> list[dict[str, Any]]:
        """Every line of the turn log, oldest first."""
        return [
            json.loads(line)
            for path in sorted((self.home / "turns").glob("*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()
        ]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(f"file:{self.home / 'private/metnos.db'}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def wait_for(self, test: Any, *, timeout: float = 60, what: str = "it") -> None:
        end = time.monotonic() + timeout
        while not test():
            assert time.monotonic() < end, f"{what} did not happen\n{self.telegram.tail()}"
            time.sleep(0.02)


@contextmanager
def open_world(tmp: Path, rules: Sequence[Rule], **env: str) -> Iterator[World]:
    """The world with its servers; the bot is started by `world.telegram.start_bot()`."""
    model = ScriptedModel(list(rules))
    with model.running() as base_url:
        world = World(tmp, model, base_url, env)
        with world.telegram:
            yield world
