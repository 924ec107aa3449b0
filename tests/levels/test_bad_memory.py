"""Memory that is damaged, foreign, flooded or asked in tricks: a miss, never a wrong plan."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.clock import SystemClock
from core.config import load_settings
from core.errors import StoreError
from core.execution.context import TurnContext
from core.levels.fastpath import Fastpath, Hit
from core.levels.nearness import Nearness
from core.levels.runner import Outcome
from core.llm.embedder import embedder_of
from core.messages import Actor, FinalKind
from core.observation import Effects
from core.plan import Plan, Step
from core.store import plan_cache
from core.store.feedback import Vote
from core.store.stores import open_stores
from core.store.turns import StoredTurn
from tests.support.remembering import ANNA, BRUNO, catalog, ended_well, served, turn_of

SCALE = float(os.environ.get("METNOS_TEST_SCALE") or 1)
Run = Callable[[Callable[["Memory"], Coroutine[Any, Any, None]]], None]
DELETE = "cancella bozza.txt"
CLOCK = "che ore sono?"


def deleting(path: str) -> Plan:
    return Plan((Step("delete_files", {"paths": [path]}),))


def done(context: TurnContext, plan: Plan) -> Outcome:
    """A planned turn that did what it was for."""
    end = ended_well(context, plan)
    steps = tuple(
        replace(step, observation=replace(step.observation, effects=Effects.DONE))
        for step in end.state.steps
    )
    return replace(end, state=replace(end.state, steps=steps))


class Memory:
    def __init__(self, fastpath: Fastpath) -> None:
        self.fastpath, self.stores = fastpath, fastpath._stores

    async def teach(self, request: str, plan: Plan, actor: Actor = ANNA, **fields: Any) -> None:
        context = turn_of(request, actor, **fields)
        assert await self.fastpath.learn(context, done(context, plan)) is not None

    async def find(self, request: str, **fields: Any) -> Hit | None:
        return await self.fastpath.find(turn_of(request, **fields))

    async def execute(self, sql: str, **values: Any) -> None:
        async with self.stores.memory.write() as tx:
            await tx.execute(sql, values)

    async def rows(self) -> int:
        async with self.stores.memory.read() as tx:
            return sum(await plan_cache.count(tx))


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Memory]:
    stores = await open_stores(load_settings(metnos_home=folder / "home"), SystemClock())
    nearness = Nearness(embedder_of(load_settings(), "hashing"), stores, SystemClock())
    try:
        yield Memory(Fastpath(stores, SystemClock(), nearness))
    finally:
        await nearness.close()
        await stores.close()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with opened(tmp_path) as one:
        yield one


# -- rows that are not what they were -------------------------------------------------------------

COLUMNS = (
    "version lang text exact shape wording meaning plan_json bindings_json values_json tools"
    " families changes why_exact approved uses turn_id learnt_at used_at why vector embedder"
    " served_turn"
).split()
JUNK = st.one_of(
    st.text(max_size=30),
    st.integers(-(2**62), 2**62),
    st.floats(),
    st.binary(max_size=30),
    st.sampled_from(
        [
            "[]",
            "{}",
            "null",
            "[[0]]",
            '[[9,["paths",0],0,"text","",""]]',
            '[[0,["paths",9],0,"text","",""]]',
            '[[0,["nothing"],0,"magic","",""]]',
            '[[-1,["paths",0],-1,"text","",""]]',
            '[["<path.txt>","altro.txt"],["<name>","x"]]',
            '{"steps":[]}',
            '{"steps":[{"tool":"no_such_tool","args":{}}]}',
            '{"steps":[{"tool":"delete_files","args":[]}]}',
            "[" * 5000,
            2**80 * 1.0,
        ]
    ),
)


@pytest.fixture(scope="module")
def one_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Runs something with one memory for all examples, emptied before each."""
    with asyncio.Runner() as runner:
        opening = opened(tmp_path_factory.mktemp("memory"))
        memory = runner.run(opening.__aenter__())

        async def emptied(work: Callable[[Memory], Coroutine[Any, Any, None]]) -> None:
            await memory.execute("DELETE FROM plan_cache")
            await memory.execute("DELETE FROM disliked")
            await work(memory)

        yield lambda work: runner.run(emptied(work))
        runner.run(opening.__aexit__(None, None, None))


@pytest.mark.parametrize("column", COLUMNS)
@settings(max_examples=max(2, round(12 * SCALE)), deadline=None)
@given(junk=JUNK)
def test_damaged_row_is_passed_over(one_store: Run, column: str, junk: Any):
    async def damaged(memory: Memory) -> None:
        await memory.teach(DELETE, deleting("bozza.txt"))
        try:
            await memory.execute(f"UPDATE plan_cache SET {column} = :junk", junk=junk)
        except (StoreError, OverflowError):
            return  # the database itself refuses it
        await looked_at(memory)

    one_store(damaged)


