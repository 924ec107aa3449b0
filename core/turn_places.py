"""Places that people share and addresses that they type: kept as where they are, or looked up.

An address is looked up by the signed program, through the gate like any other call; what it may
mean is the person's to decide. Claims nothing: a question stays open until its answer is final.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from core import dialogs
from core.dialogs import Suspension, SuspensionKind
from core.errors import ErrorCode, ErrorInfo
from core.execution.consent import Question
from core.execution.context import TurnContext
from core.execution.invoke import Gate
from core.i18n import Texts
from core.messages import (
    Actor,
    Block,
    FinalKind,
    Inbound,
    Reply,
    StepStarted,
    TurnClosed,
    TurnEvent,
)
from core.plan import Step
from core.positions import Position, Source, read_position
from core.store import actors, positions, scratchpad, turns
from core.store.database import Transaction
from core.turn_setup import TurnSetup
from core.turn_state import TurnState

LOOKS_UP = "find_places"
MOST_MATCHES = 5
MOST_SHOWN = 60

Emit = Callable[[TurnEvent], None]


@dataclass(frozen=True, slots=True)
class Looked:
    """What an address may mean: `{"lat", "lon", "address"}` each. `problem` is the key of the word
    for why there is none; "" when there are some."""

    matches: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """A place that is clear, and where that says the person is; or the question `after` it, with
    the `key` of the word for what became of this one."""

    place: Mapping[str, Any] = field(default_factory=dict)
    position: Position | None = None
    after: Suspension | None = None
    key: str = ""
    address: str = ""


class Places:
    """Keeps positions for as long as the settings say, and asks the gate about addresses."""

    def __init__(self, *, gate: Gate, texts: Texts, setup: TurnSetup) -> None:
        self._gate, self._texts, self._setup = gate, texts, setup
        self._minutes = gate.settings.metnos_location_minutes

    async def look_up(self, context: TurnContext, address: str) -> Looked:
        """Ask what an address means; never raises for what comes of it. May take seconds."""
        record = await self._gate.call(
            context,
            TurnState(context.turn_id, address),
            Step(LOOKS_UP, {"queries": [address]}),
            offered=frozenset({LOOKS_UP}) & frozenset(context.catalog.offered),
        )
        if isinstance(record, Question):
            return Looked(problem="dialog.place_unknown")  # "near me" is no address
        if (entry := record.shown.get("scratchpad_id")) is not None:
            async with self._gate.stores.main.write() as tx:
                await scratchpad.drop(tx, str(entry))
        seen = record.observation
        if not seen.ok:
            code = ErrorCode.INTERNAL if seen.error is None else seen.error.code
            return Looked(problem=_PROBLEMS.get(code, "dialog.place_failed"))
        now = self._gate.clock.now()
        found = [_match(entry, now) for entry in seen.entries or ()]
        matches = {match["address"]: match for match in reversed(found) if match is not None}
        if not matches:
            return Looked(problem="dialog.place_unknown")
        return Looked(tuple(reversed(matches.values()))[:MOST_MATCHES])

    async def read(
        self,
        inbound: Inbound,
        actor: Actor,
        suspension: Suspension,
        place: Any,
        emit: Emit,
    ) -> Read:
        """What a place in words means for a question: coordinates, and what was chosen, are
        clear; an address is looked up, while `emit` tells that it takes a moment."""
        if not isinstance(place, Mapping):
            return Read(after=dialogs.anew(suspension, typing=False), key="dialog.not_understood")
        if "lat" in place:
            return self._clear(suspension, place)
        address = str(place["address"])
        async with self._gate.stores.main.read() as tx:
            stored = await turns.get(tx, suspension.turn_id)
        lang = self._setup.lang(actor, inbound, "") if stored is None else stored.lang
        now = self._gate.clock.now()
        context = self._setup.context(
            suspension.turn_id, actor, inbound.address, lang, now, address
        )
        phrase = self._setup.phrase(context, LOOKS_UP)
        emit(StepStarted(suspension.turn_id, 1, LOOKS_UP, phrase))
        looked = await self.look_up(context, address)
        if looked.problem:
            after = dialogs.anew(suspension, typing=suspension.is_typing)
            shown = address if len(address) <= MOST_SHOWN else f"{address[: MOST_SHOWN - 1]}…"
            return Read(after=after, key=looked.problem, address=shown)
        if len(looked.matches) > 1:
            after = dialogs.choosing(suspension, looked.matches)
            return Read(after=after, key="dialog.choose_place")
        return self._clear(suspension, looked.matches[0])

    def _clear(self, suspension: Suspension, place: Mapping[str, Any]) -> Read:
        """Who is asked where they are, and types it, is there for a while."""
        position = None
        if suspension.kind is SuspensionKind.LOCATION:
            label = str(place.get("address") or "")
            now = self._gate.clock.now()
            position = read_position(place, at=now, source=Source.TYPED, label=label)
        return Read(place, position)

    def shared(
        self, inbound: Inbound, open_ones: Sequence[Suspension]
    ) -> tuple[Position | None, Suspension | None]:
        """The position that a person shares, None when it is no point of the earth; and the
        question it answers: the newest for a place, or the one that it replies to, unless it was
        sent long before that was asked."""
        position = self.position_of(inbound)
        if position is None:
            return None, None
        asked = [
            one
            for one in open_ones
            if one.wants_place and position.at >= one.created_at - dialogs.TTL_LOCATION
        ]
        reply_to = inbound.data.get("reply_to")
        if reply_to:
            asked = [one for one in asked if reply_to in (one.prompt_key, one.message_id)]
        return position, asked[0] if asked else None

    def position_of(self, inbound: Inbound) -> Position | None:
        """The position that an inbound shares; None when it is no point of the earth."""
        source = Source.VENUE if inbound.text else Source.SHARED
        if inbound.data.get("live") is True:
            source = Source.LIVE
        at = min(inbound.received_at, self._gate.clock.now())
        return read_position(inbound.data, at=at, source=source, label=inbound.text)

    async def keep(self, tx: Transaction, actor: Actor, position: Position) -> bool:
        """Keep where the person is, unless that is too long ago, or older than what is known."""
        expires = position.at + timedelta(minutes=self._minutes)
        if expires <= self._gate.clock.now():
            return False
        return await positions.keep(tx, actor.id, position, expires_at=expires)

    async def follow(self, inbound: Inbound) -> None:
        """Note where somebody is who shares their place while it moves; nothing is said of it.
        Strangers, what is no place, and what is older than what is known change nothing."""
        position = self.position_of(inbound)
        if position is None:
            return
        async with self._gate.stores.main.write() as tx:
            actor = await actors.find_actor(tx, inbound.address.channel, inbound.sender_id)
            if actor is not None:
                await self.keep(tx, actor, position)

    async def unasked(
        self, inbound: Inbound, actor: Actor, position: Position | None
    ) -> TurnClosed:
        """Keep a position that no question was open for, and say so."""
        lang = self._setup.lang(actor, inbound, "")
        if position is None:
            return self._told("place.unreadable", lang, error=ErrorInfo(ErrorCode.UNKNOWN_PLACE))
        if not self._minutes:
            return self._told("place.not_kept", lang)
        if position.at + timedelta(minutes=self._minutes) <= self._gate.clock.now():
            time = self._texts.time(position.at, lang, self._setup.zone(actor))
            return self._told("place.old", lang, time=time)
        async with self._gate.stores.main.write() as tx:
            await self.keep(tx, actor, position)
        key = {Source.LIVE: "place.followed", Source.VENUE: "place.kept_as"}.get(
            position.source, "place.kept"
        )
        return self._told(key, lang, minutes=self._minutes, name=position.label)

    def _told(
        self, key: str, lang: str, *, error: ErrorInfo | None = None, **params: Any
    ) -> TurnClosed:
        kind = FinalKind.ANSWER if error is None else FinalKind.ERROR
        reply = Reply((Block("text", self._texts.say(key, lang, **params)),), lang, None, kind)
        return TurnClosed("", kind, reply, error)


_PROBLEMS = {
    ErrorCode.SERVICE_OFF: "dialog.place_off",
    ErrorCode.UNKNOWN_TOOL: "dialog.place_off",
    ErrorCode.UNKNOWN_PLACE: "dialog.place_unknown",
    ErrorCode.UNGROUNDED: "dialog.place_unknown",
    ErrorCode.INVALID_ARGS: "dialog.place_unknown",
    ErrorCode.BAD_TEXT: "dialog.place_unknown",
}


def place_of(position: Position) -> dict[str, Any]:
    """A shared position as the answer to a question."""
    told = {"accuracy": position.accuracy_m, "address": position.label or None}
    return {
        "lat": position.lat,
        "lon": position.lon,
        **{name: value for name, value in told.items() if value is not None},
    }


def _match(entry: Mapping[str, Any], now: datetime) -> Mapping[str, Any] | None:
    """A place of the program as an answer; None for what failed or is no point of the earth."""
    name, address = str(entry.get("name") or ""), str(entry.get("address") or "")
    if not address or address.casefold().startswith(name.casefold()):
        label = address or name
    else:
        label = f"{name}, {address}" if name else address
    point = read_position(entry, at=now, label=label)
    if entry.get("ok") is False or point is None or not point.label:
        return None
    return {"lat": point.lat, "lon": point.lon, "address": point.label}
