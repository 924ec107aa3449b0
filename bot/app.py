"""The only place that composes: settings in, a running house out, taken down in reverse order."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from core import logs
from core.catalog.loader import CatalogLoader
from core.catalog.release import shipped_root
from core.catalog.staging import is_staged_current, stage
from core.clock import Clock, SystemClock
from core.config import Settings
from core.egress.broker import Broker
from core.errors import MetnosError, StoreError, to_error_info
from core.execution import preimages
from core.execution.answered import Answered
from core.execution.cage.process import ProcessCage
from core.execution.credential_tools import CredentialTools
from core.execution.invoke import Gate
from core.execution.reading import Reader
from core.execution.recipients import Recipients
from core.execution.runner import Runners
from core.foreign.servers import Servers
from core.i18n import Texts
from core.levels.autopath import Autopath
from core.levels.candidates import Candidates
from core.levels.engines import Engines
from core.levels.fastpath import Fastpath
from core.levels.nearness import Nearness
from core.levels.past import Past
from core.levels.proposal import Proposer
from core.levels.proposers.metis import MetisProposer
from core.levels.proposers.simple import SimpleProposer
from core.llm.embedder import embedder_of
from core.llm.local_model import find_model
from core.llm.local_server import LocalServer, runtime_missing
from core.llm.prompts import Prompts
from core.llm.tiers import Tiers
from core.messages import ChatAddress, TurnClosed
from core.store import mcp, upkeep
from core.store.lock import engine_lock
from core.store.stores import Stores, open_stores
from core.store.turn_log import PolicyLog, TurnLog
from core.turn import Turns
from core.turn_memory import TurnMemory

log = logging.getLogger(__name__)

STOP_GRACE_S = 10.0
EXPIRY_EVERY_S = 5.0


@dataclass(frozen=True, slots=True)
class House:
    """Everything that is open while the engine runs. `server` is the bundled model's, if it is
    used; `told` are the ends of turns that an earlier process left, which channels without an
    outbox show themselves."""

    settings: Settings
    clock: Clock
    texts: Texts
    stores: Stores
    loader: CatalogLoader
    tiers: Tiers
    cage: ProcessCage
    turns: Turns
    server: LocalServer | None
    told: tuple[tuple[ChatAddress, TurnClosed], ...] = ()


def secrets_of(settings: Settings) -> list[str]:
    """Values that must never stand in a log."""
    return list(settings.secrets)


def load_texts() -> Texts:
    return Texts.load(shipped_root() / "locales")


@asynccontextmanager
async def open_house(
    settings: Settings, command: str, *, clock: Clock | None = None
) -> AsyncIterator[House]:
    """Open the home for one engine: lock, stores, signed executors, model, and what an earlier
    process left settled.

    Raises `AlreadyRunning`, `StoreError` and `CatalogError`. Closes in reverse order.
    """
    now = clock or SystemClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(engine_lock(settings.metnos_home, command))
        stores = await open_stores(settings, now)
        stack.push_async_callback(stores.close)
        stage_release(settings)
        await upkeep.tidy(stores, now.now())
        await empty_trash(settings, stores, now)
        texts, prompts = load_texts(), Prompts(shipped_root() / "locales")
        server = bundled_server(settings)
        if server is not None:
            stack.push_async_callback(server.stop)
        tiers = Tiers.from_settings(settings, bundled=server)
        stack.push_async_callback(tiers.close)
        loader = CatalogLoader.of(settings)
        cage = open_cage(settings)
        stack.callback(cage.close)
        cage.start(loader.current().sdk)
        servers = Servers(stores, now, settings.private_dir / "servers")
        stack.push_async_callback(servers.close)
        gate = Gate(
            cage=Runners(Answered(cage, now), servers),
            stores=stores,
            clock=now,
            settings=settings,
            policy_log=PolicyLog(settings.metnos_home / "policy"),
            credentials=CredentialTools(cage, stores, now, settings, texts),
            recipients=Recipients(cage, stores, now, texts),
            reader=Reader(lambda: tiers.for_role("read"), prompts, now),
        )
        candidates = Candidates()
        metis = MetisProposer(tiers, prompts, texts, candidates)
        proposers: dict[str, Proposer] = {
            "simple": SimpleProposer(tiers, prompts, texts, candidates, without_tools=metis),
            "metis": metis,
            "frontier": MetisProposer(tiers, prompts, texts, candidates, role="plan_online"),
        }
        turns = Turns(
            settings=settings,
            stores=stores,
            clock=now,
            texts=texts,
            loader=loader,
            gate=gate,
            tiers=tiers,
            engines=Engines(
                mode=settings.metnos_mode,
                tiers=tiers,
                candidates=candidates,
                proposers=proposers,
            ),
            turn_log=TurnLog(settings.metnos_home / "turns"),
            memory=await memory_of(settings, stores, now, texts, stack),
        )
        stack.push_async_callback(turns.close)
        told = tuple(await turns.recover())
        yield House(settings, now, texts, stores, loader, tiers, cage, turns, server, told)


async def memory_of(
    settings: Settings, stores: Stores, clock: Clock, texts: Texts, stack: AsyncExitStack
) -> TurnMemory:
    """The levels that answer without a model, as far as they are turned on, with the embedder of
    the settings at work in the background."""
    if not settings.metnos_memory:
        return TurnMemory(None)
    nearness = Nearness(embedder_of(settings), stores, clock)
    stack.push_async_callback(nearness.close)
    nearness.start()
    autopath = Autopath(stores, clock, nearness) if settings.metnos_autopath else None
    fastpath = Fastpath(stores, clock, nearness)
    await fastpath.read_again()
    return TurnMemory(fastpath, autopath, texts, Past(stores, clock))


async def empty_trash(settings: Settings, stores: Stores, clock: Clock) -> None:
    """Delete for good what has been in the trash for its thirty days."""
    now = clock.now()
    folders = await preimages.folders_with_trash(stores, settings, now)
    await asyncio.to_thread(preimages.purge, folders, older_than=now - preimages.KEEP)


def open_cage(settings: Settings) -> ProcessCage:
    """The cage, or the host's explicit way out of it, which is said at every start:
    here in the log, in the terminal by the command."""
    if settings.metnos_unsafe_no_cage:
        log.warning("METNOS_UNSAFE_NO_CAGE is set: executors run without a cage")
    return ProcessCage(unsafe=settings.metnos_unsafe_no_cage, broker=Broker())


def stage_release(settings: Settings) -> None:
    """Stage and sign the shipped executors when the release changed. What is refused is logged
    and left out; the rest works. Raises `StoreError` when the disk does not allow it."""
    if is_staged_current(settings):
        return
    try:
        report = stage(settings)
    except OSError as exc:
        error = StoreError(f"executors cannot be staged ({exc.strerror})")
        error.code = to_error_info(exc).code if exc.errno == 28 else error.code
        raise error from exc
    for rejection in report.refused:
        log.warning(
            "executor not staged", extra={"name_": rejection.name, "why": rejection.detail}
        )


def bundled_server(settings: Settings) -> LocalServer | None:
    """The bundled model's server when nothing else is set and both model and package are here."""
    if Tiers.from_settings(settings).configured or runtime_missing() is not None:
        return None
    model = find_model(settings.metnos_home)
    if model is None:
        return None
    return LocalServer(model, log_file=settings.metnos_home / "model.log")