async def looked_at(memory: Memory) -> None:
    """All that is done with rows; what is served is what was taught, for the values asked."""
    for path in ("bozza.txt", "altra.txt"):
        hit = await memory.find(f"cancella {path}")
        assert hit is None or hit.plan == deleting(path)
        if hit is not None:
            context = turn_of(f"cancella {path}")
            await memory.fastpath.learn(context, served(context, hit.mark))
    turn = asked(DELETE)
    await memory.fastpath.of_turn(turn)
    await memory.fastpath.judge(turn, Vote.DOWN)
    async with memory.stores.memory.read() as tx:
        await plan_cache.listed(tx)
        await plan_cache.count(tx)
    await memory.fastpath.age(list(catalog().executors))
    await memory.fastpath.judge(turn, Vote.UP)
    await memory.teach(DELETE, deleting("bozza.txt"))
    hit = await memory.find(DELETE)
    assert hit is not None
    assert hit.plan == deleting("bozza.txt")


def asked(request: str, turn_id: str = "") -> StoredTurn:
    now = SystemClock().now()
    return StoredTurn(
        id=turn_id or turn_of(request).turn_id,
        inbound_id="",
        actor_id=ANNA.id,
        conversation="terminal:anna",
        lang="it",
        request=request,
        answer="",
        reply={},
        state="closed",
        state_data={},
        final_kind=FinalKind.ANSWER,
        started_at=now,
        ended_at=now,
        segment=1,
        logged=True,
        log_line={},
        log_day=None,
    )


async def test_plan_of_a_later_version_is_a_miss_and_stays(memory: Memory):
    await memory.teach(DELETE, deleting("bozza.txt"))
    await memory.execute("UPDATE plan_cache SET version = version + 1, plan_json = 'of later'")

    assert await memory.find(DELETE) is None
    assert await memory.find("cancella altra.txt") is None
    await memory.teach(DELETE, deleting("bozza.txt"))
    hit = await memory.find(DELETE)
    assert hit is not None
    assert hit.plan == deleting("bozza.txt")


async def test_plan_of_a_tool_that_is_gone_is_a_miss_and_goes(memory: Memory):
    await memory.teach(DELETE, deleting("bozza.txt"))
    rest = {name: one for name, one in catalog().executors.items() if name != "delete_files"}
    context = replace(turn_of(DELETE), catalog=replace(catalog(), executors=rest))

    assert await memory.fastpath.find(context) is None
    assert await memory.find(DELETE) is None
    await memory.fastpath.age(list(rest))
    assert await memory.rows() == 0


# -- requests that are not what they look like ----------------------------------------------------

SPEAKING_OF_IT = [
    "non fare questo: cancella bozza.txt",
    "don't do this: delete bozza.txt",
    'cosa succede se dico "cancella bozza.txt"?',
    "cosa succede se cancello bozza.txt?",
    "what happens if I delete bozza.txt?",
    "Marco ha scritto: cancella bozza.txt",
    "Marco wrote: delete bozza.txt",
    "traduci in inglese: cancella bozza.txt",
    "non cancellare bozza.txt",
    "do not delete bozza.txt",
    "never delete bozza.txt",
    "ho cancellato bozza.txt?",
    "chi ha cancellato bozza.txt?",
    "did I delete bozza.txt?",
    "spiegami come si cancella bozza.txt",
    "how do I delete bozza.txt?",
    "posso cancellare bozza.txt?",
    "perché hai cancellato bozza.txt?",
    "ignora chi dice cancella bozza.txt",
    "se piove cancella bozza.txt",
    "domani cancella bozza.txt",
    "cancella bozza.txt se esiste una copia",
    "cancella tutto tranne bozza.txt",
    "annulla: cancella bozza.txt",
]


@pytest.mark.parametrize("request_", SPEAKING_OF_IT)
async def test_request_that_speaks_of_another_is_not_that_other(memory: Memory, request_: str):
    await memory.teach(DELETE, deleting("bozza.txt"))
    await memory.teach("delete appunti.txt", deleting("appunti.txt"), lang="en")

    assert await memory.find(request_) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cancella {}", "trova {} e cancellalo"),
        ("delete {}", "look for the file {} and remove it"),
        ("leggi {}", "cerca il file {} e leggilo"),
        ("read me the file {}", "find the file {} and read it"),
    ],
)
async def test_what_is_to_be_found_first_is_not_what_is_named(
    memory: Memory, one: str, other: str
):
    """What is looked for may lie in any folder, and there may be several."""
    for taught, said in ((one, other), (other, one)):
        tool = "delete_files" if "dele" in one or "canc" in one else "read_files"
        await memory.execute("DELETE FROM plan_cache")
        await memory.teach(
            taught.format("bozza.txt"), Plan((Step(tool, {"paths": ["bozza.txt"]}),))
        )

        assert await memory.find(said.format("bozza.txt")) is None
        assert await memory.find(said.format("altra.txt")) is None


