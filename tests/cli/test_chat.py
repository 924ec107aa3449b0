"""`metnos chat` with everything real but the model."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Sequence

import pytest

from core.store.lock import engine_lock
from tests.cli.conftest import Cli
from tests.support.scripted_model import Rule, ScriptedModel

pytestmark = pytest.mark.usefixtures("prepared")

Script = Callable[[Sequence[Rule]], ScriptedModel]
TOKYO = [
    Rule(user="Tokyo", after=0, calls=[("get_now", {"timezone": "Tokyo"})]),
    Rule(user="Tokyo", after=1, text="It is late in Tokyo."),
    Rule(user="ciao", text="Ciao a te."),
    Rule(user="broken", status=401),
]


def test_once_prints_the_answer_and_leaves_with_0(cli: Cli, script: Script) -> None:
    script(TOKYO)

    ran = cli("chat", "--once", "what time is it in Tokyo?")

    assert (ran.status, ran.out, ran.err) == (0, "It is late in Tokyo.\n", "")


def test_once_as_json_holds_turn_kind_text_and_steps(cli: Cli, script: Script) -> None:
    script(TOKYO)

    ran = cli("chat", "--once", "what time is it in Tokyo?", "--json")

    said = json.loads(ran.out)
    assert len(said.pop("turn_id")) == 32
    assert said == {
        "final_kind": "answer",
        "lang": "en",
        "text": "It is late in Tokyo.",
        "steps": [{"number": 1, "tool": "get_now", "ok": True}],
        "error": None,
    }


def test_once_without_an_answer_leaves_with_1_and_names_the_error(
    cli: Cli, script: Script
) -> None:
    script(TOKYO)

    ran = cli("chat", "--once", "broken", "--json")

    said = json.loads(ran.out)
    assert ran.status == 1
    assert said["final_kind"] == "error"
    assert said["error"]["code"] == "model_refused"
    assert "Traceback" not in ran.out + ran.err


def test_once_with_nothing_asked_is_a_usage_error(cli: Cli) -> None:
    shutil.rmtree(cli.home)

    ran = cli("chat", "--once", "  ")

    assert ran.status == 2
    assert not cli.home.exists()


def test_pipe_answers_a_request_a_line_in_order_with_its_echo(cli: Cli, script: Script) -> None:
    script(TOKYO)

    ran = cli("chat", stdin="ciao\n\nwhat time is it in Tokyo?\n")

    assert ran.status == 0
    assert ran.out == (
        "> ciao\nCiao a te.\n\n> what time is it in Tokyo?\nIt is late in Tokyo.\n\n"
    )


def test_pipe_goes_on_after_a_failure_and_leaves_with_1(cli: Cli, script: Script) -> None:
    script(TOKYO)

    ran = cli("chat", stdin="broken\nciao")

    assert ran.status == 1
    assert ran.out.endswith("> ciao\nCiao a te.\n\n")


def test_pipe_as_json_writes_a_document_a_line(cli: Cli, script: Script) -> None:
    script(TOKYO)

    ran = cli("chat", "--json", stdin="ciao\nwhat time is it in Tokyo?\n")

    first, second = map(json.loads, ran.out.splitlines())
    assert first["request"] == "ciao"
    assert second["text"] == "It is late in Tokyo."


@pytest.mark.parametrize(
    "request_text", ["\x00\x1b[2Jciao", "ciao \u202egnip", "ciao \ud800", "ciao " * 30_000]
)
def test_odd_requests_never_end_the_conversation(
    cli: Cli, script: Script, request_text: str
) -> None:
    script(TOKYO)

    ran = cli("chat", stdin=f"{request_text}\nciao\n")

    assert ran.out.endswith("> ciao\nCiao a te.\n\n")
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


def test_answer_cannot_move_the_cursor(cli: Cli, script: Script) -> None:
    script([Rule(user="ciao", text="\x1b[2J\x1b]0;title\x07bad\rworse")])

    ran = cli("chat", "--once", "ciao")

    assert not set(ran.out) & {"\x1b", "\x07", "\r"}


def test_second_engine_names_the_holder_and_leaves_with_75(cli: Cli) -> None:
    cli("setup")

    with engine_lock(cli.home, "run"):
        ran = cli("chat", "--once", "ciao")

    assert ran.status == 75
    assert "metnos run" in ran.err
    assert str(os.getpid()) in ran.err


def test_lock_is_free_after_a_conversation(cli: Cli, script: Script) -> None:
    script(TOKYO)

    cli("chat", "--once", "ciao")

    with (cli.home / "engine.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_without_any_model_says_which_command_brings_one(cli: Cli) -> None:
    cli.env(METNOS_LLM_BASE_URL="", METNOS_LLM_MODEL="")

    ran = cli("chat", stdin="ciao\n")

    assert ran.status == 1
    assert "metnos model pull" in ran.err


def test_lang_option_speaks_that_language(cli: Cli) -> None:
    cli.env(METNOS_LLM_BASE_URL="", METNOS_LLM_MODEL="")

    ran = cli("chat", "--lang", "it", stdin="hello\n")

    assert "Non c'è ancora un modello" in ran.err
    assert "There is no model" not in ran.out + ran.err


def test_damaged_database_gets_one_sentence(cli: Cli) -> None:
    cli("setup")
    path = cli.home / "private" / "metnos.db"
    for extra in ("-wal", "-shm"):
        path.with_name(path.name + extra).unlink(missing_ok=True)
    path.write_bytes(b"not a database" * 1000)

    ran = cli("chat", "--once", "ciao")

    assert ran.status == 1
    assert ran.err == (
        "The database is damaged: I go no further. `metnos doctor` tells how to go on; "
        "if you have a backup, this is the time to put it back.\n"
    )
