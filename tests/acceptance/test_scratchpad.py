"""Acceptance 4: a 100 KB file reaches the model as head, tail and id, and is read on by the id."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.execution.builtins import MAX_READ
from core.messages import ChatAddress, Role
from core.store import actors
from tests.acceptance.scenes import home_of, turn_lines
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Ask, Rule

LINES = 6000
BIG = "".join(f"riga {n:05} perché\n" for n in range(LINES))
READ = ("read_files", {"paths": ["grande.txt"]})


def handle_in(ask: Ask) -> dict[str, Any]:
    """The first handle the model was shown in this turn."""
    shown: dict[str, Any] = json.loads(ask.results[0])
    return shown


def reading_on(**args: Any) -> Callable[[Ask], list[tuple[str, dict[str, Any]]]]:
    return lambda ask: [("scratchpad_read", {"id": handle_in(ask)["scratchpad_id"], **args})]


WINDOWS: dict[str, tuple[dict[str, Any], str, bool]] = {
    "head": ({"mode": "head", "n": 40}, BIG[:40], False),
    "tail": ({"mode": "tail", "n": 40}, BIG[-40:], False),
    "range": ({"mode": "range", "start": 50_000, "end": 50_040}, BIG[50_000:50_040], False),
    "range past the end": (
        {"mode": "range", "start": len(BIG) - 10, "end": 10**9}, BIG[-10:], False,
    ),
    "full, as far as one answer goes": ({"mode": "full"}, BIG[:MAX_READ], True),
}  # fmt: skip


@pytest.mark.parametrize("window", WINDOWS)
async def test_large_file_is_shown_as_a_handle_and_read_on(tmp_path: Path, window: str) -> None:
    args, expected, truncated = WINDOWS[window]
    rules = [
        Rule(after=0, calls=[READ]),
        Rule(after=1, calls=reading_on(**args)),
        Rule(after=2, text="Letto."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/grande.txt").write_text(BIG, encoding="utf-8")

        closed = await ask(house, "leggi il file grande")

        assert closed.final_kind.value == "answer"
        handle = handle_in(model.asked[1])
        shown = model.asked[1].results[0]
        assert len(shown.encode()) <= 4096
        assert len(handle["scratchpad_id"]) == 16
        assert int(handle["scratchpad_id"], 16) >= 0
        assert handle["size_bytes"] >= len(BIG.encode())
        assert BIG[:400] in handle["summary"]
        assert BIG[-400:] in handle["summary"]
        assert "scratchpad_read" not in model.asked[0].tool_names
        assert "scratchpad_read" in model.asked[1].tool_names
        answer = json.loads(model.asked[2].last_result)
        assert answer["content"] == expected
        assert answer["metadata"]["truncated"] is truncated
        assert answer["metadata"]["size"] == len(BIG)
        assert len(turn_lines(home_of(house))[-1]["steps"]) == 2


BAD_READS: dict[str, tuple[dict[str, Any], str]] = {
    "no such id": ({"id": "0123456789abcdef", "mode": "head"}, "not_found"),
    "no id": ({"mode": "head"}, "invalid_args"),
    "an id of another type": ({"id": 7, "mode": "head"}, "invalid_args"),
    "a mode nobody knows": ({"mode": "middle"}, "invalid_args"),
    "an argument nobody knows": ({"mode": "head", "lines": 3}, "invalid_args"),
    "n as a word": ({"mode": "head", "n": "tanti"}, "invalid_args"),
    "a path": ({"id": "../../private/metnos.db", "mode": "full"}, "not_found"),
    "an id with a percent sign": ({"id": "%", "mode": "full"}, "not_found"),
}


@pytest.mark.parametrize("case", BAD_READS)
async def test_scratchpad_read_of_what_is_not_there_is_a_structured_error(
    tmp_path: Path, case: str
) -> None:
    args, code = BAD_READS[case]

    def call(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
        own = {} if "id" in args or case == "no id" else {"id": handle_in(ask)["scratchpad_id"]}
        return [("scratchpad_read", {**own, **args})]

    rules = [
        Rule(after=0, calls=[READ]),
        Rule(after=1, calls=call),
        Rule(after=2, text="Non c'è."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/grande.txt").write_text(BIG, encoding="utf-8")

        closed = await ask(house, "leggi il file grande")

        assert json.loads(model.asked[2].last_result)["error"]["code"] == code
        assert closed.reply.plain == "Non c'è."


async def test_id_of_another_turn_or_person_does_not_exist(tmp_path: Path) -> None:
    """The same id, tried in the next turn by its owner and by a guest with a handle of theirs."""
    async with open_scripted(tmp_path, []) as (house, model):
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "", house.clock)
            await actors.link(tx, "telegram", "7007", guest.id)
        workspace = home_of(house) / "files" / guest.id
        workspace.mkdir(parents=True)
        for folder in (tmp_path / "notes", workspace):
            (folder / "grande.txt").write_text(BIG, encoding="utf-8")
        model.rules = [Rule(after=0, calls=[READ]), Rule(text="Letto.")]
        await ask(house, "leggi il file grande")
        stolen = handle_in(model.asked[-1])["scratchpad_id"]
        model.rules = [
            Rule(after=0, calls=[READ]),
            Rule(after=1, calls=[("scratchpad_read", {"id": stolen, "mode": "full"})]),
            Rule(text="Provato."),
        ]

        await ask(house, "ancora")
        as_owner = json.loads(model.asked[-1].last_result)
        address = ChatAddress("telegram", "7007")
        await ask(house, "leggi", address=address, sender_id="7007")
        as_guest = json.loads(model.asked[-1].last_result)
        model.rules = model.rules[1:]
        model.rules[0].after = 0
        await ask(house, "e senza averne una")
        unoffered = json.loads(model.asked[-1].last_result)

        assert as_owner["error"]["code"] == "not_found"
        assert as_guest["error"]["code"] == "not_found"
        assert unoffered["error"]["code"] in {"not_found", "unknown_tool"}


async def test_large_file_reaches_the_person_whole_with_the_planning_engine(
    tmp_path: Path,
) -> None:
    """`metis` answers without a second model call: the person gets the text, not the handle."""
    rules = [Rule(plan={"steps": [{"tool": READ[0], "args": READ[1]}]})]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        (tmp_path / "notes/grande.txt").write_text(BIG, encoding="utf-8")

        closed = await ask(house, "leggi il file grande")

        assert "scratchpad" not in closed.reply.plain
        assert "riga 00000 perché" in closed.reply.plain
