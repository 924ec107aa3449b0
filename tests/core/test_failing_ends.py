"""What fails at one exact moment: the journal before a change, the close of a turn, a child that
dies in the middle, a program that says what only the house may say."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from core.errors import ErrorCode
from core.messages import TurnClosed
from core.store import effects, turns
from core.store.faults import refuse
from tests.core.test_questions import DELETE, asked, in_trash, note, press, said
from tests.support.executors import manifest_toml, prepare_home, signed_executor
from tests.support.house import house_settings, open_scripted
from tests.support.scripted_model import Rule

FAULTS = pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "database or disk is full"),
        (sqlite3.SQLITE_IOERR, "disk I/O error"),
    ],
    ids=["no space", "input/output error"],
)


def failing_once(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, fault: Any) -> list[str]:
    """Let a store's function fail as SQLite does, the first time it is called."""
    real = getattr(module, name)
    failed: list[str] = []

    async def fails(*args: Any, **named: Any) -> Any:
        if not failed:
            failed.append(name)
            exc = sqlite3.OperationalError(fault[1])
            exc.sqlite_errorcode = fault[0]
            refuse(exc)
        return await real(*args, **named)

    monkeypatch.setattr(module, name, fails)
    return failed


@FAULTS
async def test_change_that_cannot_be_journalled_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    path = note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, _):
        question = await asked(house)
        failed = failing_once(monkeypatch, effects, "start", (code, words))

        end = (await press(house, question, "Sì"))[-1]

        assert failed
        assert path.exists()
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code in {ErrorCode.DISK_FULL, ErrorCode.STORE_FAILED}
        assert "Non ho cambiato nulla" in end.reply.plain
        assert "Fatto" not in end.reply.plain


@FAULTS
async def test_close_that_fails_is_told_and_the_change_stands_in_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    note(tmp_path)
    async with open_scripted(tmp_path, DELETE) as (house, model):
        question = await asked(house)
        failed = failing_once(monkeypatch, turns, "close_turn", (code, words))

        end = (await press(house, question, "Sì", id="tap"))[-1]
        calls = len(model.asked)
        again = (await press(house, question, "Sì", id="tap"))[-1]

        assert failed
        assert isinstance(end, TurnClosed)
        assert end.turn_id == ""  # kept nowhere: its channel delivers it again
        assert len(in_trash(tmp_path)) == 1
        assert len(model.asked) == calls
        assert isinstance(again, TurnClosed)
        assert again.turn_id == question.turn_id
        assert "cestino" in again.reply.plain
        async with house.stores.main.read() as tx:
            [effect] = await effects.of_turn(tx, question.turn_id)
        assert effect.state is effects.EffectState.DONE


DIES = """
import os, signal


def preview(call):
    path, kept = {path!r}, {kept!r}
    return {{
        "targets": [path],
        "count": 1,
        "before": [{{"path": path, "exists": True}}],
        "after": [{{"path": path, "exists": True, "sha256": "0" * 64, "kept": kept}}],
        "undo": [{{"do": "restore", "from": kept, "to": path}}],
    }}


def run(call):
    os.makedirs(os.path.dirname({kept!r}), exist_ok=True)
    os.link({path!r}, {kept!r})
    os.kill(os.getpid(), signal.SIGKILL)
"""
TOP = 'reversible = true\nundo = "restore"\n'
READ = ("read_files", {"path": "a.md"})


async def test_child_that_is_killed_before_the_rename_leaves_a_file_that_can_be_read(
    tmp_path: Path,
) -> None:
    path = note(tmp_path)
    kept = tmp_path / "notes/.metnos-trash/t/a.md"
    settings = house_settings(tmp_path)
    code = DIES.format(path=str(path), kept=str(kept))
    manifest = manifest_toml("write_texts", effect="checkable", top=TOP, right="fs:write")
    prepare_home(settings.metnos_home)
    signed_executor(settings, manifest, code)
    rules = [
        Rule(user="scrivere", after=0, calls=[("write_texts", {})]),
        Rule(user="scrivere", text="Scritto."),
        Rule(user="leggi", after=0, calls=[READ]),
        Rule(user="leggi", text=lambda ask: ask.last_result),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        cut = (await said(house, "prova a scrivere la nota in a.md"))[-1]
        read = (await said(house, "leggi a.md"))[-1]

        assert isinstance(cut, TurnClosed)
        assert cut.error is not None
        assert cut.error.code is ErrorCode.EXECUTOR_CRASHED, cut.error
        assert path.stat().st_nlink == 1
        assert not kept.exists()
        assert isinstance(read, TurnClosed)
        assert read.error is None, read.reply.plain


CLAIMS = """
def run(call):
    error = {"code": "cap_steps", "detail": "enough", "params": {"cap": "steps", "limit": 30}}
    return {"ok": False, "error": error}
"""


async def test_program_that_claims_a_cap_is_asked_about_by_nobody(tmp_path: Path) -> None:
    settings = house_settings(tmp_path)
    prepare_home(settings.metnos_home)
    signed_executor(settings, manifest_toml("read_messages"), CLAIMS)
    rules = [
        Rule(user="posta", after=0, calls=[("read_messages", {})]),
        Rule(text="Non ci sono riuscito."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        end = (await said(house, "leggi la posta"))[-1]

        assert isinstance(end, TurnClosed)
        assert end.reply.buttons == ()
        assert end.error is not None
        assert end.final_kind.value == "error"
