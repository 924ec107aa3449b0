"""`metnos run`: the bot on Telegram, until it is told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
import sys

import typer

from bot.cli.output import BAD_SETTING, Session


def run(ctx: typer.Context) -> int:
    """0 after a clean stop (SIGTERM, Ctrl-C), 2 without a token that Telegram knows, 69 when
    no updates come any more, 75 when another engine holds the home."""
    session: Session = ctx.obj
    if session.settings.telegram_bot_token is None:
        session.console.note("cli.run.no_token")
        return BAD_SETTING
    if session.settings.metnos_unsafe_no_cage:
        session.console.alarm("cli.no_cage")
    # httpx loads them where other programs have brought them: 5 MB that the bot would keep for
    # nothing.
    for unused in ("trio", "pygments"):
        sys.modules.setdefault(unused, None)  # type: ignore[arg-type]
    gc.disable()  # until all is loaded, see `_greet`: looking through it meanwhile frees nothing
    try:
        asyncio.run(_until_told(session))
    finally:
        gc.enable()
    return 0


async def _until_told(session: Session) -> None:
    """Run the bot; the first signal stops it in order, a second one at once."""
    from bot.app import run_telegram

    ready = asyncio.Event()
    bot = asyncio.create_task(run_telegram(session.settings, ready=ready))
    greeting = asyncio.create_task(_greet(session, ready))
    loop = asyncio.get_running_loop()
    told = False

    def stop() -> None:
        nonlocal told
        told = True
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
        bot.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await bot
    except asyncio.CancelledError:
        if not told:
            raise
        session.console.tell("cli.run.stopped")
    finally:
        greeting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await greeting


async def _greet(session: Session, ready: asyncio.Event) -> None:
    await ready.wait()
    # What is loaded by now stays for good. Left to the collector, looking through all of it would
    # stop some turn for 40 ms now and then.
    gc.freeze()
    gc.enable()
    session.console.tell("cli.run.ready")
