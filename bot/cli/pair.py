"""`metnos pair`: a one-time code that makes a Telegram account the host or a guest."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated

import typer

from bot.cli.beside import write_store
from bot.cli.output import BAD_SETTING, Console, Session
from core.config import Settings


def pair(
    ctx: typer.Context,
    host: Annotated[bool, typer.Option("--host")] = False,
    guest: Annotated[bool, typer.Option("--guest")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Works beside a running bot. A new code of a role makes the former one void."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    if host == guest:
        console.note("cli.pair.choose")
        return BAD_SETTING
    role = "host" if host else "guest"
    code, expires_at = make_code(settings, role)
    if as_json:
        link = asyncio.run(_deep_link(settings, code))
        console.json(
            {"role": role, "code": code, "expires_at": expires_at.isoformat(), "link": link}
        )
        return 0
    show_code(console, settings, role, code)
    return 0


def _show(console: Console, settings: Settings, role: str, code: str, link: str | None) -> None:
    from core.store.pairing import CODE_TTL

    console.tell(f"cli.pair.code_{role}", code=code, minutes=int(CODE_TTL.total_seconds() // 60))
    if link is not None:
        console.tell("cli.pair.link", link=link)
    elif settings.telegram_bot_token is None:
        console.tell("cli.pair.no_token")
    else:
        console.tell("cli.pair.no_link")
    console.tell("cli.pair.or_write", code=code)


def make_code(settings: Settings, role: str) -> tuple[str, datetime]:
    """A new one-time code of a role, and until when it is good."""
    from core.clock import SystemClock
    from core.messages import Role
    from core.store import pairing

    clock = SystemClock()
    code = write_store(settings, lambda tx: pairing.create_code(tx, Role(role), clock))
    return code, clock.now() + pairing.CODE_TTL


def show_code(console: Console, settings: Settings, role: str, code: str) -> None:
    """Print a code and the ways to use it."""
    _show(console, settings, role, code, asyncio.run(_deep_link(settings, code)))


async def _deep_link(settings: Settings, code: str) -> str | None:
    """The link whose first tap sends the code; None without a bot that answers for its name."""
    if settings.telegram_bot_token is None:
        return None
    from bot.telegram.checks import check_token

    token = settings.telegram_bot_token.get_secret_value().strip()
    found = await check_token(token, settings, timeout_s=6)
    return f"https://t.me/{found.username}?start={code}" if found.username else None
