"""The stage of the journeys through questions: a bot that runs for a whole module, a host and a
guest who speak either language, and questions that can be made to run out.

What a test does is told apart by names of its own, so that one bot serves them all; every test
leaves no question open.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core.messages import Role
from tests.acceptance.town import LONG, Town, open_town
from tests.support.scripted_model import Rule

HOST, GUEST = "anna", "bruno"
LANGS = ("it", "en")


def ways(*always: str) -> pytest.MarkDecorator:
    """Every language, with and without a kill between question and answer: `it quiet`, `en killed`
    and so on. Those that are not `always` run under `soak`."""
    cases = []
    for lang in LANGS:
        for how in ("quiet", "killed"):
            name = f"{lang} {how}"
            marks = () if name in always else (pytest.mark.soak,)
            cases.append(pytest.param(lang, how == "killed", marks=marks, id=name))
    return pytest.mark.parametrize(("lang", "killed"), cases)


class Stage(Town):
    """A town where questions are asked, answered by whom it concerns, and run out."""

    tongues: dict[str, str]

    def speak(self, lang: str, *names: str) -> None:
        """From here on these people, by default the host, speak this language."""
        for name in names or (HOST,):
            if self.tongues.get(name, "it") != lang:
                self.ask(name, f"/lang {lang}", ".")
                self.tongues[name] = lang

    def ask(self, name: str, request: str, text: str = "", **wanted: Any) -> dict[str, Any]:
        """Say something and wait for what answers it; the event."""
        self.telegram.say(name, request)
        return self.hear(name, text, **wanted)

    def hear(self, name: str, text: str, **wanted: Any) -> dict[str, Any]:
        event: dict[str, Any] = self.telegram.expect(name, text, timeout=LONG, **wanted)
        return event

    def crash(self) -> None:
        """SIGKILL once the last question is out, and a new start."""
        self.wait_for(
            lambda: not self.rows("SELECT 1 FROM outbox WHERE state IN ('sending', 'pending')"),
            timeout=LONG,
            what="sending",
        )
        self.restart(kill=True)

    def let_expire(self) -> None:
        """Every open question runs out now."""
        self.execute(f"UPDATE suspensions SET expires_at = {time.time() - 1} WHERE state = 'open'")

    def state_of_questions(self, turn_id: str) -> list[str]:
        """How the questions of a turn ended, in their order."""
        rows = self.rows("SELECT state, turn_id FROM suspensions ORDER BY created_at, rowid")
        return [state for state, turn in rows if turn == turn_id]

    def effects_of(self, turn_id: str) -> list[tuple[str, str]]:
        """What a turn changed: tool and state of each row of its journal."""
        rows = self.rows("SELECT tool, state, turn_id FROM effects ORDER BY turn_id, step")
        return [(tool, state) for tool, state, turn in rows if turn == turn_id]

    def lines_of(self, request: str) -> list[dict[str, Any]]:
        """The log's lines of the turn with these words, a segment each."""
        return [line for line in self.log_lines() if line["user_query"] == request]

    def ended(self, request: str, segments: int) -> list[dict[str, Any]]:
        """The log's lines of a turn once it has so many segments."""
        self.wait_for(
            lambda: len(self.lines_of(request)) >= segments, timeout=LONG, what="the log line"
        )
        lines = self.lines_of(request)
        assert len({line["turn_id"] for line in lines}) == 1
        assert [line["segment"] for line in lines] == list(range(1, segments + 1))
        return lines


def token_of(event: dict[str, Any], label: str) -> str:
    """What the button of a message carries whose label fits."""
    rows = event["message"]["reply_markup"]["inline_keyboard"]
    return next(
        str(button["callback_data"])
        for row in rows
        for button in row
        if re.search(label, button["text"])
    )


@contextmanager
def open_stage(tmp: Path, rules: Sequence[Rule], **env: str) -> Iterator[Stage]:
    """The stage with everybody on it; the bot runs."""
    with open_town(tmp, rules, **env) as town:
        town.__class__ = Stage
        assert isinstance(town, Stage)
        town.tongues = {}
        town.telegram.start_bot()
        town.pair_all([HOST], Role.HOST)
        town.pair_all([GUEST], Role.GUEST)
        yield town
