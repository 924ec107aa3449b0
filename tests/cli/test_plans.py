"""`metnos plans`: what is remembered is seen, pinned and taken away beside a running engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from bot.cli.beside import read_memory, write_memory, write_store
from core.clock import SystemClock
from core.config import load_settings
from core.levels.reuse import Lesson
from core.plan import Plan, Step
from core.store import actors, plan_cache
from core.store.database import Transaction
from tests.cli.conftest import Cli


def teach(*texts: str) -> list[int]:
    """Rows of the host in a home that was never run."""
    settings = load_settings()
    clock = SystemClock()
    host = write_store(settings, lambda tx: actors.ensure_local_host(tx, clock))

    async def work(tx: Transaction) -> list[int]:
        ids = []
        for text in texts:
            lesson = Lesson(
                text, Plan((Step("get_now", {}),)), (), (), text, "", "", text, "t", "f", False
            )
            now = datetime.now(UTC)
            ids.append(await plan_cache.keep(tx, host.id, "en", lesson, turn_id=text, now=now))
            await plan_cache.note_refused(tx, ids[-1], "other_values")
        return ids

    return write_memory(settings, work)


def test_plans_are_listed_with_why_they_did_not_serve_and_one_is_shown_whole(cli: Cli) -> None:
    assert cli("plans", "list").out == "No plan in memory.\n"
    [id] = teach("what time is it")

    listed, shown = cli("plans", "list").out, cli("plans", "show", str(id)).out
    data = json.loads(cli("plans", "show", str(id), "--json").out)

    assert "«what time is it»" in listed
    assert "the values do not fit" in listed
    assert "not served, the values do not fit" in shown
    assert "1 get_now" in shown
    assert "whoever asks the same" in shown
    assert data["why"] == "other_values"
    assert data["plan"] == {"steps": [{"tool": "get_now", "args": {}}]}
    assert [one["id"] for one in json.loads(cli("plans", "list", "--json").out)] == [id]


def test_plan_is_approved_taken_back_and_forgotten(cli: Cli) -> None:
    [id] = teach("what time is it")

    assert cli("plans", "approve", str(id)).out == f"Plan {id} approved.\n"
    assert json.loads(cli("plans", "list", "--json").out)[0]["approved"] is True
    assert cli("plans", "approve", str(id), "--off").status == 0
    assert json.loads(cli("plans", "list", "--json").out)[0]["approved"] is False
    assert cli("plans", "delete", str(id)).status == 0
    for command in ("show", "approve", "delete"):
        assert cli("plans", command, str(id)).status == 1


@pytest.mark.parametrize("lang", ["it", "en"])
def test_flush_needs_a_word_or_yes(cli: Cli, lang: str) -> None:
    cli.env(METNOS_LANG=lang)
    teach("one", "two")

    refused = cli("plans", "flush", stdin="flush\n")

    assert refused.status == 1
    assert "--yes" in refused.err
    assert len(read_memory(load_settings(), plan_cache.listed)) == 2
    assert "2" in cli("plans", "flush", "--yes").out
    assert read_memory(load_settings(), plan_cache.listed) == []


@pytest.mark.parametrize(("word", "left"), [("flush", 0), ("yes", 1), ("", 1)])
def test_flush_at_a_terminal_takes_only_its_word(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, word: str, left: int
) -> None:
    teach("one")
    monkeypatch.setattr("bot.cli.plans.is_asked", lambda: True)

    cli("plans", "flush", stdin=f"{word}\n")

    assert len(read_memory(load_settings(), plan_cache.listed)) == left
