"""A `World` with many people: paired fast, and asked how their chats stand."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.messages import Role
from tests.support.scripted_model import Rule
from tests.support.world import World, open_world

LONG = 60.0
"""Seconds to wait for what must come; the machine may be busy."""


class Town(World):
    """A world whose people are paired by codes made beside the running bot."""

    def pair_all(self, names: Sequence[str], role: Role, *, lang: str = "it") -> None:
        """Everybody sends a code of their own and is welcomed."""
        for name in names:
            self.telegram.user(name, language_code=lang)
            self.telegram.say(name, f"/start {self.code(role)}")
            self.telegram.expect(name, "", timeout=LONG)

    def restart(self, *, kill: bool = True) -> None:
        self.telegram.stop_bot(kill=kill)
        self.telegram.start_bot()

    def open_rows(self) -> dict[str, int]:
        """Rows that still want work, by table; all zero when nothing was lost."""
        queries = {
            "inbox": "SELECT count(*) FROM inbox WHERE state NOT IN ('done', 'dead')",
            "outbox": "SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'unknown', 'dead')",
            "turns": "SELECT count(*) FROM turns WHERE state <> 'closed'",
            "effects": "SELECT count(*) FROM effects WHERE state = 'started'",
        }
        return {name: int(self.rows(sql)[0][0]) for name, sql in queries.items()}

    def settle(self) -> None:
        """Wait for the commits that follow the last answer."""
        self.wait_for(lambda: not any(self.open_rows().values()), timeout=LONG, what="last commit")

    def execute(self, sql: str) -> None:
        """Change the database, beside the bot if it runs."""
        connection = sqlite3.connect(self.home / "private/metnos.db", timeout=10)
        try:
            with connection:
                connection.execute(sql)
        finally:
            connection.close()

    def is_sound(self) -> bool:
        return self.rows("PRAGMA integrity_check") == [("ok",)]


@contextmanager
def open_town(tmp: Path, rules: Sequence[Rule], **env: str) -> Iterator[Town]:
    """The town with its servers; `telegram.start_bot()` starts the bot."""
    with open_world(tmp, rules, **env) as world:
        world.__class__ = Town
        assert isinstance(world, Town)
        yield world
