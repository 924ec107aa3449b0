"""What the tests of the field's kinds stand on: one running bot a module, and people of their own
for every test, so that no test meets what another left.

The kinds are those of other assistants' bug reports. A test is named after its kind's number and
plays over HTTP against the fake Bot API; the model is scripted, everything else is real.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.clock import SystemClock
from core.config import load_settings
from core.messages import Role
from core.store import actors
from core.store.stores import open_stores
from tests.acceptance.town import LONG as LONG
from tests.acceptance.town import Town, open_town
from tests.support.catalogue import shipped_manifests
from tests.support.harness import said
from tests.support.scripted_model import Ask, Rule
from tests.support.served import problems

LANGS = ("it", "en")
both = pytest.mark.parametrize("lang", LANGS)

Call = tuple[str, dict[str, Any]]
NOW: Call = ("get_now", {})


class Field(Town):
    """A town where people come and go with the tests, and where the model learns as they go."""

    count: Iterator[int]

    def person(self, lang: str = "it", role: Role = Role.HOST, **user: Any) -> str:
        """Somebody the bot knows, whose phone speaks that language; the name. Hosts are one person
        with several phones, guests each their own."""
        name = self.stranger(lang, **user)
        sender = str(self.telegram.names[name])

        async def know() -> None:
            clock = SystemClock()
            stores = await open_stores(load_settings(metnos_home=self.home), clock)
            try:
                async with stores.main.write() as tx:
                    host = await actors.find_host(tx) if role is Role.HOST else None
                    actor = host or await actors.add(tx, role, name, clock)
                    await actors.link(tx, "telegram", sender, actor.id)
            finally:
                await stores.close()

        asyncio.run(know())
        return name

    def stranger(self, lang: str = "it", **user: Any) -> str:
        """Somebody the bot does not know; the name."""
        name = f"p{next(self.count)}"
        self.telegram.user(name, language_code=lang, **user)
        return name

    def teach(
        self,
        request: str,
        *calls: Call,
        answer: str | Callable[[Ask], str] = "Fatto.",
        delay: float = 0.0,
    ) -> None:
        """What the model does about a request: a call a step, then words."""
        user = f"^{re.escape(request)}$"
        rules = [Rule(user=user, after=n, calls=[call]) for n, call in enumerate(calls)]
        rules.append(Rule(user=user, text=answer, delay=delay))
        self.model.rules[:0] = rules

    def ask(
        self, name: str, request: str, text: str = "", *, chat: str | None = None, **wanted: Any
    ) -> dict[str, Any]:
        """Say something, in private or in a group, and wait for what answers it; the event."""
        self.telegram.say(name, request, chat=chat)
        return self.hear(chat or name, text, **wanted)

    def hear(self, name: str, text: str = "", **wanted: Any) -> dict[str, Any]:
        """Wait for words of the bot; its progress is none unless a text is looked for."""
        if not text and not wanted.keys() & {"where", "kind"}:
            wanted["where"] = lambda event: not _is_progress(said(event))
        event: dict[str, Any] = self.telegram.expect(name, text, timeout=LONG, **wanted)
        return event

    def asked(self, request: str) -> int:
        """How often the model was asked about a request."""
        return sum(ask.user == request for ask in self.model.asked)

    def events(self, name: str, *kinds: str) -> list[dict[str, Any]]:
        """All that happened in a person's chat so far, of these kinds."""
        chat = self.telegram.names[name]
        events = list(self.telegram.tg.events)
        return [e for e in events if e["chat_id"] == chat and e["kind"] in kinds]

    def turn(self, request: str) -> dict[str, Any]:
        """The log's last line of the turn with these words."""
        self.wait_for(lambda: self._lines(request), timeout=LONG, what="the log line")
        return self._lines(request)[-1]

    def effects_of(self, request: str) -> list[str]:
        """How the changes of a request stand, once its turn has ended."""
        query = "SELECT id FROM turns WHERE state = 'closed'"
        turn = self.turn(request)["turn_id"]
        self.wait_for(lambda: (turn,) in self.rows(query), timeout=LONG, what="the end")
        rows = self.rows("SELECT state, turn_id FROM effects ORDER BY turn_id, step")
        return [state for state, of in rows if of == turn]

    def _lines(self, request: str) -> list[dict[str, Any]]:
        return [line for line in self.log_lines() if line["user_query"] == request]

    def let_expire(self, name: str) -> None:
        """The open questions of a person run out now."""
        chat = self.telegram.names[name]
        self.execute(
            f"UPDATE suspensions SET expires_at = 1 WHERE state = 'open'"
            f" AND conversation = 'telegram:{chat}:'"
        )

    def is_all_sent(self) -> bool:
        return not self.rows("SELECT 1 FROM outbox WHERE state IN ('sending', 'pending')")

    def crash(self) -> None:
        """SIGKILL once everything said is out, and a new start."""
        self.wait_for(self.is_all_sent, timeout=LONG, what="sending")
        self.restart(kill=True)


def buttons(event: dict[str, Any]) -> list[dict[str, Any]]:
    """The buttons under a message, in their order."""
    markup = event["message"].get("reply_markup") or {}
    return [button for row in markup.get("inline_keyboard", ()) for button in row]


def token(event: dict[str, Any], label: str) -> str:
    """What the button of a message carries whose label fits."""
    found = next(b for b in buttons(event) if re.search(label, b["text"]))
    return str(found["callback_data"])


def _is_progress(text: str) -> bool:
    """Whether this is the line that says what is being done, before the answer."""
    phrases = {p for m in shipped_manifests().values() for p in m.phrase.values()}
    return any(text.startswith(phrase) for phrase in (*phrases, "Ci lavoro", "Working on it"))


def entries(ask: Ask) -> list[dict[str, Any]]:
    """What the last step gave, for a scripted answer."""
    found: list[dict[str, Any]] = json.loads(ask.last_result).get("entries") or []
    return found


@contextmanager
def open_field(
    tmp: Path, rules: Sequence[Rule] = (), *, start: bool = True, **env: str
) -> Iterator[Field]:
    """The field with its servers; the bot runs, unless it is to be started later. What the fake
    served meanwhile must be what Telegram would have served."""
    with open_town(tmp, rules, **env) as town:
        town.__class__ = Field
        assert isinstance(town, Field)
        town.count = itertools.count(1)
        if start:
            town.telegram.start_bot()
        yield town
        fake = town.telegram.tg
        assert problems(fake.calls, fake.made_up) == []
