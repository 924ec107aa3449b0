"""`metnos chat`: ask in this terminal."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Literal, NoReturn

import typer

from bot.cli.lines import short_path
from bot.cli.output import BAD_SETTING, FAULT, LOG_FILE, Session, hush, is_asked


def chat(
    ctx: typer.Context,
    once: Annotated[str | None, typer.Option("--once", metavar="TEXT")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    lang: Annotated[Literal["it", "en"] | None, typer.Option("--lang")] = None,
) -> int:
    """0 when everything asked was answered, 1 otherwise; a conversation by hand is always 0."""
    session: Session = ctx.obj.in_language(lang)
    console, settings = session.console, session.settings
    if once is not None and not once.strip():
        console.note("cli.chat.empty")
        return BAD_SETTING

    from bot.app import secrets_of
    from bot.engine import Engine
    from bot.terminal import Terminal
    from core import logs

    home = settings.metnos_home
    logs.configure(
        settings.metnos_log_level,
        file=settings.metnos_log_file or home / LOG_FILE,
        secrets=secrets_of(settings),
        quiet=True,
    )
    hush()
    signal.signal(signal.SIGTERM, _leave)
    if settings.metnos_unsafe_no_cage:
        console.alarm("cli.no_cage")
    engine = Engine(settings)
    with engine as house:
        terminal = Terminal(
            engine, house, console, lang=lang, interactive=is_asked() and not as_json
        )
        if once is not None:
            if not as_json:
                terminal.tell_cut_short()
            answer = terminal.ask(once)
            if as_json:
                console.json(answer.to_json())
            elif is_asked():
                answer = terminal.go_on(answer)
            else:
                terminal.show(answer.closed.reply, once=True)
            return 0 if answer.is_answered else FAULT
        _say_which_model(session, configured=house.tiers.configured, bundled=house.server)
        if is_asked():
            console.tell("cli.chat.hello")
            _say_folders(session)
            console.line()
            terminal.converse()
            return 0
        # Standard input may be closed altogether.
        well = terminal.answer_lines(sys.stdin or (), as_json=as_json)
        return 0 if well else FAULT


def _leave(*_: object) -> NoReturn:
    raise SystemExit(128 + signal.SIGTERM)


def _say_which_model(session: Session, *, configured: bool, bundled: object) -> None:
    """The bundled model is small, and no model is none: said before the first request."""
    if bundled is not None:
        session.console.note("cli.chat.small_model")
    elif not configured:
        from bot.cli.model import what_is_missing

        session.console.note("cli.chat.no_model", command=what_is_missing(session.settings))


def _say_folders(session: Session) -> None:
    roots = session.settings.metnos_files_roots
    if roots:
        names = [short_path(root) for root in roots]
        text = session.console.texts.list(names, session.console.lang)
        session.console.tell("cli.chat.folders", folders=text, count=len(names))
