"""The program as a process: a terminal with Ctrl-C, the bot with its signals, two at once."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.harness import Harness
from tests.support.processes import METNOS, PATIENCE_S, Typist, start, wait_for
from tests.support.scripted_model import Rule, ScriptedModel

ROOT = Path(__file__).parents[2]
RULES = [
    Rule(user="hello", text="Hello to you."),
    Rule(user="slow", delay=30, text="too late"),
]


@pytest.fixture
def env(cli: Cli) -> Iterator[dict[str, str]]:
    """The environment of a process with a home that is set up and a scripted model."""
    model = ScriptedModel(RULES)
    with model.running() as base_url:
        cli.env(METNOS_LLM_BASE_URL=base_url, PYTHONPATH=str(ROOT))
        assert cli("setup").status == 0
        yield {**os.environ, "TERM": "xterm"}


def test_terminal_conversation_stops_a_turn_with_ctrl_c_and_leaves_with_ctrl_d(
    env: dict[str, str],
) -> None:
    person = Typist(env)
    person.until("You: ")
    person.type("hello\n")
    person.until("Hello to you.")
    person.until("You: ")
    person.type("slow\n")
    person.until("Working on it")
    time.sleep(0.3)

    person.type("\x03")

    person.until("Stopped")
    person.until("You: ")
    person.type("\x04")
    assert person.leave() == 0
    assert "Traceback" not in person.seen


def test_terminal_ctrl_c_at_the_prompt_leaves(env: dict[str, str]) -> None:
    person = Typist(env)
    person.until("You: ")

    person.type("\x03")

    assert person.leave() == 0
    assert "Traceback" not in person.seen


def test_once_ended_by_sigterm_leaves_no_lock_behind(env: dict[str, str], cli: Cli) -> None:
    process = start([*METNOS, "chat", "--once", "slow"], env=env)
    lock = cli.home / "engine.lock"
    wait_for(lambda: lock.is_file() and "chat" in lock.read_text(encoding="utf-8"))
    time.sleep(3)

    process.send_signal(signal.SIGTERM)

    assert process.wait(PATIENCE_S) == 143
    assert lock.read_text(encoding="utf-8") == ""


def test_reader_that_leaves_early_is_no_error(env: dict[str, str]) -> None:
    command = " ".join([*METNOS, "executors list | head -1"])

    ran = subprocess.run(["bash", "-c", command], env=env, capture_output=True, text=True)

    assert ran.stderr == ""
    assert len(ran.stdout.splitlines()) == 1


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["chat --once hello", "doctor --offline", "chat"])
def test_stream_that_is_closed_from_the_start_is_no_error(
    env: dict[str, str], cli: Cli, words: str, closed: str
) -> None:
    """As a service or a job may be started; no file of ours may take its number either."""
    command = " ".join([*METNOS, words, closed])

    ran = subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert cli("turns", "list").status == 0


def test_run_without_a_token_says_what_is_missing(cli: Cli) -> None:
    ran = cli("run")

    assert ran.status == 2
    assert "TELEGRAM_BOT_TOKEN" in ran.err
    assert "@BotFather" in ran.err


def test_run_with_a_token_that_is_none_leaves_with_2(cli: Cli) -> None:
    cli.env(TELEGRAM_BOT_TOKEN="hello")

    ran = cli("run")

    assert ran.status == 2
    assert "hello" not in ran.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_answers_then_stops_cleanly_within_seconds(
    env: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    with Harness(
        [*METNOS, "run"], env=env, cwd=str(tmp_path), log=str(tmp_path / "bot.log")
    ) as bot:
        bot.start_bot()

        second = subprocess.run(
            [*METNOS, "run"], env={**env, **bot.bot_env()}, capture_output=True, text=True
        )
        beside = subprocess.run(
            [*METNOS, "pair", "--guest"],
            env={**env, **bot.bot_env()},
            capture_output=True,
            text=True,
        )
        status, seconds = bot.stop_bot(sig=number)

        assert second.returncode == 75
        assert "metnos run" in second.stderr
        assert beside.returncode == 0
        assert "start=" in beside.stdout
        assert status == 0
        assert seconds < 20
        assert "Traceback" not in bot.tail(200)


def test_run_stops_with_2_when_telegram_refuses_the_token(
    env: dict[str, str], tmp_path: Path
) -> None:
    with Harness([*METNOS, "run"], cwd=str(tmp_path), log=str(tmp_path / "bot.log")) as bot:
        wrong = {**env, **bot.bot_env(), "TELEGRAM_BOT_TOKEN": "123456:" + "x" * 35}

        ran = subprocess.run(
            [*METNOS, "run"], env=wrong, capture_output=True, text=True, timeout=30
        )

    assert ran.returncode == 2
    assert "x" * 35 not in ran.stderr + ran.stdout
    assert "Traceback" not in ran.stderr
