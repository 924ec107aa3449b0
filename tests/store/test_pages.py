"""Lists for whoever looks at the whole house: paged, filtered, found without reading it all."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.dialogs import Field, FieldKind, Suspension, SuspensionKind, SuspensionState
from core.messages import FinalKind
from core.store import (
    effects,
    suspension_pages,
    suspensions,
    turn_log,
    turn_pages,
    turns,
)
from core.store.database import Database, Row, Transaction
from core.store.effects import EffectState
from core.store.turn_log import TurnLog
from tests.support.clock import FrozenClock

DAY = date(2026, 1, 15)


async def a_turn(
    db: Database,
    clock: FrozenClock,
    id: str,
    *,
    actor: str = "ada",
    kind: FinalKind | None = FinalKind.ANSWER,
    source: str = "engine",
    seconds: float = 2.0,
    tokens: int = 10,
) -> None:
    """One turn; a minute passes with each."""
    async with db.write() as tx:
        await turns.open_turn(
            tx,
            turn_id=id,
            inbound_id=f"in {id}",
            actor_id=actor,
            conversation="telegram:7:",
            lang="it",
            request=f"request {id}",
            now=clock.now(),
        )
        if kind is not None:
            now = clock.now().timestamp()
            line = {
                "match_source": source,
                "tokens_in": tokens,
                "tokens_out": 1,
                "ts_start": now,
                "ts_end": now + seconds,
            }
            await turns.close_turn(tx, id, kind, line, clock.now(), log_day=DAY)
    clock.advance(timedelta(minutes=1))


async def listed(db: Database, **wanted: Any) -> list[str]:
    async with db.read() as tx:
        return [one.id for one in await turn_pages.page(tx, limit=2, **wanted)]


async def test_page_of_turns_is_newest_first_and_goes_on(db: Database, clock: FrozenClock):
    for id in "abcde":
        await a_turn(db, clock, id)

    assert await listed(db) == ["e", "d"]
    assert await listed(db, offset=2) == ["c", "b"]
    assert await listed(db, offset=4) == ["a"]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"actor_id": "bob"}, ["b"]),
        ({"kind": FinalKind.ERROR}, ["c"]),
        ({"kind": turn_pages.OPEN}, ["e"]),
        ({"source": "fastpath"}, ["d", "b"]),
        ({"source": "fastpath", "actor_id": "ada"}, ["d"]),
        ({"kind": "nothing there is"}, []),
    ],
    ids=["actor", "kind", "open", "source", "both", "unknown"],
)
async def test_page_of_turns_by(db: Database, clock: FrozenClock, wanted: Any, ids: list[str]):
    await a_turn(db, clock, "a")
    await a_turn(db, clock, "b", actor="bob", source="fastpath")
    await a_turn(db, clock, "c", kind=FinalKind.ERROR)
    await a_turn(db, clock, "d", source="fastpath")
    await a_turn(db, clock, "e", kind=None)

    assert await listed(db, **wanted) == ids


async def test_page_of_turns_of_a_day_ends_where_the_next_begins(db: Database, clock: FrozenClock):
    start = clock.now()
    for id in "abc":
        await a_turn(db, clock, id)

    one, two = start + timedelta(minutes=1), start + timedelta(minutes=2)
    assert await listed(db, since=one, until=two) == ["b"]


async def test_lists_are_found_in_their_index_alone_and_not_sorted(
    db: Database, monkeypatch: pytest.MonkeyPatch
):
    """Filters that fit nothing would else look at every turn of years."""
    asked: list[tuple[str, Any]] = []
    real = Transaction.fetch_all

    async def noting(self: Transaction, sql: str, params: Any = ()) -> list[Row]:
        asked.append((sql, params))
        return await real(self, sql, params)

    monkeypatch.setattr(Transaction, "fetch_all", noting)
    async with db.read() as tx:
        await turn_pages.page(tx, limit=5, kind="x", source="y")
        await effects.page(tx, limit=5, state=EffectState.DONE)
        plans = [await real(tx, f"EXPLAIN QUERY PLAN {sql}", p) for sql, p in list(asked)]

    first, second = ([row["detail"] for row in plan] for plan in plans)
    assert any("COVERING INDEX turns_listed" in line for line in first)
    assert not any("TEMP B-TREE" in line for line in second)
    # The page itself, once it is found, may be.
    assert sum("TEMP B-TREE" in line for line in first) <= 1


async def test_turn_of_two_segments_sums_its_work_and_keeps_its_first_source(
    db: Database, clock: FrozenClock
):
    async with db.write() as tx:
        await turns.open_turn(
            tx,
            turn_id="a",
            inbound_id="in",
            actor_id="ada",
            conversation="telegram:7:",
            lang="it",
            request="r",
            now=clock.now(),
        )
        spent = {"tokens_in": 5, "tokens_out": 5, "ts_start": 100.0, "ts_end": 102.0}
        line = {**spent, "match_source": "engine"}
        await turns.suspend(tx, "a", {}, line, reply={}, log_day=DAY)
        await turns.go_on(tx, "a")
        line = {**spent, "match_source": "dialog", "ts_start": 400.0, "ts_end": 401.5}
        await turns.close_turn(tx, "a", FinalKind.ANSWER, line, clock.now())

    async with db.read() as tx:
        (row,) = await turn_pages.page(tx, limit=2)
        assert await turn_pages.durations(tx, "engine", since=clock.now()) == [3.5]
    assert (row.source, row.tokens, row.busy_s, row.segments) == ("engine", 20, 3.5, 2)


async def test_durations_are_those_of_answers_of_this_source(db: Database, clock: FrozenClock):
    since = clock.now()
    await a_turn(db, clock, "a", seconds=1)
    await a_turn(db, clock, "b", seconds=9, source="fastpath")
    await a_turn(db, clock, "c", seconds=9, kind=FinalKind.ERROR)
    await a_turn(db, clock, "d", seconds=3)

    async with db.read() as tx:
        assert await turn_pages.durations(tx, "engine", since=since) == [3.0, 1.0]
        assert await turn_pages.durations(tx, "engine", since=since, limit=1) == [3.0]
        assert await turn_pages.durations(tx, "engine", since=clock.now()) == []


async def test_questions_are_listed_without_what_was_answered(db: Database, clock: FrozenClock):
    fields = tuple(Field(name, "?", FieldKind.TEXT) for name in "abc")
    async with db.write() as tx:
        for id, minutes in (("late", 9), ("soon", 5), ("over", 1)):
            question = Suspension(
                id=id,
                kind=SuspensionKind.INPUTS,
                turn_id=f"turn {id}",
                actor_id="ada",
                conversation="telegram:7:",
                created_at=clock.now(),
                expires_at=clock.now() + timedelta(minutes=minutes),
                fields=fields,
                cursor=1,
                values={"a": "C4N4RY"},
            )
            await suspensions.open(tx, question, {"secret": "C4N4RY"}, {})
        await suspensions.settle(tx, "over", SuspensionState.CANCELLED, clock.now())

    async with db.read() as tx:
        open_ones = await suspension_pages.unsettled(tx, limit=9)
        (over,) = await suspension_pages.settled(tx, limit=9)

    assert [one.id for one in open_ones] == ["soon", "late"]
    assert (open_ones[0].answered, open_ones[0].fields) == (1, 3)
    assert (over.id, over.state) == ("over", SuspensionState.CANCELLED)
    assert over.settled_at == clock.now()
    assert "C4N4RY" not in repr((open_ones, over))


async def an_effect(
    db: Database, clock: FrozenClock, key: str, tool: str, state: EffectState, summary: Any
) -> None:
    turn_id, step = key.split(":")
    async with db.write() as tx:
        await effects.start(
            tx,
            key=key,
            turn_id=turn_id,
            step=int(step),
            tool=tool,
            before=None,
            expected=None,
            now=clock.now(),
            summary=summary,
        )
        await effects.finish(tx, key, state, clock.now())
    clock.advance(timedelta(minutes=1))


async def test_effects_are_listed_newest_first_and_by_state(db: Database, clock: FrozenClock):
    await an_effect(db, clock, "a:1", "write_files", EffectState.DONE, {})
    await an_effect(db, clock, "b:1", "send_mail", EffectState.UNKNOWN, {})
    await an_effect(db, clock, "c:1", "move_files", EffectState.DONE, {})

    async with db.read() as tx:
        every = await effects.page(tx, limit=2)
        rest = await effects.page(tx, limit=2, offset=2)
        unknown = await effects.page(tx, limit=2, state=EffectState.UNKNOWN)

    assert [one.key for one in (*every, *rest)] == ["c:1", "b:1", "a:1"]
    assert [one.key for one in unknown] == ["b:1"]


async def test_takings_back_are_found_by_the_turns_they_undo(db: Database, clock: FrozenClock):
    undo = effects.UNDO_LAST_TURN
    await an_effect(db, clock, "a:1", "write_files", EffectState.DONE, {})
    await an_effect(db, clock, "b:1", undo, EffectState.UNKNOWN, {"undoes": "a"})
    await an_effect(db, clock, "c:1", undo, EffectState.DONE, {"undoes": "a"})
    await an_effect(db, clock, "d:1", undo, EffectState.DONE, {"undoes": "z"})

    async with db.read() as tx:
        found = await effects.takings_back(tx, ["a", "b"])

    assert {turn: [one.key for one in them] for turn, them in found.items()} == {
        "a": ["b:1", "c:1"]
    }


def _filled(folder: Path, clock: FrozenClock, count: int) -> TurnLog:
    """A day with a turn every second, each of one line of 2 KB."""
    log = TurnLog(folder)
    start = clock.now().timestamp()
    folder.mkdir()
    with log.path_of(DAY).open("w", encoding="utf-8") as file:
        for number in range(count):
            line = {
                "turn_id": f"turn{number:06}",
                "segment": 1,
                "ts_start": start + number,
                "user_query": 'say "ts_end": 9999999999 ' + "x" * 2000,
                "ts_end": start + number + 0.5,
            }
            file.write(json.dumps(line) + "\n")
    return log


@pytest.mark.parametrize("number", [0, 1, 700, 1500, 2999])
def test_lines_of_a_turn_are_found_where_their_time_is(
    tmp_path: Path, clock: FrozenClock, number: int
):
    log = _filled(tmp_path / "turns", clock, 3000)
    at = clock.now() + timedelta(seconds=number)

    lines = log.lines_of(f"turn{number:06}", DAY, since=at, until=at)

    assert [line["turn_id"] for line in lines] == [f"turn{number:06}"]


def test_lines_of_a_turn_are_read_from_a_part_of_the_file(
    tmp_path: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
):
    log = _filled(tmp_path / "turns", clock, 3000)
    at, looked_at, real = clock.now() + timedelta(seconds=1500), 0, turn_log._ended

    def counting(raw: bytes) -> float | None:
        nonlocal looked_at
        looked_at += len(raw)
        return real(raw)

    monkeypatch.setattr(turn_log, "_ended", counting)
    assert log.lines_of("turn001500", DAY, since=at, until=at)

    assert looked_at < log.path_of(DAY).stat().st_size / 5


def test_line_that_was_written_late_is_found_all_the_same(tmp_path: Path, clock: FrozenClock):
    log = _filled(tmp_path / "turns", clock, 1000)
    early = clock.now() - timedelta(hours=2)
    log.append({"turn_id": "late", "segment": 1, "ts_end": early.timestamp()}, day=DAY)

    assert len(log.lines_of("late", DAY, since=early, until=early)) == 1
    assert log.lines_of("nobody", DAY, since=early, until=early) == []
    assert log.lines_of("late", date(2026, 1, 16), since=early, until=early) == []
