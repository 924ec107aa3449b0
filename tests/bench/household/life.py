"""The month as it is lived: a real house, a model that plans what is right but for a few times, and
somebody who compares what was done with what was asked."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from bot.app import House, open_house
from core.execution.invoke import Gate
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
from tests.bench.household.kinds import Call, plain
from tests.bench.household.script import PEOPLE, Asked, Month, Person
from tests.bench.household.values import furnish
from tests.support.executors import install_unit, manifest_toml, signed_executor, tree_unit
from tests.support.house import house_settings
from tests.support.scripted_model import Ask, Rule, ScriptedModel

MODEL = "engine"
SIBLING = "list_files"
_SIBLING_CODE = "def run(call):\n    return {'ok': True, 'content': 'niente'}\n"


@dataclass(frozen=True, slots=True)
class Lived:
    """One request and what came of it. `source`: who planned it; `wrong`: what differs from what
    was asked, "" when nothing does; `why`: why memory did not serve it."""

    asked: Asked
    again: bool
    source: str
    how: str
    wrong: str
    ok: bool
    seconds: float
    tokens: int
    why: str = ""


@dataclass
class Life:
    """What is known while the month goes on."""

    month: Month
    house: House
    model: ScriptedModel
    clock: PutForward
    spaces: dict[int, Path]
    memory: bool
    ran: list[StepRecord] = field(default_factory=list)
    plan: tuple[Call, ...] = ()
    not_kept: dict[str, str] = field(default_factory=dict)
    lived: list[Lived] = field(default_factory=list)
    ids: dict[int, str] = field(default_factory=dict)
    version: Counter[str] = field(default_factory=Counter)

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
        await Fastpath(self.house.stores, self.clock).age(
            list(self.house.loader.current().executors)
        )
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
        before = await asyncio.to_thread(_seen, space)
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
        after = await asyncio.to_thread(_seen, space)
        expected = plan if source == MODEL else asked.right
        lived = Lived(
            asked,
            again,
            source,
            await self._how(end.turn_id, source),
            self._wrong(expected, before, after, space),
            end.final_kind is FinalKind.ANSWER,
            seconds,
            int(line["tokens_in"]) + int(line["tokens_out"]),
            self.not_kept.get(end.turn_id, ""),
        )
        self.lived.append(lived)
        return end, lived

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

    # -- what was done ----------------------------------------------------------------------------

    def _wrong(
        self,
        expected: tuple[Call, ...],
        before: dict[str, bytes],
        after: dict[str, bytes],
        space: Path,
    ) -> str:
        """What differs between what was done and what these calls ask for."""
        done = [record for record in self.ran if record.ran and record.tool != "final_answer"]
        calls = plain([(record.tool, dict(record.raw_args)) for record in done])
        wanted = plain(list(expected))
        if calls != wanted:
            return f"ran {calls} for {wanted}"
        for record, (_, args) in zip(done, expected, strict=True):
            if stray := _stray(args, record.resolved_args, space):
                return f"went to {stray}"
        effects = {p: after.get(p) for p in {*before, *after} if before.get(p) != after.get(p)}
        due = _effects(expected, before)
        if {path: None if data is None else b"" for path, data in effects.items()} != {
            path: None if data is None else b"" for path, data in due.items()
        }:
            return f"changed {sorted(effects)} for {sorted(due)}"
        for path, data in due.items():
            if data is not None and data not in (effects[path] or b""):
                return f"wrote {effects[path]!r} for {data!r}"
        return ""

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


def _button(reply: Reply, label: str) -> Button | None:
    return next((b for row in reply.buttons for b in row if b.label.startswith(label)), None)


def _seen(space: Path) -> dict[str, bytes]:
    """Every file of a person and what is in it; the trash is not theirs to look at."""
    return {
        path.relative_to(space).as_posix(): path.read_bytes()
        for path in space.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    }


def _stray(args: dict[str, Any], resolved: Any, space: Path) -> str:
    """A path that does not lead where its words say, in this person's own folder."""
    for name in ("path", "paths", "base_path", "dst"):
        said, real = args.get(name, []), (resolved or {}).get(name, [])
        said, real = ([x] if isinstance(x, str) else list(x) for x in (said, real))
        due = [str((space / one).resolve()) for one in said]
        if due and due != [str(one).rstrip("/") for one in real]:
            return f"{real} for {due}"
    return ""


def _effects(calls: tuple[Call, ...], before: dict[str, bytes]) -> dict[str, bytes | None]:
    """What these calls change: path → what is then in it, None when it is gone."""
    due: dict[str, bytes | None] = {}
    for number, (tool, args) in enumerate(calls):
        targets = list(args.get("paths", []))
        if "from_step" in args:
            sought = calls[number - 1][1].get("patterns") or ("*",)
            targets = [p for p in before if any(Path(p).match(one) for one in sought)]
        if tool == "write_files":
            due[args["path"]] = args["content"].encode()
        elif tool == "delete_files":
            due |= dict.fromkeys(targets)
        elif tool == "move_files":
            for path in targets:
                whole = args["dst"].endswith(".txt")
                due[args["dst"] if whole else f"{args['dst']}/{path}"] = before[path]
                due[path] = None
    return due


# -- opening --------------------------------------------------------------------------------------


@asynccontextmanager
async def open_life(
    month: Month, folder: Path, photon: str, *, memory: bool, **settings: Any
) -> AsyncIterator[Life]:
    """A house of its own below `folder`, in which this month has not yet begun."""
    plan = Rule(plan=lambda ask: _proposed(life, ask))
    model, clock = ScriptedModel([plan]), PutForward()
    with model.running() as base_url:
        wanted = house_settings(
            folder,
            base_url=base_url,
            metnos_engine="metis",
            metnos_memory=memory,
            metnos_photon_url=photon,
            metnos_guest_turns_per_hour=0,
            metnos_guest_tokens_per_day=0,
            **settings,
        )
        async with open_house(wanted, "month", clock=clock) as house:
            spaces, ids = await _move_in(house, folder)
            life = Life(month, house, model, clock, spaces, memory, ids=ids)
            with _watched(life):
                yield life


def _proposed(life: Life, ask: Ask) -> dict[str, Any]:
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
    Gate.call = looked_at  # type: ignore[method-assign]
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
