"""L1 against a naive reading of its rules, over random walks of turns, votes, time and signing."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from core.catalog.loaded import Catalog
from core.clock import to_ts
from core.config import load_settings
from core.levels import champions
from core.levels.autopath import Autopath
from core.levels.champions import MARGIN, Status, Verdict
from core.levels.fastpath import lesson_of
from core.levels.meaning import meaning_of
from core.levels.reuse import staleness
from core.messages import Actor, FinalKind
from core.plan import Plan, Step
from core.store import antis, observations
from core.store import autopath as store
from core.store.feedback import Vote
from core.store.stores import Stores, open_stores
from core.store.turns import StoredTurn
from tests.support.clock import FrozenClock
from tests.support.remembering import ANNA, BRUNO, catalog, ended_well, turn_of

T = TypeVar("T")
EVA = replace(BRUNO, id="eva")
REQUESTS = ("che ore sono?", "conta i file", "leggi il file a.md")
PLANS = (
    Plan((Step("get_now", {}),)),
    Plan((Step("list_dirs", {}), Step("get_now", {}))),
    Plan(
        (
            Step("find_files", {}),
            Step("sort_entries", {"from_step": 1, "by": "name"}),
            Step("sort_entries", {"from_step": 2, "by": "size"}),
            Step("compute_entries", {"from_step": 3, "op": "count"}),
        )
    ),
)
MONTH, HOUR = timedelta(days=30), timedelta(hours=1)


@dataclass
class Turn:
    """What the model believes of one turn. `form`: its plan as it is known again."""

    stored: StoredTurn
    actor: str
    intent: str
    cluster: str
    form: str
    verdict: Verdict = Verdict.RAN
    at: datetime | None = None


class Merit(RuleBasedStateMachine):
    turns: Bundle[Turn] = Bundle("turns")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FrozenClock()
        self.known: list[Turn] = []
        self.soft: dict[tuple[str, str, str], datetime] = {}
        self.catalog: Catalog = catalog()
        self.signings = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    @initialize()
    def start(self) -> None:
        home = load_settings(metnos_home=Path(self.folder.name) / "home")
        self.stores: Stores = self.run(open_stores(home, self.clock))
        self.autopath = Autopath(self.stores, self.clock)

    def teardown(self) -> None:
        self.run(self.stores.close())
        self.loop.close()
        self.folder.cleanup()

    # -- what happens -----------------------------------------------------------------------------

    @rule(
        target=turns,
        request=st.sampled_from(REQUESTS),
        plan=st.sampled_from(PLANS),
        actor=st.sampled_from((ANNA, BRUNO, EVA)),
        slow=st.sampled_from((0, 200, 30_000)),
    )
    def turn(self, request: str, plan: Plan, actor: Actor, slow: int) -> Turn:
        if request.startswith("leggi"):
            plan = Plan((Step("read_files", {"paths": ["a.md"]}),))
        self.clock.advance(1)
        context = replace(turn_of(request, actor), catalog=self.catalog)
        outcome = ended_well(context, plan)
        steps = [replace(one, latency_ms=slow // len(plan.steps)) for one in outcome.state.steps]
        outcome = replace(outcome, state=replace(outcome.state, steps=tuple(steps)))
        lesson = lesson_of(context, outcome)
        for _ in range(2):  # told twice, it counts once
            self.run(self.autopath.observe(context, outcome, lesson))
        stored = StoredTurn(
            id=context.turn_id,
            inbound_id="",
            actor_id=actor.id,
            conversation="terminal:anna",
            lang="it",
            request=request,
            answer="",
            reply={},
            state="closed",
            state_data={},
            final_kind=FinalKind.ANSWER,
            started_at=self.clock.now(),
            ended_at=None,
            segment=1,
            logged=True,
            log_line={},
            log_day=None,
        )
        intent = champions.intent_of(meaning_of(request))
        assert intent is not None
        cluster = champions.cluster_of(meaning_of(request)) if lesson.meaning else ""
        made = Turn(stored, actor.id, intent.key, cluster, champions.form_of_lesson(lesson))
        self.known.append(made)
        return made

    @rule(turn=turns, vote=st.sampled_from((Vote.UP, Vote.DOWN, Vote.DOWN, None)))
    def vote(self, turn: Turn, vote: Vote | None) -> None:
        self.clock.advance(1)
        new = {Vote.UP: Verdict.UP, Vote.DOWN: Verdict.DOWN, None: Verdict.RAN}[vote]
        for _ in range(2):
            self.run(self.autopath.judge(turn.stored, vote))
        if new is turn.verdict:
            return
        turn.verdict, turn.at = new, self.clock.now()
        key = (turn.actor, turn.intent, turn.form)
        self.soft.pop(key, None)
        if new is Verdict.DOWN:
            self.soft[key] = self.clock.now() + HOUR

    @rule(
        request=st.sampled_from(REQUESTS[:2]),
        plan=st.sampled_from(PLANS),
        actor=st.sampled_from((ANNA, BRUNO)),
        said=st.lists(st.sampled_from((Vote.UP, Vote.DOWN)), min_size=2, max_size=4).filter(
            lambda said: len(set(said)) == 1
        ),
    )
    def opinion(self, request: str, plan: Plan, actor: Actor, said: list[Vote]) -> None:
        """The same vote about the same several times."""
        for vote in said:
            self.vote(self.turn(request, plan, actor, 0), vote)

    @rule(turn=turns)
    def foreign_vote(self, turn: Turn) -> None:
        other = replace(turn.stored, actor_id="nobody")
        assert self.run(self.autopath.judge(other, Vote.DOWN)) is None

    @rule(turn=turns)
    def anew(self, turn: Turn) -> None:
        self.clock.advance(1)
        self.run(self.autopath.anew(turn.stored))
        self.soft[(turn.actor, turn.intent, turn.form)] = self.clock.now() + HOUR
        if turn.verdict is Verdict.RAN:
            turn.verdict, turn.at = Verdict.ANEW, self.clock.now()

    @rule(span=st.sampled_from((timedelta(minutes=30), timedelta(days=8), timedelta(days=31))))
    def wait(self, span: timedelta) -> None:
        self.clock.advance(span)

    @rule()
    def age(self) -> None:
        self.run(self.autopath.age(list(self.catalog.executors)))

    @rule(name=st.sampled_from(("get_now", "list_dirs", "compute_entries")))
    def sign_anew(self, name: str) -> None:
        self.signings += 1
        found = dict(self.catalog.executors)
        manifest = replace(found[name].manifest, digest=f"{self.signings:064x}")
        found[name] = replace(found[name], manifest=manifest)
        self.catalog = replace(self.catalog, executors=found)

    # -- what must hold ---------------------------------------------------------------------------

    def fails(self, about: Turn, *actors: str) -> list[Turn]:
        """👎 since the last 👍, of these people taken together; of everybody without any."""
        alike = [
            one
            for one in self.known
            if (one.intent, one.form) == (about.intent, about.form)
            and (not actors or one.actor in actors)
            and one.at is not None
        ]
        yes = max((to_ts(t.at) for t in alike if t.at and t.verdict is Verdict.UP), default=0.0)
        return [t for t in alike if t.at and t.verdict is Verdict.DOWN and to_ts(t.at) > yes]

    def is_kept_away(self, actor: str, about: Turn) -> bool:
        fails = self.fails(about, actor)
        now = self.clock.now()
        hard = len(fails) >= 3 and max(t.at for t in fails if t.at) + MONTH > now
        return hard or self.soft.get((actor, about.intent, about.form), now) > now

    @invariant()
    def everything_is_as_the_rules_say(self) -> None:
        if hasattr(self, "stores"):
            self.run(self._check())
            for request in REQUESTS:
                for actor in (ANNA, BRUNO):
                    self.look(request, actor)

    def look(self, request: str, actor: Actor) -> None:
        context = replace(turn_of(request, actor), catalog=self.catalog)
        hit = self.run(self.autopath.look(context)).hit
        if hit is None:
            return
        row = hit.row
        about = [t for t in self.known if t.form == row.fingerprint and t.cluster == row.cluster]
        assert request != REQUESTS[-1], "a plan with a value serves nobody"
        assert row.cluster == champions.cluster_of(meaning_of(request))
        assert row.status is not Status.DEMOTED
        assert not self.is_kept_away(actor.id, about[0])
        digests = {n: one.manifest.digest for n, one in self.catalog.executors.items()}
        assert all(step.tool in digests for step in hit.plan.steps)
        assert staleness(row.tools, row.families, row.plan, self.catalog) is None
        assert any(t.verdict is Verdict.UP for t in about) or row.status is Status.SHADOW

    async def _check(self) -> None:
        async with self.stores.memory.read() as tx:
            rows = await store.listed(tx, limit=1000)
            seen = {one.turn_id: one.verdict for one in await observations.listed(tx, limit=9999)}
            for actor in ("anna", "bruno", "eva"):
                for about in {(t.intent, t.form): t for t in self.known}.values():
                    kept = await antis.unwanted(tx, actor, about.intent, self.clock.now())
                    away = about.form in kept.hard | kept.soft
                    assert away == self.is_kept_away(actor, about)
        assert seen == {turn.stored.id: turn.verdict for turn in self.known}
        for cluster in {row.cluster for row in rows}:
            active = [r for r in rows if r.cluster == cluster and r.status is Status.ACTIVE]
            crowned = [r for r in rows if r.cluster == cluster and r.is_champion]
            assert len(crowned) == bool(active)
            for champion in crowned:
                assert champion in active
                best = max(row.tally.score for row in active)
                assert best < champion.tally.score + MARGIN
        for row in rows:
            of = [t for t in self.known if (t.cluster, t.form) == (row.cluster, row.fingerprint)]
            count = {v: sum(t.verdict is v for t in of) for v in Verdict}
            assert row.cluster
            assert (row.tally.up, row.tally.down, row.tally.ran) == (
                count[Verdict.UP],
                count[Verdict.DOWN],
                count[Verdict.RAN],
            )
            fails = self.fails(of[0])
            voters = {t.actor for t in fails}
            struck = len(fails) >= 3 and (len(voters) > 1 or row.taught_by in voters)
            assert (row.status is Status.DEMOTED) == struck
            if not struck:
                assert (row.status is Status.ACTIVE) == (row.tally.up > 0)


TestMerit = Merit.TestCase
TestMerit.settings = settings(
    max_examples=max(5, round(60 * float(os.environ.get("METNOS_TEST_SCALE") or 0.2))),
    stateful_step_count=40,
    deadline=None,
)
