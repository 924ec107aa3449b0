"""One line, one write; a torn line hurts nobody; nothing is logged twice or forgotten."""

from __future__ import annotations

import json
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import ErrorCode, StoreError
from core.messages import FinalKind
from core.store import turns
from core.store.database import Database, Transaction
from core.store.forgotten import changed_line, without_words
from core.store.turn_log import PolicyLog, TurnLog, append_missing, read_lines
from tests.support.clock import FrozenClock

DAY = date(2026, 1, 15)


@pytest.fixture
def log(tmp_path: Path) -> TurnLog:
    return TurnLog(tmp_path / "turns")


def test_append_writes_one_private_line_in_one_write(
    log: TurnLog, monkeypatch: pytest.MonkeyPatch
):
    writes: list[int] = []
    real = os.write

    def counted(fd: int, data: bytes) -> int:
        writes.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(os, "write", counted)

    log.append({"turn_id": "a", "text": "due\nrighe \ud800 \0 \u2028"}, day=DAY)
    log.append({"turn_id": "b", "text": "x" * 200_000}, day=DAY)

    path = log.path_of(DAY)
    assert path.name == "2026-01-15.jsonl"
    assert len(writes) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [line["turn_id"] for line in read_lines(path)] == ["a", "b"]
    assert path.read_text(encoding="utf-8").count("\n") == 2


@pytest.mark.parametrize(
    "torn",
    [b'{"turn_id": "torn', b"\xff\xfe", b"[" * 100_000, b"[1]\n", b"\n\n", b'{"a": 1}x\n'],
    ids=["cut", "bytes", "deep", "no object", "empty", "tail"],
)
def test_torn_or_foreign_line_is_skipped_and_the_next_stands_alone(log: TurnLog, torn: bytes):
    log.append({"turn_id": "a"}, day=DAY)
    with log.path_of(DAY).open("ab") as file:
        file.write(torn)
    log.append({"turn_id": "b"}, day=DAY)

    lines = list(read_lines(log.path_of(DAY)))

    assert [line["turn_id"] for line in lines] == ["a", "b"]


def test_last_line_without_its_end_is_not_read(log: TurnLog):
    """It may be whole by chance, but its turn is not marked, so it will be written again."""
    log.append({"turn_id": "a"}, day=DAY)
    with log.path_of(DAY).open("ab") as file:
        file.write(b'{"turn_id": "b"}')

    assert [line["turn_id"] for line in read_lines(log.path_of(DAY))] == ["a"]
    assert not log.contains("b", 1, DAY)


def test_read_lines_of_no_file_is_nothing(log: TurnLog):
    assert list(read_lines(log.path_of(DAY))) == []
    assert log.files() == []


def test_append_on_a_full_disk_is_named_and_leaves_no_half_line(
    log: TurnLog, monkeypatch: pytest.MonkeyPatch
):
    log.append({"turn_id": "a"}, day=DAY)
    before = log.path_of(DAY).read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:5]))

    with pytest.raises(StoreError) as caught:
        log.append({"turn_id": "b"}, day=DAY)

    assert caught.value.code is ErrorCode.DISK_FULL
    assert log.path_of(DAY).read_bytes() == before


def test_append_does_not_follow_a_link(log: TurnLog, tmp_path: Path):
    log.append({"turn_id": "a"}, day=DAY)
    log.path_of(DAY).unlink()
    log.path_of(DAY).symlink_to(tmp_path / "elsewhere")

    with pytest.raises(StoreError):
        log.append({"turn_id": "b"}, day=DAY)
    assert not (tmp_path / "elsewhere").exists()


def test_policy_log_has_a_file_a_month(tmp_path: Path, clock: FrozenClock):
    log = PolicyLog(tmp_path / "policy")
    log.append({"ts": clock.now().timestamp(), "tool": "write_files"})
    log.append({"tool": "get_now"}, day=date(2026, 2, 1))

    assert sorted(p.name for p in (tmp_path / "policy").iterdir()) == [
        "2026-01.jsonl",
        "2026-02.jsonl",
    ]


async def open_one(tx: Transaction, clock: FrozenClock, turn_id: str) -> None:
    await turns.open_turn(
        tx,
        turn_id=turn_id,
        inbound_id=turn_id,
        actor_id="ada",
        conversation="terminal:local:",
        lang="it",
        request="ciao",
        now=clock.now(),
    )


async def close(db: Database, clock: FrozenClock, turn_id: str, line: dict[str, Any]) -> None:
    async with db.write() as tx:
        await open_one(tx, clock, turn_id)
        await turns.close_turn(
            tx, turn_id, FinalKind.ERROR, line, clock.now(), answer="", log_day=DAY
        )


async def test_append_missing_writes_each_line_once(
    db: Database, clock: FrozenClock, log: TurnLog
):
    await close(db, clock, "aaaa", {"turn_id": "aaaa", "segment": 1})
    clock.advance(timedelta(seconds=1))
    await close(db, clock, "bbbb", {"turn_id": "bbbb", "segment": 1})
    log.append({"turn_id": "aaaa", "segment": 1}, day=DAY)  # then the crash, before the mark

    first = await append_missing(db, log)
    second = await append_missing(db, log)

    lines = list(read_lines(log.path_of(DAY)))
    assert (first, second) == (1, 0)
    assert [line["turn_id"] for line in lines] == ["aaaa", "bbbb"]


