"""`metnos credentials`: the key under which everything that people entrust is locked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from bot.cli.lines import short_path
from bot.cli.output import Session

if TYPE_CHECKING:
    from core.config import Settings


def rotate(ctx: typer.Context) -> int:
    """Lock everything with a new key and throw the old one away. Not while the bot runs."""
    session: Session = ctx.obj
    from core.store.lock import engine_lock
    from core.store.secret_key import key_path

    settings = session.settings
    with engine_lock(settings.metnos_home, "credentials rotate"):
        count = asyncio.run(_rotate(settings))
    path = short_path(key_path(settings.private_dir))
    session.console.tell("cli.credentials.rotated", count=count, path=path)
    return 0


async def _rotate(settings: Settings) -> int:
    from core.clock import SystemClock
    from core.store.rotation import rotate as relock
    from core.store.stores import open_stores

    stores = await open_stores(settings, SystemClock())
    try:
        return await relock(stores.main, settings.private_dir)
    finally:
        await stores.close()
