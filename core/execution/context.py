"""What a turn's calls need to know of the turn: whose it is, where, with which catalogue."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zoneinfo import ZoneInfo

from core.allowance import Allowance
from core.catalog.evidence import Evidence
from core.catalog.loader import Catalog
from core.config import Settings
from core.errors import CallRefused, ErrorCode
from core.execution.paths import Scope
from core.messages import Actor, ChatAddress, Role
from core.observation import Observation, Provenance
from core.store.grants import Granted
from core.turn_state import TurnState

_SHIFT = re.compile(r"now([+-])(\d{1,4})([dh])|now_(plus|minus)_(\d{1,4})([dh])")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One earlier request of this conversation and what was answered, cut short. `external`: words
    from outside may stand in the answer."""

    request: str
    answer: str
    external: bool = False


@dataclass(frozen=True, slots=True)
class TurnContext:
    """Fixed for a whole turn: the catalogue too, so that a change counts from the next one.

    `private_hosts`: inner hosts that the actor's calls may reach, `name` or `name:port`. `quoted`:
    what the request replies to or forwards, which others may have written. `files`: paths of what
    was sent with the request, `files_before` of what had been sent last before it; `inbox`: the
    folder where such files lie, whose contents others wrote. `services`: addresses
    of services by name, "" for one that is off. `interactive`: somebody can answer a question
    that only asks to go on. `scheduled`: the turn is a task's, and nobody may be there for a
    while. `typed`: what the person has written in this turn when they were asked. `allowance`:
    what they may still use today. `message_ref`: the person's message in the channel. `alone`:
    where they are asked what others must not read, when these read along at `address`.
    `past`: what the person's own turns say about which tools serve what.
    `on_words` hears the answer while a model writes it, as far as it may be seen.
    """

    turn_id: str
    actor: Actor
    address: ChatAddress
    lang: str
    tz: str
    now: dt.datetime
    request: str
    catalog: Catalog
    scope: Scope
    private_hosts: tuple[str, ...] = ()
    conversation: tuple[Exchange, ...] = ()
    quoted: str | None = None
    files: tuple[str, ...] = ()
    files_before: tuple[str, ...] = ()
    inbox: str = ""
    services: Mapping[str, str] = field(default_factory=dict)
    interactive: bool = True
    scheduled: bool = False
    typed: tuple[str, ...] = ()
    allowance: Allowance = field(default_factory=Allowance)
    alone: ChatAddress | None = None
    message_ref: str | None = None
    past: Evidence | None = field(default=None, compare=False, repr=False)
    on_words: Callable[[str], None] | None = field(default=None, compare=False, repr=False)

    @property
    def said(self) -> tuple[str, ...]:
        """The person's own words: what counts as spoken by them."""
        talk = (exchange.request for exchange in self.conversation)
        return (self.request, *self.typed, *talk)

    @property
    def is_external(self) -> bool:
        """Whether words from outside stood before whoever planned this turn from the beginning."""
        return self.is_given_words or any(exchange.external for exchange in self.conversation)

    @property
    def is_given_words(self) -> bool:
        """Whether words from outside came with the request; the name of a file is some."""
        return bool(self.quoted or self.files or self.files_before)

    @property
    def pointed_at(self) -> frozenset[str]:
        """Paths that the person means without naming them: of what they sent."""
        return frozenset((*self.files, *self.files_before))


def private_hosts_for(
    actor: Actor, settings: Settings, granted: Granted | None
) -> tuple[str, ...]:
    """`METNOS_PRIVATE_HOSTS` stand open to the host for good; what else is granted, to anybody."""
    lasting = settings.metnos_private_hosts if actor.role is Role.HOST else ()
    return (*lasting, *(granted.hosts if granted else ()))


@dataclass(frozen=True, slots=True)
class StateLookup:
    """What references mean in this turn: earlier steps, and the closed list of facts."""

    context: TurnContext
    state: TurnState
    preferences: Mapping[str, Any] = field(default_factory=dict)

    def step(self, number: int) -> Observation:
        """The whole observation of an earlier step. A failed, missing or later step refuses."""
        records = self.state.steps
        if not 1 <= number <= len(records):
            have = f"steps 1 to {len(records)} exist" if records else "no step ran yet"
            raise CallRefused(ErrorCode.BAD_REFERENCE, f"step {number} does not exist: {have}")
        observation = records[number - 1].observation
        if not observation.ok:
            raise CallRefused(ErrorCode.BAD_REFERENCE, f"step {number} failed: nothing to use")
        return observation

    def runtime(self, key: str) -> Any:
        """A fact of the runtime in the actor's time zone: `now` and its shifts are ISO instants,
        `today` is a date. Raises for a key not in the list, and for one without a value."""
        context = self.context
        local = context.now.astimezone(ZoneInfo(context.tz))
        facts: dict[str, Any] = {
            "actor": context.actor.display_name,
            "lang": context.lang,
            "channel": context.address.channel,
            "turn_id": context.turn_id,
            "now": local.isoformat(timespec="seconds"),
            "today": local.date().isoformat(),
        }
        if facts.get(key):
            return facts[key]
        shift = _SHIFT.fullmatch(key.replace(" ", ""))
        if shift:
            sign = -1 if "-" in key or "minus" in key else 1
            amount = sign * int(shift[2] or shift[5])
            unit = shift[3] or shift[6]
            # Days keep the hour on the wall across a change of clocks, hours are hours.
            moved = (
                local + dt.timedelta(days=amount)
                if unit == "d"
                else (context.now + dt.timedelta(hours=amount)).astimezone(local.tzinfo)
            )
            return moved.isoformat(timespec="seconds")
        if key.startswith("pref_") and key[5:] in self.preferences:
            return self.preferences[key[5:]]
        raise CallRefused(ErrorCode.BAD_REFERENCE, f"there is no ${{RUNTIME:{key}}}")


def provenance_of_turn(state: TurnState) -> Provenance:
    """External as soon as one step brought text from outside."""
    brought = {record.observation.provenance for record in state.steps}
    return Provenance.EXTERNAL if Provenance.EXTERNAL in brought else Provenance.OWN