async def test_append_missing_knows_the_line_of_a_segment_that_was_answered_since(
    db: Database, clock: FrozenClock, log: TurnLog
):
    line = {"turn_id": "aaaa", "segment": 1}
    async with db.write() as tx:
        await open_one(tx, clock, "aaaa")
        await turns.suspend(tx, "aaaa", {}, line, reply={}, log_day=DAY)
    log.append(line, day=DAY)  # then an answer, and the crash, before the mark
    async with db.write() as tx:
        await turns.go_on(tx, "aaaa")

    await append_missing(db, log)

    assert list(read_lines(log.path_of(DAY))) == [line]


async def test_append_missing_on_a_full_disk_tries_again_later(
    db: Database, clock: FrozenClock, log: TurnLog, monkeypatch: pytest.MonkeyPatch
):
    await close(db, clock, "aaaa", {"turn_id": "aaaa", "segment": 1})
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda fd, data: 0)
        with pytest.raises(StoreError):
            await append_missing(db, log)

    assert await append_missing(db, log) == 1
    assert json.loads(log.path_of(DAY).read_bytes())["turn_id"] == "aaaa"


def _exchange(line: bytes, *, old: bytes, new: bytes) -> bytes:
    return line.replace(old, new)


def test_rewriting_loses_no_line_that_is_added_meanwhile(log: TurnLog):
    path = log.path_of(DAY)
    for number in range(300):
        log.append({"turn_id": f"{number}", "who": "ab"[number % 2]}, day=DAY)
    wanted = [line for line in path.read_bytes().splitlines() if b'"a"' in line]
    stop = threading.Event()

    def add() -> int:
        count = 0
        while not stop.is_set():
            log.append({"turn_id": f"new{count}", "who": "a"}, day=DAY)
            count += 1
        return count

    with ThreadPoolExecutor() as pool:
        adding = pool.submit(add)
        for turn in range(20):
            old = b'"b"' if turn % 2 == 0 else b'"c"'
            new = b'"c"' if turn % 2 == 0 else b'"b"'
            assert log.rewrite(path, partial(_exchange, old=old, new=new))
        stop.set()
        added = adding.result(timeout=60)

    found = [line for line in path.read_bytes().splitlines() if b'"a"' in line]
    assert found[: len(wanted)] == wanted
    assert len(found) == len(wanted) + added
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_rewriting_that_changes_nothing_touches_nothing_and_torn_ends_are_seen(log: TurnLog):
    path = log.path_of(DAY)
    assert log.rewrite(path, lambda line: b"") is False
    log.append({"turn_id": "a"}, day=DAY)
    before = path.stat()

    assert log.rewrite(path, lambda line: line) is False
    assert path.stat().st_ino == before.st_ino
    with path.open("ab") as file:
        file.write(b'{"turn_id": "torn')
    assert log.rewrite(path, lambda line: b"" if b"torn" in line else line)
    log.append({"turn_id": "b"}, day=DAY)

    assert [line["turn_id"] for line in read_lines(path)] == ["a", "b"]
    assert path.read_bytes().count(b"\n") == 2


def test_line_without_words_keeps_counts_and_times_alone():
    line = {
        "turn_id": "t",
        "actor": "me",
        "ts_start": 5.0,
        "user_query": "segreto",
        "final_message": "segreto",
        "candidates": ["segreto"],
        "error_detail": "segreto",
        "new_field": "segreto",
        "effect_counts": {"mutations": 2},
        "steps": [
            {"number": 1, "tool": "read_files", "raw_args": {"a": "segreto"}, "ok": True},
            {"number": 2, "tool": "segreto di Anna", "error_class": "unknown_tool"},
        ],
    }

    kept = without_words(line)

    assert "segreto" not in json.dumps(kept)
    assert kept["effect_counts"] == {"mutations": 2}
    assert [step["tool"] for step in kept["steps"]] == ["read_files", ""]
    assert without_words(kept) == kept


@pytest.mark.parametrize(
    ("line", "gone"),
    [
        ({"turn_id": "old", "actor": "me", "ts_start": 5}, True),
        ({"turn_id": "ended", "actor": "me", "ts_start": 50}, True),
        ({"turn_id": "new", "actor": "me", "ts_start": 50}, False),
        ({"turn_id": "runs", "actor": "me", "ts_start": 5}, False),
        ({"turn_id": "old", "actor": "you", "ts_start": 5, "user_query": "me"}, False),
    ],
)
def test_line_is_forgotten_of_the_person_and_the_time_alone(line: dict[str, Any], gone: bool):
    raw = json.dumps({"user_query": "parole", **line}).encode() + b"\n"
    changed = changed_line(raw, "me", 10.0, ended={"ended"}, running={"runs"})

    assert (changed != raw) is gone
    assert changed_line(changed, "me", 10.0, ended={"ended"}, running={"runs"}) == changed
    assert changed_line(b'{"actor": "me", "us', "me", 10.0, ended=set(), running=set()) == b""
