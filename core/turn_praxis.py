"""`/praxis`: what is remembered, for the host alone: how much, the rows that count most with their
buttons, and forgetting all of it after a second press."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.catalog.loader import CatalogLoader
from core.clock import Clock
from core.i18n import Texts
from core.levels.champions import Status
from core.messages import Actor, Block, Inbound, Role
from core.plan import FINAL_ANSWER
from core.store import actors, antis, autopath, plan_cache
from core.store.autopath import Champion
from core.store.database import Transaction
from core.store.stores import Stores
from core.turn_actions import Act, Handler, Press, Said
from core.turn_offers import Offer
from core.vocabulary import spoken_foreign

COMMAND = "/praxis"
PINS, DELETES, FLUSH, FLUSHES, LEAVES = (
    "praxis.pin",
    "praxis.delete",
    "praxis.flush",
    "praxis.flush_yes",
    "praxis.flush_no",
)
DROPS = "praxis.drop"
_SHOWN, _MOST_QUOTED = 5, 60


@dataclass(frozen=True, slots=True)
class Praxis:
    stores: Stores
    clock: Clock
    texts: Texts
    loader: CatalogLoader

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            PINS: self.pin,
            DELETES: self.delete,
            DROPS: self.drop,
            FLUSH: self.flush,
            FLUSHES: self.flush_all,
            LEAVES: self.leave,
        }

    async def say(self, inbound: Inbound, actor: Actor, lang: str) -> Said:
        """The rows, each with a number and its buttons. Others than the host, and everybody where
        others read along, are told no more than that."""
        say = self.texts.say
        if actor.role is not Role.HOST:
            return Said((Block("text", say("praxis.host_only", lang)),))
        if inbound.alone is not None:
            return Said((Block("text", say("praxis.alone_only", lang)),))
        async with self.stores.memory.read() as tx:
            approved, learnt = await plan_cache.count(tx)
            found = await plan_cache.listed(tx, limit=_SHOWN)
            counts = await autopath.count(tx)
            kept_away = await antis.count(tx, self.clock.now())
            best = await autopath.listed(tx, limit=_SHOWN)
        if not approved + learnt + sum(counts.values()) + kept_away:
            return Said((Block("text", say("praxis.none", lang)),))
        async with self.stores.main.read() as tx:
            names = {one.id: one.display_name for one in await actors.list_actors(tx)}
        head = say("praxis.head", lang, count=approved + learnt, approved=approved)
        lines: list[str] = [head]
        rows: list[tuple[Offer, ...]] = []
        for number, plan in enumerate(found, start=1):
            text = plan.lesson.text
            text = text if len(text) <= _MOST_QUOTED else text[: _MOST_QUOTED - 1].rstrip() + "…"
            why = self._why(plan.why, lang)
            lines.append(
                say(
                    "praxis.line.approved" if plan.approved else "praxis.line",
                    lang,
                    number=number,
                    request=text,
                    name=names.get(plan.actor_id, "?"),
                    uses=plan.uses,
                    why=why,
                )
            )
            about = {"plan": plan.id, "to": not plan.approved, "number": number}
            pin = "praxis.unpin" if plan.approved else "praxis.pin"
            pins = Offer(PINS, pin, about, {"number": number})
            rows.append((pins, Offer(DELETES, "praxis.delete", about, {"number": number})))
        if sum(counts.values()) + kept_away:
            by_status = {status.value: counts[status] for status in Status}
            lines += ["", say("praxis.merit", lang, away=kept_away, **by_status)]
        for number, row in enumerate(best, start=len(found) + 1):
            lines.append(
                say(
                    f"praxis.merit.{row.status.value}",
                    lang,
                    number=number,
                    way=self._way(row, lang),
                    up=row.tally.up,
                    down=row.tally.down,
                    why=self._why(row.why, lang),
                )
            )
            about = {"row": row.id, "number": number}
            rows.append((Offer(DROPS, "praxis.delete", about, {"number": number}),))
        rows.append((Offer(FLUSH, "praxis.flush"),))
        return Said((Block("text", "\n".join(lines)),), rows)

    def _why(self, why: str, lang: str) -> str:
        key = f"memory.why.{why or 'never'}"
        return self.texts.say(key if self.texts.has(key, lang) else "memory.why.other", lang)

    def _way(self, row: Champion, lang: str) -> str:
        """What a plan does, in the words of its programs."""
        executors = self.loader.current().executors
        phrases = [
            executors[step.tool].manifest.phrase[lang].rstrip("…. ")
            if step.tool in executors
            else spoken_foreign(step.tool) or self.texts.say("vote.steps.gone", lang)
            for step in row.plan.steps
            if step.tool != FINAL_ANSWER
        ]
        return " → ".join(phrases)

    async def drop(self, press: Press) -> Act:
        """Forget a plan of L1; the next best takes its place."""
        champion = int(press.action.params["row"])

        async def write(_: Transaction) -> None:
            async with self.stores.memory.write() as tx:
                await autopath.delete(tx, champion)

        return Act(writes=write, says=self._say("praxis.deleted", press))

    async def pin(self, press: Press) -> Act:
        params = press.action.params
        plan, pinned = int(params["plan"]), params.get("to") is True

        async def write(_: Transaction) -> None:
            async with self.stores.memory.write() as tx:
                await plan_cache.approve(tx, plan, pinned)

        word = "praxis.pinned" if pinned else "praxis.unpinned"
        return Act(writes=write, says=self._say(word, press))

    async def delete(self, press: Press) -> Act:
        plan = int(press.action.params["plan"])

        async def write(_: Transaction) -> None:
            async with self.stores.memory.write() as tx:
                await plan_cache.delete(tx, plan)

        return Act(writes=write, says=self._say("praxis.deleted", press))

    async def flush(self, press: Press) -> Act:
        """Asks once more, in the place of the rows."""
        sure = (Offer(FLUSHES, "praxis.flush_yes"), Offer(LEAVES, "praxis.flush_no"))
        return Act(row=(sure,))

    async def flush_all(self, press: Press) -> Act:
        async def write(_: Transaction) -> None:
            async with self.stores.memory.write() as tx:
                await plan_cache.flush(tx)
                await autopath.flush(tx)

        return Act(settles="praxis.flushed", writes=write)

    async def leave(self, press: Press) -> Act:
        return Act(settles="praxis.left")

    def _say(self, key: str, press: Press) -> str:
        number = press.action.params.get("number")
        return self.texts.say(key, press.lang, number=number)
