"""The door for requests: one inbound in, events out, exactly one of them the end.

A turn is opened in the store before anything is asked of a model and closed in the transaction
that also queues its reply; an inbound delivered twice runs once. Knows no channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection

from core import turn_feedback
from core.catalog.loader import CatalogLoader
from core.clock import Clock
from core.config import Settings
from core.conversations import Conversations, TurnStatus
from core.errors import (
    ErrorCode,
    ErrorInfo,
    MetnosError,
    ModelError,
    to_error_info,
)
from core.execution.context import TurnContext
from core.execution.invoke import Gate
from core.execution.recovery import settle_effects, turns_left
from core.execution.undo import Undo
from core.i18n import Texts
from core.language import clean_request
from core.levels.engines import Engines
from core.levels.runner import Outcome, Runner
from core.llm.tiers import Tiers
from core.messages import (
    Actor,
    ChatAddress,
    FinalKind,
    Inbound,
    InboundKind,
    Reply,
    Role,
    TurnClosed,
    TurnEvent,
    TurnStarted,
)
from core.redaction import redact
from core.store import actors, turns
from core.store.forgetting import Forgetting
from core.store.stores import Stores
from core.store.turn_log import TurnLog, append_missing
from core.turn_buttons import buttons
from core.turn_corrected import Corrections
from core.turn_ends import TurnEnds
from core.turn_given import WORDLESS, asked_what, given_by, is_wordless
from core.turn_memory import TurnMemory
from core.turn_public import PublicTurns
from core.turn_resume import TurnResume
from core.turn_setup import MAX_REQUEST, TurnSetup, refusal_of
from core.turn_sharing import Sharing
from core.turn_state import TurnState
from core.turn_taken import Resumed, Taken
from core.turn_unanswered import Unanswered
from core.turn_walk import TurnWalk

log = logging.getLogger(__name__)

CONVERSATION_TURNS = 3


class Turns:
    """Runs turns, one at a time per conversation, any number of conversations beside each other.

    `outbox_channels`: channels whose replies go out through the outbox.
    """

    def __init__(
        self,
        *,
        settings: Settings,
        stores: Stores,
        clock: Clock,
        texts: Texts,
        loader: CatalogLoader,
        gate: Gate,
        tiers: Tiers,
        engines: Engines,
        turn_log: TurnLog,
        memory: TurnMemory | None = None,
        outbox_channels: Collection[str] = ("telegram",),
    ) -> None:
        self._settings, self._stores, self._clock = settings, stores, clock
        self._texts = texts
        self._engines, self._turn_log = engines, turn_log
        self._memory = memory or TurnMemory(None)
        self._ends = TurnEnds(
            settings=settings,
            stores=stores,
            clock=clock,
            texts=texts,
            tiers=tiers,
            turn_log=turn_log,
            outbox_channels=outbox_channels,
        )
        self._setup = TurnSetup(settings, texts, loader, tiers)
        self._late = Unanswered(
            stores=stores, clock=clock, texts=texts, ends=self._ends, setup=self._setup
        )
        self._resume = TurnResume(
            stores=stores,
            clock=clock,
            texts=texts,
            ends=self._ends,
            setup=self._setup,
            late=self._late,
            gate=gate,
        )
        self._forgetting = Forgetting(stores, clock, turn_log)
        ends, setup, late = self._ends, self._setup, self._late
        self._actions = buttons(
            stores, clock, texts, ends, setup, late, self._memory, loader, self._forgetting
        )
        self._corrections = Corrections(stores, clock, texts, self._setup)
        self._talks = Conversations()
        runner = Runner(gate)
        self._public = PublicTurns(
            stores=stores,
            clock=clock,
            texts=texts,
            runner=runner,
            engines=engines,
            setup=self._setup,
        )
        self._walker = TurnWalk(
            clock=clock,
            texts=texts,
            runner=runner,
            engines=engines,
            undo=Undo(gate.cage, stores, clock),
            ends=self._ends,
            setup=self._setup,
            talks=self._talks,
            memory=self._memory,
            sharing=Sharing(stores, clock, texts, settings),
        )
        self._tasks: set[asyncio.Task[None]] = set()

    # -- the door ---------------------------------------------------------------------------------

    async def run(self, inbound: Inbound) -> AsyncIterator[TurnEvent]:
        """Run the turn of an inbound and yield what happens; the last event is its end, emitted
        after the commit. Leaving the iterator early does not stop the turn.

        An inbound that had its turn already yields that end again and runs nothing.
        """
        queue: asyncio.Queue[TurnEvent | None] = asyncio.Queue()
        task = asyncio.create_task(self._walk(inbound, queue))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: queue.put_nowait(None))
        while (event := await queue.get()) is not None:
            yield event
        await task

    async def stop(self, address: ChatAddress, sender_id: str | None = None) -> bool:
        """End the running turn of a conversation. It closes itself and says what had been done.

        When none runs, the open questions of this sender there are dropped, and their turns end.
        False when there is neither, or what runs is somebody else's, who is not to be stopped but
        by the host. Returns when everything is closed.
        """
        actor = None
        if sender_id is not None:
            async with self._stores.main.read() as tx:
                actor = await actors.find_actor(tx, address.channel, sender_id)
            whose = self._talks.whose().get(address.key)
            if actor is None or (actor.role is Role.GUEST and whose not in {None, actor.id}):
                return False
        if await self._talks.stop(address.key):
            return True
        if actor is None or self._talks.is_busy(address.key):
            return False
        async with self._talks.alone(*await self._late.places(address.key, actor.id)):
            return await self._late.drop(address, actor)

    async def correct(self, inbound: Inbound) -> bool:
        """A message of before was corrected to what this inbound says: offer to begin again with
        it, beside whatever turn runs. Whether there was something to say."""
        return await self._corrections.offer(inbound)

    async def make_way(self, inbound: Inbound) -> None:
        """End the turn that runs when this press begins it anew, corrected; nothing else."""
        turn_id = await self._corrections.turn_to_stop(inbound)
        running = self._talks.running(inbound.address.key)
        if running is not None and running.turn_id == turn_id:
            await self._talks.stop(inbound.address.key)

    async def follow(self, inbound: Inbound) -> None:
        """Note what wants no answer, beside whatever turn runs: where somebody has moved to, or
        how they find an answer. Says nothing."""
        if inbound.kind is InboundKind.REACTION:
            await turn_feedback.take(self._stores, inbound, self._memory)
        else:
            await self._resume.follow(inbound)

    async def answer_public(self, request: str, lang: str) -> Reply:
        """See `PublicTurns.answer`."""
        return await self._public.answer(request, lang)

    def status(self, address: ChatAddress) -> TurnStatus | None:
        running = self._talks.running(address.key)
        if running is None:
            return None
        seconds = self._clock.monotonic() - running.started
        return TurnStatus(running.turn_id, running.request, seconds)

    async def recover(self) -> list[tuple[ChatAddress, TurnClosed]]:
        """Settle what an earlier process left: missing log lines, changes, and turns that are not
        to go on; the ends of these, for channels without an outbox to tell.

        Turns that nothing came of are delivered again by the inbox of their channel.
        """
        await append_missing(self._stores.main, self._turn_log)
        await self._forgetting.finish()
        await settle_effects(self._stores, self._clock)
        left = await turns_left(self._stores, but_of=self._ends.outbox_channels)
        return [
            (address, await self._late.cut_short(old, actor, ErrorCode.INTERRUPTED))
            for old, actor, address in left
        ]

    async def expire(self) -> list[tuple[ChatAddress, TurnEvent]]:
        """End the turns whose questions ran out; what to tell, and where. Those of people whose
        right was withdrawn end without a word. Call it now and then: a conversation that works on
        something is left for the next time. What is to be forgotten goes, as soon as it may."""
        await self._forgetting.finish()
        for address in await self._late.leave(self._talks.whose()):
            await self._talks.stop(address.key)
        told: list[tuple[ChatAddress, TurnEvent]] = []
        for one in await self._late.due():
            places = (one.suspension.conversation, one.home)
            if not self._talks.is_busy(*places):
                async with self._talks.alone(*places):
                    ended = await self._late.end(one)
                told += [(ChatAddress.from_key(one.home), event) for event in ended]
        return told

    async def warm(self) -> None:
        """Let the model read the part of the prompt that never changes, so that the first turn
        does not wait for it. A model that does not answer is left to the turn to tell."""
        address = ChatAddress("warm", "0")
        actor = Actor("warm", Role.GUEST, "warm")
        lang = self._settings.metnos_lang
        context = self._setup.context("warm", actor, address, lang, self._clock.now(), "")
        try:
            proposer = await self._engines.local()
            await proposer.warm(context)
        except ModelError as exc:
            log.warning("model not warmed", extra={"detail": exc.detail})

    async def close(self) -> None:
        """End all running turns without closing them: the next start takes them up again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._ends.flush()

    # -- one turn ---------------------------------------------------------------------------------

    async def _walk(self, inbound: Inbound, queue: asyncio.Queue[TurnEvent | None]) -> None:
        async with self._talks.alone(inbound.address.key):
            try:
                await self._turn(inbound, queue)
            except MetnosError as exc:
                # Not even the store answered: the person still hears something.
                log.exception("turn could not be kept", extra={"inbound": inbound.id})
                queue.put_nowait(self._ends.unkept(inbound, to_error_info(exc)))
            except Exception as exc:
                log.exception("turn failed", extra={"inbound": inbound.id})
                queue.put_nowait(self._ends.unkept(inbound, to_error_info(exc)))

    async def _turn(self, inbound: Inbound, queue: asyncio.Queue[TurnEvent | None]) -> None:
        now = self._clock.now()
        async with self._stores.main.read() as tx:
            actor = await actors.find_actor(tx, inbound.address.channel, inbound.sender_id)
            former = await turns.find_by_inbound(tx, inbound.id)
            talk = (
                ()
                if actor is None
                else await turns.recent(tx, inbound.address.key, actor.id, CONVERSATION_TURNS)
            )
            rights = None if actor is None else await self._setup.rights(tx, actor, now)
        if actor is None:
            queue.put_nowait(self._ends.unkept(inbound, ErrorInfo(ErrorCode.NOT_AUTHORIZED)))
            return
        if former is not None and former.state != "running":
            queue.put_nowait(await self._late.told_before(former))
            return
        begun: TurnState | None = None
        if former is None:
            if await self._answered(inbound, actor, queue):
                return
        else:
            taken, begun = await self._actions.take_up(former, actor)
            if taken is not None:
                await self._tell(taken, queue, inbound.address)
                return
        given = given_by(inbound, talk, now)
        request = clean_request(inbound.text) if begun is None else begun.request
        turn_id = self._clock.new_id() if former is None else former.id
        context = self._setup.context(
            turn_id,
            actor,
            inbound.address,
            self._setup.lang(actor, inbound, request),
            now,
            request[:MAX_REQUEST],
            **given.to_context(),
            rights=rights,
            interactive=inbound.is_interactive,
            scheduled=inbound.kind is InboundKind.SCHEDULED,
            alone=inbound.alone,
            message_ref=inbound.message_ref,
        )
        if former is None and (too_often := self._setup.too_often(context)) is not None:
            queue.put_nowait(self._ends.unkept(inbound, too_often, lang=context.lang))
            return
        if former is None:
            async with self._stores.main.write() as tx:
                await self._ends.mark_logged(tx)
                await turns.open_turn(
                    tx,
                    turn_id=turn_id,
                    inbound_id=inbound.id,
                    actor_id=actor.id,
                    conversation=inbound.address.key,
                    message_ref=inbound.message_ref,
                    lang=context.lang,
                    request=redact(context.request) or WORDLESS,
                    given=given.to_store(),
                    now=now,
                )
        if is_wordless(inbound, request):
            await self._end_wordless(inbound, context, queue)
            return
        state = begun or TurnState(turn_id, context.request)
        refusal = None if begun else refusal_of(inbound, request, context)
        await self._walker.through(context, state, queue, refusal=refusal)

    async def _end_wordless(
        self, inbound: Inbound, context: TurnContext, queue: asyncio.Queue[TurnEvent | None]
    ) -> None:
        """The end of a turn to which something was given without a word."""
        queue.put_nowait(TurnStarted(context.turn_id, context.lang))
        outcome = Outcome(TurnState(context.turn_id, WORDLESS), FinalKind.ASK)
        words = asked_what(inbound, context, self._texts)
        queue.put_nowait(await self._ends.close(context, outcome, closing=words))

    async def _answered(
        self, inbound: Inbound, actor: Actor, queue: asyncio.Queue[TurnEvent | None]
    ) -> bool:
        """Whether it was a press or an answer; then all that comes of it has been done and told.

        A question may stand apart from the conversation of its turn, which is held as well then.
        """
        if (taken := await self._actions.take(inbound, actor)) is not None:
            await self._tell(taken, queue, inbound.address)
            return True
        here = inbound.address.key
        apart = await self._late.homes(here, actor.id)
        async with self._talks.alone(*apart):
            taken = await self._resume.take(inbound, actor, queue.put_nowait, held=apart)
            if taken is not None:
                await self._tell(taken, queue, inbound.address)
        return taken is not None

    async def _tell(
        self, taken: Taken, queue: asyncio.Queue[TurnEvent | None], here: ChatAddress
    ) -> None:
        for event in taken.events:
            queue.put_nowait(event)
        if taken.resumed is not None:
            await self._go_on(taken.resumed, queue, here)

    async def _go_on(
        self, resumed: Resumed, queue: asyncio.Queue[TurnEvent | None], here: ChatAddress
    ) -> None:
        """The rest of a turn that waited, or its end when it may not go on. `here` the answer was
        given, which may be elsewhere."""
        context, state = resumed.context, resumed.state
        if resumed.error is not None:
            queue.put_nowait(await self._ends.cut_short(context, state, resumed.error))
            return
        await self._walker.through(context, state, queue, resumption=resumed.resumption, here=here)
