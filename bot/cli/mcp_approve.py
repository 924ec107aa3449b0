"""`metnos mcp approve` and `revoke`: what the host says of a server's tool, before it is used."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import own_command
from bot.cli.mcp import no_server
from bot.cli.output import BAD_SETTING, FAULT, Console, Session, is_asked
from bot.prompt import typed

if TYPE_CHECKING:
    from core.catalog.foreign import Approval
    from core.store.mcp import KnownTool

_EFFECTS = ("pure", "idempotent", "keyed", "blind")
_MOST_SHOWN = 1200


def approve(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    tool: Annotated[str, typer.Argument(metavar="TOOL")] = "",
    effect: Annotated[str, typer.Option("--effect", metavar="CLASS")] = "",
    right: Annotated[list[str] | None, typer.Option("--right", metavar="RIGHT")] = None,
    word: Annotated[list[str] | None, typer.Option("--word", metavar="WORD")] = None,
    arg: Annotated[list[str] | None, typer.Option("--arg", metavar="ARGUMENT=TYPE")] = None,
    describe: Annotated[str, typer.Option("--describe", metavar="TEXT")] = "",
) -> int:
    """Let a tool be used as it describes itself now; without options each is asked about."""
    session: Session = ctx.obj
    console = session.console
    from core.catalog.foreign import Approval, clean
    from core.catalog.manifest import Effect
    from core.store import mcp

    server = read_store(session.settings, lambda tx: mcp.find(tx, name))
    if server is None:
        return no_server(console, name)
    known = read_store(session.settings, lambda tx: mcp.tools(tx, name))
    if tool:
        known = [one for one in known if one.seen.tool == tool and not one.gone]
        if not known:
            console.note("cli.mcp.no_tool", tool=tool, command=own_command(f"mcp show {name}"))
            return FAULT
    if not effect and is_asked():
        return ask_each(session, known, again=bool(tool))
    if effect not in _EFFECTS or not tool:
        console.note("cli.mcp.which_effect", effects=", ".join(_EFFECTS))
        return BAD_SETTING
    types = dict(pair.partition("=")[::2] for pair in arg or ())
    said = Approval(
        Effect(effect),
        tuple(dict.fromkeys(right or ())),
        tuple(clean(one, most=60) for one in word or ()),
        types,
        clean(describe, most=240),
    )
    return _keep(session, known[0], said)


def revoke(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    tool: Annotated[str, typer.Argument(metavar="TOOL")],
) -> int:
    """Take the approval of a tool back."""
    session: Session = ctx.obj
    from core.store import mcp

    if not write_store(session.settings, lambda tx: mcp.revoke(tx, name, tool)):
        command = own_command(f"mcp show {name}")
        session.console.note("cli.mcp.no_tool", tool=tool, command=command)
        return FAULT
    session.console.tell("cli.mcp.revoked", tool=tool)
    return 0


def ask_each(session: Session, known: list[KnownTool], *, again: bool = False) -> int:
    """Show every tool that is new or has changed (`again`: any) and ask what it does; Enter leaves
    it unused."""
    from core.catalog.foreign import Approval, clean
    from core.catalog.manifest import Effect
    from core.store.mcp import ToolState

    console = session.console
    status = 0
    for one in known:
        if one.gone or (one.state is ToolState.ACTIVE and not again):
            continue
        _show(console, one)
        try:
            answer = typed(input, console.say("cli.mcp.ask_effect")).strip().casefold()
            chosen = [name for name in _EFFECTS if answer and name.startswith(answer)]
            if not chosen:
                console.tell("cli.mcp.left", tool=one.seen.tool)
                continue
            rights = ""
            if chosen[0] != "pure":
                rights = typed(input, console.say("cli.mcp.ask_rights"))
            words = typed(input, console.say("cli.mcp.ask_words"))
        except EOFError:
            console.line()
            return FAULT
        said = Approval(
            Effect(chosen[0]),
            tuple(rights.replace(",", " ").split()),
            tuple(clean(word, most=60) for word in words.split(",") if word.strip()),
        )
        status = _keep(session, one, said) or status
    return status


def _keep(session: Session, one: KnownTool, said: Approval) -> int:
    from core.catalog.foreign import executor_of
    from core.catalog.foreign_schema import ForeignRefused
    from core.clock import SystemClock
    from core.store import mcp

    console, now = session.console, SystemClock().now()
    try:
        made = executor_of(one.server, one.seen, said)
        kept = write_store(
            session.settings, lambda tx: mcp.approve(tx, one.server, one.seen, said, now)
        )
    except ForeignRefused as exc:
        console.note(f"mcp.bad.{exc.reason}", tool=one.seen.tool, detail=exc.detail)
        return BAD_SETTING
    if not kept:
        console.note("cli.mcp.changed_since", tool=one.seen.tool)
        return FAULT
    key = "cli.mcp.approved_pure" if said.effect == "pure" else "cli.mcp.approved_asks"
    console.tell(key, tool=one.seen.tool, name=made.name)
    return 0


def _show(console: Console, one: KnownTool) -> None:
    """What the host decides upon: everything that the server said, as it said it, visibly."""
    from core.catalog.foreign import clean

    console.line()
    console.line(f"{one.server} · {one.seen.tool}  ({console.say(f'mcp.state.{one.state}')})")
    console.tell("cli.mcp.it_says", text=one.seen.description or "—")
    properties = one.seen.schema.get("properties")
    schema = json.dumps(properties or {}, ensure_ascii=False)
    console.tell("cli.mcp.arguments", text=clean(schema, most=_MOST_SHOWN))
    if one.approved is not None and one.approved.digest != one.seen.digest:
        console.tell("cli.mcp.it_said", text=one.approved.description or "—")
