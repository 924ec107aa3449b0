"""`/praxis`: what is remembered, for the host alone: how much, the rows that count most with their
buttons, and forgetting all of it after a second press."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.i18n import Texts
from core.messages import Actor, Block, Inbound, Role
from core.store import actors, plan_cache
from core.store.database import Transaction
from core.store.stores import Stores
from core.turn_actions import Act, Handler, Press, Said
from core.turn_offers import Offer

COMMAND = "/praxis"
PINS, DELETES, FLUSH, FLUSHES, LEAVES = (
    "praxis.pin",
    "praxis.delete",
    "praxis.flush",
    "praxis.flush_yes",
    "praxis.flush_no",
)
_SHOWN, _MOST_QUOTED = 5, 60


@dataclass(frozen=True, slots=True)
class Praxis:
    stores: Stores
    texts: Texts

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {
            PINS: self.pin,
            DELETES: self.delete,
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
        if not approved + learnt:
            return Said((Block("text", say("praxis.none", lang)),))
        async with self.stores.main.read() as tx:
            names = {one.id: one.display_name for one in await actors.list_actors(tx)}
        head = say("praxis.head", lang, count=approved + learnt, approved=approved)
        lines: list[str] = [head]
        rows: list[tuple[Offer, ...]] = []
        for number, plan in enumerate(found, start=1):
            text = plan.lesson.text
            text = text if len(text) <= _MOST_QUOTED else text[: _MOST_QUOTED - 1].rstrip() + "…"
            key = f"memory.why.{plan.why or 'never'}"
            why = say(key if self.texts.has(key, lang) else "memory.why.other", lang)
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
        rows.append((Offer(FLUSH, "praxis.flush"),))
        return Said((Block("text", "\n".join(lines)),), rows)

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

        return Act(settles="praxis.flushed", writes=write)

    async def leave(self, press: Press) -> Act:
        return Act(settles="praxis.left")

    def _say(self, key: str, press: Press) -> str:
        number = press.action.params.get("number")
        return self.texts.say(key, press.lang, number=number)
