"""`metnos doctor`: what is wrong, why, and the one command that mends it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.checks import Doctor, Finding, State
from bot.cli.output import FAULT, Console, Session

if TYPE_CHECKING:
    from core.config import Settings

_SIGNS = {State.GOOD: "✓", State.INFO: "·", State.FAULT: "✗"}


def doctor(
    ctx: typer.Context,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    offline: Annotated[bool, typer.Option("--offline")] = False,
    live: Annotated[bool, typer.Option("--live")] = False,
) -> int:
    """0 when nothing is at fault. Lines appear as they are found out. `live`: only whether the bot
    runs and hears Telegram, for supervisors; nobody is asked."""
    session: Session = ctx.obj
    console = session.console
    findings: list[Finding] = []
    for finding in _live(session) if live else _findings(session, offline=offline):
        findings.append(finding)
        if not as_json:
            _show(console, finding)
    faults = sum(finding.state is State.FAULT for finding in findings)
    if as_json:
        console.json({"ok": not faults, "checks": [finding.to_json() for finding in findings]})
    else:
        console.line()
        console.tell("cli.doctor.faults" if faults else "cli.doctor.healthy", count=faults)
    return FAULT if faults else 0


def _findings(session: Session, *, offline: bool) -> Iterator[Finding]:
    from bot.cli.mcp_check import check_servers
    from core.errors import SettingsInvalid

    console = session.console
    try:
        settings = session.settings
    except SettingsInvalid as exc:
        # Nothing else can be looked at: which home, which token?
        message = console.setting_sentence(exc)
        yield Finding("settings", State.FAULT, message, "${EDITOR:-nano} .env")
        return
    yield from Doctor(console, settings).local()
    yield from check_servers(Doctor(console, settings), ask=not offline)
    if not offline:
        yield from asyncio.run(_far(console, settings))


def _live(session: Session) -> list[Finding]:
    from bot.cli.far_checks import check_live

    async def look() -> list[Finding]:
        return [f async for f in check_live(Doctor(session.console, session.settings))]

    return asyncio.run(look())


async def _far(console: Console, settings: Settings) -> list[Finding]:
    from bot.cli.account_checks import check_accounts
    from bot.cli.embedder_check import check_embedder
    from bot.cli.far_checks import check_model, check_telegram
    from bot.cli.service_checks import check_services

    doctor = Doctor(console, settings)
    embedder = await check_embedder(doctor)
    return [
        *[finding async for finding in check_telegram(doctor)],
        *[finding async for finding in check_accounts(doctor)],
        *[finding async for finding in check_services(doctor)],
        *([] if embedder is None else [embedder]),
        await check_model(doctor),
    ]


def _show(console: Console, finding: Finding) -> None:
    fault = finding.state is State.FAULT
    console.line(f"{_SIGNS[finding.state]} {finding.message}", alarm=fault)
    if finding.mend is not None:
        console.line(f"    → {finding.mend}")
