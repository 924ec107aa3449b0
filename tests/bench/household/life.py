"""The month as it is lived: a real house, a model that plans what is right but for a few times,
and somebody who compares what was done with what was asked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.app import House, open_house
from core.execution.invoke import Gate
from core.levels.autopath import Autopath
from core.levels.fastpath import Fastpath
from core.messages import (
    Button,
    ChatAddress,
    FinalKind,
    Inbound,
    InboundKind,
    Reply,
    Role,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.positions import Position, Source
from core.store import actors, plan_cache, positions, upkeep
from core.store.turn_log import read_lines
from core.turn_state import StepRecord
from tests.bench.household.clock import MORNING, PutForward
from tests.bench.household.kinds import Call
from tests.bench.household.oracle import differs, seen
from tests.bench.household.script import PEOPLE, Asked, Month, Person
from tests.bench.household.values import furnish
from tests.support.executors import install_unit, manifest_toml, signed_executor, tree_unit
from tests.support.house import house_settings
from tests.support.scripted_model import Rule, ScriptedModel

MODEL = "engine"
SIBLING = "list_files"
_SIBLING_CODE = "def run(call):\n    return {'ok': True, 'content': 'niente'}\n"


@dataclass(frozen=True, slots=True)
class Lived:
    """One request and what came of it. `source`: who planned it; `failed`: the words of
    an end that is no answer; `wrong`: what differs from what
    was asked, "" when nothing does; `why`: why memory did not keep its plan; `missed`: why what is
    remembered of its kind did not serve."""

    asked: Asked
    again: bool
    source: str
    how: str
    wrong: str
    failed: str
    seconds: float
    tokens: int
    why: str = ""
    missed: str = ""


@dataclass
class Life:
    """What is known while the month goes on."""

    month: Month
    house: House
    model: ScriptedModel
    clock: PutForward
    spaces: dict[int, Path]
    ran: list[StepRecord] = field(default_factory=list)
    plan: tuple[Call, ...] = ()
    not_kept: dict[str, str] = field(default_factory=dict)
    lived: list[Lived] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)
    version: Counter[str] = field(default_factory=Counter)
    taught: dict[str, tuple[int, str]] = field(default_factory=dict)

    async def live(self) -> list[Lived]:
        """Live through the month."""
        day = -1
        for asked in self.month.asked:
            self.clock.reach(MORNING + asked.after)
            if asked.after.days != day:
                day = asked.after.days
                await self._morning()
            if name := self.month.signed_anew.get(asked.number):
                self._sign_anew(name)
            if asked.number == self.month.sibling:
                manifest = manifest_toml(SIBLING)
                signed_executor(self.house.settings, manifest, _SIBLING_CODE)
            misled = asked.misled
            told, lived = await self._ask(asked, misled or asked.right)
            if misled is not None and lived.source == MODEL:
                # It is not what was wanted: they say so, and ask once more.
                await self._press(asked.person, told, "👎")
                await self._ask(asked, asked.right, again=True)
            elif asked.vote is not None and not lived.wrong:
                await self._press(asked.person, told, asked.vote)
        return self.lived

    async def _morning(self) -> None:
        """What the house does by itself, once a day here."""
        now = self.clock.now()
        await upkeep.tidy(self.house.stores, now)
        tools = list(self.house.loader.current().executors)
        await Fastpath(self.house.stores, self.clock).age(tools)
        await Autopath(self.house.stores, self.clock).age(tools)
        async with self.house.stores.main.write() as tx:
            for actor_id in self.ids.values():
                here = Position(lat=44.6, lon=10.9, source=Source.SHARED, at=now)
                await positions.keep(tx, actor_id, here, expires_at=now + timedelta(days=2))

    def _sign_anew(self, name: str) -> None:
        self.version[name] += 1
        files = tree_unit(name)
        old, new = 'version = "1.0.0"', f'version = "1.0.{self.version[name]}"'
        files["manifest.toml"] = files["manifest.toml"].decode().replace(old, new, 1).encode()
        install_unit(self.house.settings, name, files)

    # -- one request ------------------------------------------------------------------------------

    async def _ask(
        self, asked: Asked, plan: tuple[Call, ...], *, again: bool = False
    ) -> tuple[TurnClosed, Lived]:
        space = self.spaces[asked.person.number]
        self._make_ready(asked, space)
        knew = await self._knows(asked)
        before = await asyncio.to_thread(seen, space)
        self.plan = plan
        self.ran.clear()
        began = time.perf_counter()
        end = (await self._say(asked.person, asked.text))[-1]
        if isinstance(end, TurnSuspended):
            agree = next(b for row in end.reply.buttons for b in row if "✅" in b.label)
            end = (await self._tap(asked.person, agree))[-1]
        seconds = time.perf_counter() - began
        assert isinstance(end, TurnClosed), end
        line = self._line(end.turn_id)
        source = str(line["match_source"])
        after = await asyncio.to_thread(seen, space)
        expected = plan if source == MODEL else asked.right
        lived = Lived(
            asked,
            again,
            source,
            await self._how(end.turn_id, source),
            differs(self.ran, expected, before, after, space),
            "" if end.final_kind is FinalKind.ANSWER else end.reply.plain,
            seconds,
            int(line["tokens_in"]) + int(line["tokens_out"]),
            self.not_kept.get(end.turn_id, ""),
        )
        if source == MODEL and not lived.why:
            why = _why_missed(knew, await self._knows(asked))
            lived = replace(lived, missed=why)
        self.taught[end.turn_id] = (asked.person.number, asked.kind.name)
        self.lived.append(lived)
        return end, lived

    async def _knows(self, asked: Asked) -> dict[int, str]:
        """The rows that requests of this kind taught, or this very person's: id → why each served
        last, or did not."""
        mine = (asked.person.number, asked.kind.name)
        async with self.house.stores.memory.read() as tx:
            rows = await tx.fetch_all("SELECT id, turn_id, why FROM plan_cache")
        return {r["id"]: str(r["why"]) for r in rows if self.taught.get(r["turn_id"]) == mine}

    def _make_ready(self, asked: Asked, space: Path) -> None:
        """What is to be moved or deleted is there first."""
        for slot, said in asked.values.items():
            if slot.startswith("junk"):
                (space / said.meant).write_text(f"di {said.meant}\n", encoding="utf-8")
        if "*.tmp" in str(asked.right):
            (space / f"cache{asked.number}.tmp").write_text("x", encoding="utf-8")

    def _line(self, turn_id: str) -> dict[str, Any]:
        """The line of the log that ended a turn; its planning may stand in an earlier one."""
        found: list[dict[str, Any]] = []
        for path in sorted((self.house.settings.metnos_home / "turns").glob("*.jsonl"))[-2:]:
            found += read_lines(path, containing=turn_id.encode())
        lines = [line for line in found if line["turn_id"] == turn_id]
        tokens = {key: sum(line[key] for line in lines) for key in ("tokens_in", "tokens_out")}
        return {**lines[0], **tokens}

    async def _how(self, turn_id: str, source: str) -> str:
        if source != "fastpath":
            return ""
        async with self.house.stores.memory.read() as tx:
            row = await tx.fetch_one(
                "SELECT why FROM plan_cache ORDER BY used_at DESC NULLS LAST LIMIT 1"
            )
        return "" if row is None else str(row["why"])

    # -- how people speak -------------------------------------------------------------------------

    async def _say(self, person: Person, text: str, **fields: Any) -> list[TurnEvent]:
        said = Inbound(
            id=self.clock.new_id(),
            address=ChatAddress("telegram", person.sender),
            sender_id=person.sender,
            kind=fields.pop("kind", InboundKind.TEXT),
            text=text,
            received_at=self.clock.now(),
            lang=person.lang,
            **fields,
        )
        return [event async for event in self.house.turns.run(said)]

    async def _tap(self, person: Person, button: Button) -> list[TurnEvent]:
        data = {"token": button.token}
        return await self._say(person, "", kind=InboundKind.CHOICE, data=data)

    async def _press(self, person: Person, told: TurnClosed, label: str) -> None:
        button = _button(told.reply, label)
        if button is not None:
            await self._tap(person, button)


def _why_missed(before: dict[int, str], after: dict[int, str]) -> str:
    """What became of the rows of a kind when a request of it was planned anew."""
    for row, why in after.items():
        if why in {"tool_changed", "new_sibling", "tool_missing", "disliked"} and (
            before.get(row) != why
        ):
            return why
    if not before:
        return "nothing_known"
    retired = {"tool_changed", "new_sibling", "tool_missing"}
    return "only_retired" if set(before.values()) <= retired else "other_words"


def _button(reply: Reply, label: str) -> Button | None:
    return next((b for row in reply.buttons for b in row if b.label.startswith(label)), None)


# -- opening --------------------------------------------------------------------------------------


@asynccontextmanager
async def open_life(
    month: Month, folder: Path, photon: str, *, memory: bool, **settings: Any
) -> AsyncIterator[Life]:
    """A house of its own below `folder`, in which this month has not yet begun."""
    houses: list[Life] = []
    model, clock = ScriptedModel([Rule(plan=lambda ask: _proposed(houses[0]))]), PutForward()
    with model.running() as base_url:
        wanted = house_settings(
            folder,
            base_url=base_url,
            metnos_engine="metis",
            metnos_memory=memory,
            metnos_embedder="hashing",
            metnos_photon_url=photon,
            metnos_guest_turns_per_hour=0,
            metnos_guest_tokens_per_day=0,
            **settings,
        )
        async with open_house(wanted, "month", clock=clock) as house:
            spaces, ids = await _move_in(house, folder)
            life = Life(month, house, model, clock, spaces, ids=ids)
            houses.append(life)
            with _watched(life):
                yield life


def _proposed(life: Life) -> dict[str, Any]:
    return {"steps": [{"tool": tool, "args": args} for tool, args in life.plan]}


async def _move_in(house: House, folder: Path) -> tuple[dict[int, Path], dict[int, str]]:
    spaces, ids = {}, {}
    async with house.stores.main.write() as tx:
        host = await actors.ensure_local_host(tx, house.clock)
        for person in PEOPLE:
            actor = host
            if not person.is_host:
                actor = await actors.add(tx, Role.GUEST, f"guest {person.number}", house.clock)
            await actors.link(tx, "telegram", person.sender, actor.id)
            ids[person.number] = actor.id
            home = house.settings.metnos_home / "files" / actor.id
            spaces[person.number] = folder / "notes" if person.is_host else home
    for space in spaces.values():
        space.mkdir(parents=True, exist_ok=True, mode=0o700)
        furnish(space)
    return spaces, ids


@contextmanager
def _watched(life: Life) -> Iterator[None]:
    """Look on at the gate, and at what memory says it does not keep. Changes nothing."""
    call = Gate.call

    async def looked_at(gate: Gate, *args: Any, **fields: Any) -> Any:
        record = await call(gate, *args, **fields)
        if isinstance(record, StepRecord):
            life.ran.append(record)
        return record

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "plan not kept" and hasattr(record, "turn_id"):
                life.not_kept[record.turn_id] = str(getattr(record, "why", ""))

    ear, heard = Ear(), logging.getLogger("core.levels.fastpath")
    level = heard.level
    heard.addHandler(ear)
    heard.setLevel(logging.INFO)
    Gate.call = looked_at  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Gate.call = call  # type: ignore[method-assign]
        heard.removeHandler(ear)
        heard.setLevel(level)


async def rows_of(life: Life) -> list[plan_cache.StoredPlan]:
    """What is remembered at the end."""
    async with life.house.stores.memory.read() as tx:
        return await plan_cache.listed(tx, limit=10_000)
