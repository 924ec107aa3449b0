"""Questions at the prompt: shown with numbers, answered by number, label or words, and gone on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bot.terminal_text import choices, chosen, named_command, reply_lines
from core.messages import Block, Button, Reply
from tests.cli.conftest import Cli
from tests.cli.test_processes import ROOT
from tests.support.processes import Typist
from tests.support.scripted_model import Rule, ScriptedModel

pytestmark = pytest.mark.usefixtures("prepared")

Script = Callable[[Sequence[Rule]], ScriptedModel]
RULES = [
    Rule(user="cancella", after=0, calls=[("delete_files", {"paths": ["a.md"]})]),
    Rule(user="cancella", after=1, text="Fatto."),
    Rule(user="ciao", text="Ciao a te."),
]


@pytest.fixture
def note(cli: Cli) -> Path:
    notes = cli.folder / "notes"
    notes.mkdir()
    cli.env(METNOS_FILES_ROOTS=str(notes), METNOS_LANG="it")
    path = notes / "a.md"
    path.write_text("x")
    return path


def approval(expects: str | None = "tap") -> Reply:
    rows = ((Button("✅ Sì", "t-yes"), Button("✋ No\x1b[2J", "t-no")),)
    rows += ((Button("📍 Qui", kind="location"),),)  # type: ignore[assignment]
    return Reply((Block("text", "Elimino?"),), "it", buttons=rows, expects=expects)  # type: ignore[arg-type]


def test_choices_are_numbered_and_cannot_move_the_cursor():
    lines = list(reply_lines(approval(), styled=False))

    assert lines[:3] == ["Elimino?", "", "  1. ✅ Sì"]
    assert lines[3].startswith("  2. ✋ No")
    assert "\x1b" not in "".join(lines)
    assert len(lines) == 4  # a terminal shares no place


@pytest.mark.parametrize(
    ("text", "token"),
    [("1", "t-yes"), (" ✅  sì ", "t-yes"), ("3", None), ("0", None), ("sì", None), ("1.5", None)],
)
def test_chosen_by_number_or_whole_label(text, token):
    assert chosen(approval(), text) == token


def test_number_is_an_answer_of_its_own_where_a_text_is_expected():
    assert choices(approval("text")) == []
    assert chosen(approval("text"), "1") is None


def test_pipe_answers_a_question_in_the_next_line(cli: Cli, script: Script, note: Path):
    script(RULES)

    ran = cli("chat", stdin="cancella a.md\n1\nciao\n")

    assert ran.status == 0, ran.out
    assert "1. ✅" in ran.out
    assert "Approvato" in ran.out
    assert not note.exists()


def test_pipe_that_ends_at_a_question_leaves_with_1_and_does_nothing(
    cli: Cli, script: Script, note: Path
):
    script(RULES)

    ran = cli("chat", "--json", stdin="cancella a.md\n")

    said = json.loads(ran.out)
    assert ran.status == 1
    assert said["final_kind"] == "awaiting"
    assert any("No" in label for label in said["choices"])
    assert note.exists()


@pytest.fixture
def env(cli: Cli, note: Path) -> Iterator[dict[str, str]]:
    model = ScriptedModel(RULES)
    with model.running() as base_url:
        cli.env(METNOS_LLM_BASE_URL=base_url, PYTHONPATH=str(ROOT))
        assert cli("setup").status == 0
        yield {**os.environ, "TERM": "xterm"}


@pytest.mark.parametrize(
    ("answer", "exists"), [("✋ No", True), ("sì", False)], ids=["no by number", "yes by word"]
)
def test_terminal_asks_at_the_prompt_and_goes_on(
    env: dict[str, str], note: Path, answer: str, exists: bool
):
    person = Typist(env)
    person.until("Tu: ")
    person.type("cancella a.md\n")
    person.until("1. ✅")
    person.until("Numero della scelta")

    numbered = re.search(rf"(\d+)\. {answer}", person.seen)
    person.type(f"{numbered[1] if numbered else answer}\n")

    person.until("alle ")
    person.until("Tu: ")
    assert note.exists() is exists
    person.type("\x04")
    assert person.leave() == 0
    assert "Traceback" not in person.seen


def test_terminal_left_at_a_question_does_nothing(env: dict[str, str], note: Path):
    person = Typist(env)
    person.until("Tu: ")
    person.type("cancella a.md\n")
    person.until("Numero della scelta")

    person.type("\x03")

    assert person.leave() == 0
    assert note.exists()


@pytest.mark.parametrize("way", ["once", "pipe", "json"])
def test_cap_without_anybody_at_the_keyboard_ends_the_turn(
    cli: Cli, script: Script, note: Path, way: str
):
    zones = ["Rome", "Tokyo", "Lima", "Paris"]
    script([Rule(calls=lambda a: [("get_now", {"timezone": zones[len(a.results)]})])])
    request = "che ore sono a Roma, Tokyo, Lima e Parigi?"

    if way == "pipe":
        ran = cli("chat", stdin=f"{request}\n")
    else:
        ran = cli("chat", "--once", request, *(["--json"] if way == "json" else []))

    assert ran.status == 1
    assert "troppe volte (3)" in ran.out
    assert "Vado avanti" not in ran.out


def test_what_is_offered_under_an_answer_is_chosen_by_its_number(
    cli: Cli, script: Script, note: Path
):
    new = note.parent / "b.md"
    script(
        [
            Rule(
                user="scrivi", after=0, calls=[("write_files", {"path": "b.md", "content": "x"})]
            ),
            Rule(user="scrivi", after=1, text="Fatto."),
            Rule(user="ciao", text="Ciao a te."),
        ]
    )

    ran = cli("chat", stdin="scrivi x in b.md\n1\nciao\n1\n")

    assert "  1. ↩️ Annulla" in ran.out
    assert "↩️ Annulla, chiesto alle" in ran.out
    assert "Annullato: «scrivi x in b.md»" in ran.out
    assert not new.exists()
    assert ran.out.count("Annullato:") == 1  # after small talk a number is a request of its own


def test_answer_that_nothing_can_be_said_to_shows_no_choices(cli: Cli, script: Script, note: Path):
    script(
        [
            Rule(
                user="scrivi", after=0, calls=[("write_files", {"path": "b.md", "content": "x"})]
            ),
            Rule(user="scrivi", after=1, text="Fatto."),
        ]
    )

    ran = cli("chat", "--once", "scrivi x in b.md")

    assert "annullabile" in ran.out
    assert "1." not in ran.out


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("/help", "/help"),
        (" /Status ", "/status"),
        ("/undo", None),
        ("/praxis", None),
        ("/forget", None),
        ("/tmp/a.md", None),
        ("/etc/hosts che cosa dice?", None),
        ("aiuto", None),
    ],
)
def test_named_command_is_a_word_that_no_turn_takes(text, name):
    assert named_command(text) == name


def test_pipe_tells_its_commands_itself_and_asks_no_model(cli: Cli, script: Script, note: Path):
    model = script(RULES)

    ran = cli("chat", stdin="cancella a.md\n/help\n/exit\nciao\n")

    assert "\n/undo · Annulla l'ultima modifica\n" in ran.out
    assert "\n/exit · " in ran.out
    assert "Ciao a te" not in ran.out
    assert len(model.asked) == 1
    assert note.exists()


def test_unknown_command_is_no_request(cli: Cli, script: Script):
    model = script(RULES)

    ran = cli("chat", "--once", "/status")

    assert (ran.status, model.asked) == (1, [])
    assert "/help" in ran.out
