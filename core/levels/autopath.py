"""L1: a kind of request that was served before gets the plan that did best for it.

Observes every turn that worked, weighs plans by votes, failures and time, and serves the best one
to everybody. What makes a hit is equality of what is meant, as in L0; a vector may only refuse.
Plans that hold anybody's values are observed without them, and never serve.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.clock import Clock
from core.execution.context import TurnContext
from core.levels import champions, reuse
from core.levels.champions import Status, Tally, Verdict
from core.levels.meaning import meaning_of
from core.levels.nearness import TOO_FAR, UNMEASURED, Nearness
from core.levels.remembering import AUTOPATH
from core.levels.reuse import Lesson
from core.levels.runner import Outcome
from core.levels.vectors import cosine
from core.messages import Role
from core.plan import FINAL_ANSWER, Plan
from core.store import antis, observations
from core.store import autopath as store
from core.store.antis import Unwanted
from core.store.autopath import Champion
from core.store.database import Transaction
from core.store.feedback import Vote
from core.store.observations import Alike, Observed
from core.store.stores import Stores
from core.store.turns import StoredTurn
from core.turn_state import Remembered

log = logging.getLogger(__name__)

_VERDICTS = {Vote.UP: Verdict.UP, Vote.DOWN: Verdict.DOWN, None: Verdict.RAN}
_MOST_MISSED = 5
_SERVES = frozenset({"exact", "cluster", "intent"})


@dataclass(frozen=True, slots=True)
class Served:
    """A plan by merit, ready to run. `how`: in words that were served before (`exact`), like the
    others of its `cluster`, or only of the same `intent`."""

    row: Champion
    how: str

    @property
    def plan(self) -> Plan:
        return self.row.plan

    @property
    def mark(self) -> Remembered:
        """What the turn that it serves keeps of it."""
        return self.row.mark(self.how)


@dataclass(frozen=True, slots=True)
class Look:
    """What L1 has for a request, and what is kept away from whoever asks."""

    hit: Served | None = None
    unwanted: Unwanted = field(default_factory=Unwanted)


class Autopath:
    """Without `nearness`, or while it cannot say, only words that were served before are served.
    Methods raise `StoreError` as the store does."""

    def __init__(self, stores: Stores, clock: Clock, nearness: Nearness | None = None) -> None:
        self._stores, self._clock = stores, clock
        self._nearness = nearness or Nearness(None, stores, clock)

    # -- asked before -----------------------------------------------------------------------------

    async def look(self, context: TurnContext) -> Look:
        """What may serve this request. Rows that might have and may not keep the reason."""
        meaning = meaning_of(context.request)
        intent, cluster = champions.intent_of(meaning), champions.cluster_of(meaning)
        if intent is None:
            return Look()
        refusal = reuse.request_refusal(
            context.request,
            quoted=context.quoted or " ".join(context.pointed_at),
            in_conversation=bool(context.conversation),
        )
        rows: list[Champion] = []
        known, floor = Alike(), None
        exact = reuse.exact_key(context.request)
        async with self._stores.memory.read() as tx:
            now = self._clock.now()
            unwanted = await antis.unwanted(tx, context.actor.id, intent.key, now)
            if cluster and refusal is None:
                rows = await store.serving(tx, intent.key, cluster)
            own = [row for row in rows if row.cluster == cluster]
            if own:
                name = self._nearness.name
                known = await observations.alike(tx, intent.key, cluster, name, exact)
                floor = None if known.same else await self._nearness.floor(tx)
        reasons = {row.id: "other_meaning" for row in rows[len(own) :][:_MOST_MISSED]}
        first = next((row for row in own if _refusal(row, context, unwanted) is None), None)
        how = "" if first is None else await self._how(context.request, known, floor)
        hit = Served(first, how) if first is not None and how in _SERVES else None
        for row in own:
            if hit is not None and row.id == hit.row.id:
                break
            reasons[row.id] = _refusal(row, context, unwanted) or how
        await self._note(context, rows, reasons)
        return Look(hit, unwanted)

    async def _how(self, request: str, known: Alike, floor: float | None) -> str:
        """How a request is like those of its cluster, or why it is not known to be."""
        if known.same:
            return "exact"
        if floor is None or not known.vectors:
            return UNMEASURED
        vector = await self._nearness.vector_of(reuse.normal(request))
        if vector is None:
            return UNMEASURED
        near = max(cosine(vector, one) for one in known.vectors)
        if near < floor:
            return TOO_FAR
        return "cluster" if near >= (1 + floor) / 2 else "intent"

    async def _note(
        self, context: TurnContext, rows: list[Champion], reasons: dict[int, str]
    ) -> None:
        """Keep why rows did not serve. What serves not a guest may serve whoever taught it."""
        told = [
            row
            for row in rows
            if reasons.get(row.id, row.why) != row.why and _is_theirs(row, context)
        ]
        if told:
            async with self._stores.memory.write() as tx:
                for row in told:
                    await store.note(tx, row.id, reasons[row.id])

    async def unwanted(self, context: TurnContext) -> Unwanted:
        """What is kept away from whoever asks this."""
        intent = champions.intent_of(meaning_of(context.request))
        if intent is None:
            return Unwanted()
        async with self._stores.memory.read() as tx:
            return await antis.unwanted(tx, context.actor.id, intent.key, self._clock.now())

    # -- told after -------------------------------------------------------------------------------

    async def observe(
        self, context: TurnContext, outcome: Outcome, lesson: Lesson, *, how: str = ""
    ) -> None:
        """Keep what a turn that ended well showed. `how`: memory served it, that way. Called
        twice with the same turn it counts once."""
        meaning = meaning_of(context.request)
        intent = champions.intent_of(meaning)
        if intent is None:
            return
        plan, now = champions.bare(lesson), self._clock.now()
        seen = Observed(
            turn_id=context.turn_id,
            actor_id=context.actor.id,
            lang=context.lang,
            intent=intent.key,
            said=intent.said,
            cluster=champions.cluster_of(meaning) if lesson.meaning else "",
            plan=plan,
            way=champions.way_of(plan),
            fingerprint=champions.form_of_lesson(lesson),
            tools=lesson.tools,
            families=lesson.families,
            level=outcome.state.engine,
            latency_ms=sum(record.latency_ms for record in outcome.state.steps),
            at=now,
            exact=lesson.exact,
        )
        # Words that were measured already are found by being the same.
        vector, name = None, self._nearness.name
        if seen.cluster and how != "exact":
            vector = await self._nearness.vector_of(lesson.text)
        async with self._stores.memory.write() as tx:
            if not await observations.record(tx, seen, embedder=name, vector=vector):
                return
            row = await _row_of(tx, seen)
            if row is None:
                if seen.cluster and champions.steps_of(plan) >= champions.SHADOW_STEPS:
                    await _begin(tx, seen)
                return
            if (row.tools, row.families) != (seen.tools, seen.families):
                await store.resign(tx, row.id, seen)
            if seen.level == AUTOPATH:
                await store.note(tx, row.id, how, used_at=now)
            tally = row.tally.moved(None, Verdict.RAN).timed(seen.latency_ms)
            await _settle(tx, row, tally, now)

    async def broke(self, context: TurnContext, by: Remembered) -> None:
        """A plan failed by its own fault: whoever asked is spared it for a while, and it counts
        against the plan where its teacher or the host asked."""
        now = self._clock.now()
        async with self._stores.memory.write() as tx:
            row = await store.get(tx, by.row)
            if row is None or row.fingerprint != by.taught_by:
                return
            await antis.soften(
                tx,
                context.actor.id,
                row.intent,
                row.fingerprint,
                said=row.said,
                way=row.way,
                until=now + champions.SOFT_FOR,
                now=now,
            )
            if not _is_theirs(row, context):
                return
            await store.note(tx, row.id, "failed")
            tally = replace(row.tally, broke=row.tally.broke + 1)
            await _settle(tx, row, tally, now)

    async def judge(self, turn: StoredTurn, vote: Vote | None) -> Observed | None:
        """What comes of a vote on a turn, the last one counting; what the turn had shown, None
        when that is not known (any more), and nothing comes of it.

        👍 lets its plan serve, and lifts what kept it away. Three 👎 since then keep it away for a
        month. Called twice with the same vote it is the same.
        """
        verdict, now = _VERDICTS[vote], self._clock.now()
        async with self._stores.memory.write() as tx:
            seen = await observations.of_turn(tx, turn.id)
            if seen is None or seen.actor_id != turn.actor_id:
                return None
            if verdict is seen.verdict:
                return seen
            await observations.judge(tx, seen, verdict, now)
            await _keep_away(tx, seen, verdict, now)
            row = await _row_of(tx, seen)
            if row is None:
                if seen.cluster and verdict is Verdict.UP:
                    await _begin(tx, seen)
                return seen
            tally = row.tally.moved(seen.verdict, verdict)
            if verdict is Verdict.UP:
                tally = replace(tally, broke=0)
                await store.resign(tx, row.id, seen)
            await _settle(tx, row, tally, now)
            return seen

    async def anew(self, turn: StoredTurn) -> None:
        """The request of a turn is planned anew: its plan serves this person no more for an hour,
        but for what they teach anew, and its answer counts no more as one that nobody minded."""
        now = self._clock.now()
        async with self._stores.memory.write() as tx:
            seen = await observations.of_turn(tx, turn.id)
            if seen is None or seen.actor_id != turn.actor_id:
                return
            await antis.soften(
                tx,
                seen.actor_id,
                seen.intent,
                seen.fingerprint,
                said=seen.said,
                way=seen.way,
                until=now + champions.SOFT_FOR,
                now=now,
            )
            if seen.verdict is not Verdict.RAN:
                return
            await observations.judge(tx, seen, Verdict.ANEW, now)
            row = await _row_of(tx, seen)
            if row is not None:
                await _settle(tx, row, row.tally.moved(Verdict.RAN, Verdict.ANEW), now)

    async def seen(self, turn: StoredTurn) -> Observed | None:
        """What a turn of this person showed, as far as it is known."""
        async with self._stores.memory.read() as tx:
            seen = await observations.of_turn(tx, turn.id)
        return seen if seen is not None and seen.actor_id == turn.actor_id else None

    async def age(self, tools: Sequence[str]) -> int:
        """Forget what has had its time, or cannot be run any more; how many plans."""
        async with self._stores.memory.write() as tx:
            return await store.prune(tx, self._clock.now(), tools)


def _refusal(row: Champion, context: TurnContext, unwanted: Unwanted) -> str | None:
    """Why a plan does not serve this person now; None: it does."""
    why = reuse.staleness(row.tools, row.families, row.plan, context.catalog)
    if why is not None:
        return why
    if row.fingerprint in unwanted.hard | unwanted.soft:
        return "disliked"
    speaks = any(step.tool == FINAL_ANSWER for step in row.plan.steps)
    return "other_language" if speaks and row.lang != context.lang else None


def _is_theirs(row: Champion, context: TurnContext) -> bool:
    return context.actor.role is Role.HOST or row.taught_by == context.actor.id


async def _row_of(tx: Transaction, seen: Observed) -> Champion | None:
    if not seen.cluster:
        return None
    return await store.find(tx, seen.intent, seen.cluster, seen.fingerprint)


async def _begin(tx: Transaction, seen: Observed) -> None:
    """Let the plan of a turn serve, if there is enough in its favour by now."""
    tally = await observations.tally(tx, seen.intent, seen.cluster, seen.fingerprint)
    status = await _status(tx, seen, seen.actor_id, tally, champions.steps_of(seen.plan))
    if status is not None and status is not Status.DEMOTED:
        await store.teach(tx, seen, tally, status)
        await store.crown(tx, seen.intent, seen.cluster)


async def _settle(tx: Transaction, row: Champion, tally: Tally, now: datetime) -> None:
    """Keep what is known of a plan by now, and what follows from it."""
    status = await _status(tx, row, row.taught_by, tally, champions.steps_of(row.plan))
    if status is None:
        await store.delete(tx, row.id)
        return
    await store.settle(tx, row.id, tally, status, now)
    await store.crown(tx, row.intent, row.cluster)


async def _status(
    tx: Transaction, about: Observed | Champion, teacher: str, tally: Tally, steps: int
) -> Status | None:
    fails = await observations.fails(tx, about.intent, about.fingerprint)
    return champions.status_of(
        tally,
        steps=steps,
        is_struck=champions.is_struck(fails, teacher),
        has_active=await store.has_active(tx, about.intent, about.cluster, but=about.fingerprint),
    )


async def _keep_away(tx: Transaction, seen: Observed, verdict: Verdict, now: datetime) -> None:
    """What a vote makes of what this person is not to be served."""
    key = seen.actor_id, seen.intent, seen.fingerprint
    if verdict is Verdict.UP:
        await antis.lift(tx, *key)
        return
    fails, last = await observations.fails_of(tx, *key)
    said = {"said": seen.said, "way": seen.way}
    until = None
    if champions.is_kept_away(fails) and last is not None:
        until = last + champions.HARD_FOR
    await antis.strike(tx, *key, **said, fails=fails, until=until, now=now)
    soft = now + champions.SOFT_FOR if verdict is Verdict.DOWN else now
    await antis.soften(tx, *key, **said, until=soft, now=now)
