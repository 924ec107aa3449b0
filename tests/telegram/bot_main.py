"""A bot process for the tests: the real channel and stores, `FakeTurns` for the engine.

Environment: that of the project, and TEST_HOSTS, sender ids that are known from the start.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from bot.telegram import delivery, poll, watchdog, webhook
from bot.telegram.channel import TelegramChannel
from core.clock import SystemClock
from core.config import load_settings
from core.errors import ChannelDeaf, SettingsInvalid
from core.i18n import Texts
from core.messages import Role
from core.store import actors
from core.store.stores import Stores, open_stores
from tests.telegram.engine import FakeTurns


async def know(stores: Stores, senders: str) -> None:
    clock = SystemClock()
    async with stores.main.write() as tx:
        for number, sender in enumerate(senders.split()):
            if await actors.find_actor(tx, "telegram", sender) is None:
                role = Role.GUEST if number else Role.HOST
                actor = await actors.add(tx, role, "", clock)
                await actors.link(tx, "telegram", sender, actor.id)


async def main() -> int:
    settings, clock = load_settings(), SystemClock()
    texts = Texts.load(Path(__file__).parents[2] / "locales", strict=True)
    stores = await open_stores(settings, clock)
    if seconds := os.environ.get("TEST_BECOMES_ANSWER_S"):
        delivery.BECOMES_ANSWER_S = float(seconds)
    if seconds := os.environ.get("TEST_LONG_POLL_S"):
        poll.LONG_POLL_S = int(seconds)
    if seconds := os.environ.get("TEST_SILENT_S"):
        watchdog.SILENT_S, watchdog.CHECK_S = float(seconds), 0.2
    if seconds := os.environ.get("TEST_WEBHOOK_CHECK_S"):
        webhook.CHECK_S = float(seconds)
    await know(stores, os.environ.get("TEST_HOSTS", ""))
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    waiting = asyncio.create_task(stop.wait())
    try:
        channel = TelegramChannel(
            settings=settings,
            stores=stores,
            turns=FakeTurns(stores.main),
            texts=texts,
            clock=clock,
        )
        run = asyncio.create_task(channel.run())
        await asyncio.wait({run, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if run.done():
            await run
        await channel.stop(3.0)
        run.cancel()
        await asyncio.wait({run})
    except SettingsInvalid as exc:
        print(exc.detail)
        return 2
    except ChannelDeaf:
        return 69
    finally:
        waiting.cancel()
        await stores.close()
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stdout)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    sys.exit(asyncio.run(main()))