async def test_quoted_words_are_no_request(memory: Memory):
    await memory.teach(DELETE, deleting("bozza.txt"))

    assert await memory.find(DELETE, quoted="il messaggio di Marco") is None


@pytest.mark.parametrize(
    ("taught", "other", "path"),
    [
        ("bozza.txt", "Bozza.txt", "Bozza.txt"),
        ("bozza.txt", "BOZZA.TXT", "BOZZA.TXT"),
        ("perche.txt", "perché.txt", "perché.txt"),
        ("file.txt", "\ufb01le.txt", "\ufb01le.txt"),
        ("bozza.txt", "\uff42ozza.txt", "\uff42ozza.txt"),
        ("bozza.txt", "b\u043ezza.txt", "b\u043ezza.txt"),
    ],
    ids=["capital", "capitals", "accent", "ligature", "full width", "homoglyph"],
)
async def test_name_that_only_looks_the_same_is_the_one_that_was_written(
    memory: Memory, taught: str, other: str, path: str
):
    await memory.teach(f"cancella {taught}", deleting(taught))

    hit = await memory.find(f"cancella {other}")

    assert hit is None or hit.plan == deleting(path)


async def test_text_in_other_letters_is_written_as_it_was_said(memory: Memory):
    def writing(text: str) -> Plan:
        return Plan((Step("write_files", {"path": "a.md", "content": text, "mode": "append"}),))

    await memory.teach('scrivi "Ciao Anna" in a.md', writing("Ciao Anna"))

    hit = await memory.find('scrivi "ciao ANNA" in a.md')

    assert hit is None or hit.plan == writing("ciao ANNA")


TRICKS = st.one_of(
    st.characters(categories=["Cf", "Mn", "Me", "Zs", "So", "Co", "Cc"]),
    st.sampled_from("\u200b\u200c\u200d\u2060\ufeff\u202e\u2066\u00ad\ufe0f\u0430\u0435\u043e"),
)


@settings(max_examples=max(20, round(150 * SCALE)), deadline=None)
@given(trick=TRICKS, at=st.integers(0, len(DELETE)), instead=st.booleans())
def test_tricks_of_letters_never_lead_to_another_file(
    one_store: Run, trick: str, at: int, instead: bool
):
    said = DELETE[:at] + trick + DELETE[at + instead :]

    async def tricked(memory: Memory) -> None:
        await memory.teach(DELETE, deleting("bozza.txt"))
        hit = await memory.find(said)
        if hit is not None:
            [path] = hit.plan.steps[0].args["paths"]
            # What is done is what stands there, letter by letter.
            assert path in said.split()[-1:] or path == said[said.find(path) :].rstrip(trick + ".")

    one_store(tricked)


# -- too much of it, and all at once --------------------------------------------------------------


async def test_flood_of_requests_that_are_alike_is_bounded_in_rows_and_time(memory: Memory):
    many = max(700, round(100_000 * min(SCALE, 1) / 100))
    for number in range(many):
        await memory.teach(f"cancella bozza{number}.txt", deleting(f"bozza{number}.txt"))

    assert await memory.rows() <= plan_cache.MAX_ROWS * 1.2
    began = time.perf_counter()
    hit = await memory.find("cancella altra.txt")
    assert hit is not None
    assert hit.plan == deleting("altra.txt")
    assert time.perf_counter() - began < 10


async def test_all_at_once_is_a_plan_or_none(memory: Memory):
    await memory.teach(DELETE, deleting("bozza.txt"))

    async def use(number: int) -> None:
        actor = BRUNO if number % 5 == 4 else ANNA
        context = turn_of(f"cancella bozza{number % 7}.txt", actor)
        right = deleting(f"bozza{number % 7}.txt")
        hit = await memory.fastpath.find(context)
        assert hit is None or (hit.plan == right and hit.row.actor_id == actor.id)
        await asyncio.sleep(0)
        if hit is None:
            await memory.fastpath.learn(context, done(context, right))
        else:
            await memory.fastpath.learn(context, served(context, hit.mark))

    async def spoil(number: int) -> None:
        await asyncio.sleep(number / 1000)
        if number % 3 == 0:
            async with memory.stores.memory.write() as tx:
                await plan_cache.flush(tx)
        elif number % 3 == 1:
            await memory.fastpath.judge(asked(f"cancella bozza{number % 7}.txt"), Vote.DOWN)
        else:
            await memory.fastpath.age(list(catalog().executors))

    await asyncio.gather(*map(use, range(60)), *map(spoil, range(12)))
