"""Engines with one check taken out, so that it is seen that the bars would notice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def acknowledges_first() -> None:
    """Updates are confirmed to Telegram before they are stored."""
    from bot.telegram.poll import Poller

    store_batch = Poller._store_batch

    async def careless(self: Any, updates: list[Any], offset: int | None) -> int | None:
        ids = [update["update_id"] for update in updates]
        if ids:
            await self._bot.get_raw_updates(offset=max(ids) + 1, timeout_s=0)
        return await store_batch(self, updates, offset)

    Poller._store_batch = careless  # type: ignore[method-assign]


def closes_first() -> None:
    """An update is marked as worked before it is."""
    from bot.telegram.handlers import Handlers
    from core.store import inbox

    handle = Handlers.handle

    async def careless(self: Any, row: Any, heard: Any) -> None:
        async with self._store.write() as tx:
            await inbox.mark_done(tx, row.id)
        await handle(self, row, heard)

    Handlers.handle = careless  # type: ignore[method-assign]


def runs_again() -> None:
    """A turn that a crash cut short is walked again, whatever it had changed."""
    from core import turn_actions
    from core.execution import recovery

    for room in (recovery, turn_actions):
        setattr(room, "may_begin_again", lambda journal: True)  # noqa: B010


def repeats_unmarked() -> None:
    """What may have been sent is sent again as if it had not been."""
    from core.store import outbox

    async def careless(tx: Any, channel: str, now: Any) -> int:
        changed: int = await tx.execute(
            "UPDATE outbox SET state = 'pending' WHERE channel = :c AND state = 'sending'",
            {"c": channel},
        )
        return changed

    outbox.recover = careless


def journals_late() -> None:
    """The journal hears of a change when it was made, not before."""
    from core.execution import keeping
    from core.store import effects

    finish = keeping._finish

    async def no_journal(stores: Any, clock: Any, context: Any, state: Any, *about: Any) -> str:
        return effects.effect_key(context.turn_id, len(state.steps) + 1)

    async def careless(tx: Any, clock: Any, context: Any, state: Any, journal: str) -> None:
        step = state.steps[-1]
        await effects.start(
            tx,
            key=journal,
            turn_id=context.turn_id,
            step=step.number,
            tool=step.tool,
            before={},
            expected={},
            now=clock.now(),
        )
        await finish(tx, clock, context, state, journal)

    keeping.open_journal = no_journal  # type: ignore[assignment]
    keeping._finish = careless  # type: ignore[assignment]


def _takes(standing: Callable[[Any, Any], Any]) -> None:
    """Taps stand as `standing` says of what was found and of what is right."""
    from dataclasses import replace

    from core.store import suspensions

    find_by_token = suspensions.find_by_token

    async def careless(tx: Any, token: str, **about: Any) -> Any:
        found = await find_by_token(tx, token, **about)
        return found and replace(found, standing=standing(found.standing, suspensions.Standing))

    suspensions.find_by_token = careless


def takes_of_anybody() -> None:
    """Whose button it is, is not looked at."""
    _takes(lambda found, right: right.OPEN if found is right.FOREIGN else found)


def takes_twice() -> None:
    """A question is taken whatever its state."""
    from core.store import suspensions, turns
    from core.store.encoding import load_object

    _takes(lambda found, right: right.OPEN if found is right.OVER else found)

    async def claim(tx: Any, suspension_id: str, now: Any) -> Any:
        row = await tx.fetch_one(
            """UPDATE suspensions SET state = 'claimed' WHERE id = :id RETURNING *""",
            {"id": suspension_id},
        )
        before = load_object(row["state_json"])
        state = before or {"turn_id": row["turn_id"], "request": "elimina", "v": 1}
        return suspensions.Claimed(suspensions._suspension(row), state)

    async def go_on(tx: Any, turn_id: str) -> bool:
        await tx.execute(
            "UPDATE turns SET state = 'running', segment = segment + 1 WHERE id = :id",
            {"id": turn_id},
        )
        return True

    suspensions.claim, turns.go_on = claim, go_on


def forgets_the_time() -> None:
    """A question never runs out."""
    from core.store import suspensions

    _takes(lambda found, right: right.OPEN if found is right.EXPIRED else found)
    claim = suspensions.claim

    async def careless(tx: Any, suspension_id: str, now: Any) -> Any:
        return await claim(tx, suspension_id, now.replace(year=1969))

    suspensions.claim = careless


MUTANTS: dict[str, Callable[[], None]] = {
    one.__name__: one
    for one in (
        acknowledges_first,
        closes_first,
        runs_again,
        repeats_unmarked,
        journals_late,
        takes_of_anybody,
        takes_twice,
        forgets_the_time,
    )
}