async def run_telegram(settings: Settings, *, ready: asyncio.Event | None = None) -> None:
    """Run the bot until cancelled. Raises what `open_house` raises, and `SettingsInvalid` when
    Telegram refuses the token."""
    from bot.console.server import ConsoleServer
    from bot.telegram.channel import TelegramChannel

    logs.configure(
        settings.metnos_log_level, file=settings.metnos_log_file, secrets=secrets_of(settings)
    )
    async with open_house(settings, "run") as house:
        console = ConsoleServer(house) if settings.metnos_console else None
        channel = TelegramChannel(
            settings=settings,
            stores=house.stores,
            turns=house.turns,
            texts=house.texts,
            clock=house.clock,
            isolation=house.cage.isolation,
            console=console,
        )
        running = asyncio.create_task(channel.run())
        warming = asyncio.create_task(warm(house))
        tidying = asyncio.create_task(_tidy_hourly(house))
        expiring = asyncio.create_task(_expire_questions(house, channel.wake_outbox))
        shown = None if console is None else asyncio.create_task(console.run(channel))
        if ready is not None:
            ready.set()
        try:
            await asyncio.shield(running)
        finally:
            if shown is not None:
                shown.cancel()
                await asyncio.wait({shown})
            warming.cancel()
            tidying.cancel()
            expiring.cancel()
            await channel.stop(STOP_GRACE_S)
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.gather(running, warming, tidying, expiring, return_exceptions=True)


async def warm(house: House) -> None:
    """Start the bundled model and let it read the stable part of the prompt, in the background."""
    if house.server is not None:
        await house.turns.warm()


async def _expire_questions(house: House, wake_outbox: Callable[[], None]) -> None:
    """End what waits for an answer that did not come in time; the word goes out by the outbox."""
    while True:
        try:
            if await house.turns.expire():
                wake_outbox()
        except MetnosError:
            log.exception("questions not ended")
        await asyncio.sleep(EXPIRY_EVERY_S)


async def _tidy_hourly(house: House) -> None:
    """Drop what has had its time: old rows of inbox, outbox, scratchpad and notices, and plans
    that nobody asked for any more."""
    while True:
        await asyncio.sleep(3600)
        try:
            await upkeep.tidy(house.stores, house.clock.now())
            await empty_trash(house.settings, house.stores, house.clock)
            async with house.stores.main.read() as tx:
                foreign = [one.name for one in await mcp.active(tx)]
            tools = [*house.loader.current().executors, *foreign]
            await Fastpath(house.stores, house.clock).age(tools)
            await Autopath(house.stores, house.clock).age(tools)
        except StoreError:
            log.exception("upkeep failed")
