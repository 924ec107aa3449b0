"""G1 through the door: where the kernel cannot close a call in, no call runs, and it is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot import app
from core.config import Settings
from core.execution.cage.process import ProcessCage
from core.execution.cage.status import Isolation
from core.messages import FinalKind
from tests.acceptance.scenes import turn_lines
from tests.support.house import ask, open_scripted
from tests.support.poor_kernel import python_without
from tests.support.scripted_model import Rule

RULES = [
    Rule(user="nota.txt", after=0, calls=[("write_files", {"path": "nota.txt", "content": "x"})]),
    Rule(user="list.txt", after=0, calls=[("read_files", {"paths": ["list.txt"]})]),
    Rule(text="Fatto."),
]


@pytest.fixture(params=["landlock", "seccomp"])
def poor_machine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_without(request.param, tmp_path)

    def open_cage(settings: Settings) -> ProcessCage:
        return ProcessCage(python=python, unsafe=settings.metnos_unsafe_no_cage)

    monkeypatch.setattr(app, "open_cage", open_cage)


@pytest.mark.usefixtures("poor_machine")
@pytest.mark.parametrize(
    ("lang", "request_text", "sentence"),
    [
        ("it", "scrivi x in nota.txt", "Su questa macchina manca l'isolamento"),
        ("en", "write x into nota.txt", "Isolation is missing on this machine"),
        ("it", "leggi list.txt", "Su questa macchina manca l'isolamento"),
        ("en", "read list.txt", "Isolation is missing on this machine"),
    ],
)
async def test_turn_without_a_cage_is_refused_in_the_persons_language_and_nothing_runs(
    tmp_path: Path, lang: str, request_text: str, sentence: str
) -> None:
    async with open_scripted(tmp_path, RULES) as (house, _):
        (tmp_path / "notes/list.txt").write_text("canary", encoding="utf-8")
        closed = await ask(house, request_text, lang=lang)
        async with house.stores.main.read() as tx:
            effects = await tx.fetch_all("SELECT * FROM effects")
        isolation = await house.cage.isolation()

    print(f"G1 at the door: {closed.reply.plain!r}")
    assert closed.final_kind is FinalKind.ERROR
    assert sentence in closed.reply.plain
    assert "metnos doctor" in closed.reply.plain
    assert "canary" not in closed.reply.plain
    assert not (tmp_path / "notes/nota.txt").exists()
    assert effects == []
    assert isolation is Isolation.MISSING
    steps: list[dict[str, Any]] = turn_lines(house.settings.metnos_home)[0]["steps"]
    assert [step["error_class"] for step in steps] == ["sandbox_unavailable"] * len(steps)


@pytest.mark.usefixtures("poor_machine")
async def test_hosts_explicit_way_out_lets_the_same_turn_run(tmp_path: Path) -> None:
    """The counter-proof: with the refusal taken away, the turn runs, and bare."""
    async with open_scripted(tmp_path, RULES, metnos_unsafe_no_cage=True) as (house, _):
        closed = await ask(house, "scrivi x in nota.txt")
        isolation = await house.cage.isolation()

    assert closed.final_kind is FinalKind.ANSWER
    assert (tmp_path / "notes/nota.txt").read_text(encoding="utf-8") == "x"
    assert isolation is Isolation.OFF
