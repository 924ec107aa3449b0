"""`/help` and Telegram's menus say the same: every command there is, for whoever may use it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from bot.app import load_texts
from bot.telegram.commands import Commands
from bot.telegram.inbound import Command, Origin
from core.clock import SystemClock
from core.messages import Actor, ChatAddress, Role
from core.store.database import Database

# SPEC S16; /tasks comes with the scheduler, /console is there when the console is.
PRIVATE = {"start", "help", "stop", "status", "undo", "lang", "tz", "forget"}
HOST = PRIVATE | {"pair", "praxis"}
GROUP = PRIVATE - {"start"}


class Ear:
    """Hears the menus instead of Telegram."""

    def __init__(self) -> None:
        self.menus: dict[tuple[str, str], list[tuple[str, str]]] = {}

    async def set_my_commands(self, menu: Any, *, scope: Any, language_code: str | None) -> None:
        known = [(one.command, one.description) for one in menu]
        self.menus[scope.type, language_code or ""] = known


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize(
    ("role", "chat", "scope", "wanted"),
    [
        (Role.HOST, "9", "chat", HOST),
        (Role.GUEST, "7", "default", PRIVATE),
        (Role.GUEST, "-5", "all_group_chats", GROUP),
        (Role.HOST, "-5", "all_group_chats", GROUP),
    ],
)
async def test_help_lists_what_the_menu_has(
    tmp_path: Path, lang: str, role: Role, chat: str, scope: str, wanted: set[str]
) -> None:
    store = await Database.open(tmp_path / "metnos.db", durable=False)
    commands = Commands(
        store=store, texts=load_texts(), clock=SystemClock(), default_lang="it", tz="Europe/Rome"
    )
    ear = Ear()
    await commands.announce(ear, ["9"])  # type: ignore[arg-type]
    origin = Origin(ChatAddress("telegram", chat), "9", "Anna", lang, 5)

    said, spoken = await commands.run(
        Command(origin, "help", ""), Actor("a", role, "Anna", lang=lang)
    )

    await store.close()
    assert spoken == lang
    lines = re.findall(r"^/(\w+) · (.+)$", said, re.M)
    assert lines == ear.menus[scope, lang]
    assert {name for name, _ in lines} - {"console"} == wanted
    assert all(len(word) <= 60 for _, word in lines)
    other = "en" if lang == "it" else "it"
    same = set(ear.menus[scope, other]) & set(lines)
    assert not same, "no line is the same in both languages"
