"""`metnos setup`: make the home, its key, its signed executors and its database; ask the rest.

Safe to run again at any time: what is there stays, what is damaged is put right, and what was
answered before is offered as the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import questions
from bot.cli.lines import own_command, short_path
from bot.cli.output import FAULT, Console, Session, is_asked
from bot.cli.pair import make_code, show_code
from core.config import Settings, load_settings

if TYPE_CHECKING:
    from core.catalog.staging import StageReport


def setup(
    ctx: typer.Context,
    non_interactive: Annotated[bool, typer.Option("--non-interactive")] = False,
    brief: Annotated[bool, typer.Option("--brief")] = False,
) -> int:
    """1 when an executor of the release could not be signed."""
    session: Session = ctx.obj
    settings = session.settings
    asks = not non_interactive and is_asked()
    from core.store.secret_key import key_path, load_or_create
    from core.store.stores import make_home

    make_home(settings)
    load_or_create(settings.private_dir)
    if asks:
        session = questions.ask(session)
        settings = load_settings()
    console = session.console
    report, key_id = _sign(settings)
    has_phone = _open_database(settings)
    if not asks and not (report.staged or report.removed or report.refused):
        console.tell("cli.setup.was_ready", path=short_path(settings.metnos_home))
        return 0
    console.tell("cli.setup.home", path=short_path(settings.metnos_home))
    console.tell("cli.setup.key", id=key_id)
    console.tell("cli.setup.secrets_key", path=short_path(key_path(settings.private_dir)))
    _tell_executors(console, report)
    console.tell("cli.setup.database")
    if brief:
        return FAULT if report.refused else 0
    _tell_model(console, settings)
    console.line()
    if asks and settings.telegram_bot_token is not None and not has_phone:
        code, _ = make_code(settings, "host")
        show_code(console, settings, "host", code)
        console.line()
        has_phone = True
    _tell_next_steps(console, settings, asks=asks, has_phone=has_phone)
    return FAULT if report.refused else 0


def _sign(settings: Settings) -> tuple[StageReport, str]:
    """Sign the shipped executors into the home; what became of them, and the owner's key id."""
    from core.catalog.keys import load_or_create_owner_key
    from core.catalog.staging import stage

    owner = load_or_create_owner_key(settings.private_dir)
    return stage(settings), owner.key_id


def _tell_executors(console: Console, report: StageReport) -> None:
    from core.catalog.manifest import SDK_NAME

    def count(units: tuple[str, ...]) -> int:
        return sum(unit != SDK_NAME for unit in units)  # what they all build on is no tool

    console.tell(
        "cli.setup.executors", staged=count(report.staged), unchanged=count(report.unchanged)
    )
    if report.kept:
        console.tell("cli.setup.kept", names=", ".join(report.kept))
    if report.removed:
        console.tell("cli.setup.removed", names=", ".join(report.removed))
    for rejection in report.refused:
        why = console.reason(rejection)
        console.tell("cli.executors.refused", name=rejection.name, reason=why)


def _open_database(settings: Settings) -> bool:
    """Make or check the database; whether the host can be reached on Telegram already."""
    from bot.cli.beside import read_store
    from core.store import actors
    from core.store.database import Transaction

    async def host_on_telegram(tx: Transaction) -> bool:
        host = await actors.find_host(tx)
        known = [] if host is None else await actors.identities_of(tx, host.id)
        return any(channel == "telegram" for channel, _ in known)

    return read_store(settings, host_on_telegram)


def _tell_model(console: Console, settings: Settings) -> None:
    from bot.cli.model import what_is_missing
    from core.llm.tiers import needs_bundled

    if not needs_bundled(settings):
        console.tell("cli.setup.model_own")
    elif (command := what_is_missing(settings)) is None:
        console.tell("cli.setup.model_bundled")
    else:
        console.tell("cli.setup.model_none", command=command)


def _tell_next_steps(console: Console, settings: Settings, *, asks: bool, has_phone: bool) -> None:
    if settings.telegram_bot_token is None:
        console.tell("cli.setup.next_chat", command=own_command("chat"))
        if not asks:
            console.tell("cli.setup.next_token", command=own_command("setup"))
        return
    if not has_phone:
        console.tell("cli.setup.next_pair", command=own_command("pair --host"))
    console.tell("cli.setup.next_run", command=own_command("run"))
