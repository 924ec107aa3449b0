"""`metnos mcp`: servers of tools, connected and disconnected; looking at what they offer.

What a server says is a stranger's text: it is shown freed of what cannot be seen, and goes no
further than this terminal before the host approves it (`bot.cli.mcp_approve`). Values for a
server are never taken from the command line.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import own_command, table
from bot.cli.output import BAD_SETTING, FAULT, Console, Session, is_asked
from bot.prompt import typed

if TYPE_CHECKING:
    from core.config import Settings
    from core.foreign.servers import Servers
    from core.store.mcp import KnownTool, Server
    from core.store.stores import Stores

T = TypeVar("T")


def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    target: Annotated[list[str], typer.Argument(metavar="URL|COMMAND…")],
    env: Annotated[list[str] | None, typer.Option("--env", metavar="VARIABLE")] = None,
    header: Annotated[list[str] | None, typer.Option("--header", metavar="HEADER")] = None,
) -> int:
    """Connect a server and show its tools; none of them is usable before it is approved."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.catalog.foreign import is_server_name
    from core.clock import SystemClock
    from core.store import actors, mcp
    from core.store.mcp import Server

    if not is_server_name(name):
        console.note("cli.mcp.bad_name")
        return BAD_SETTING
    is_url = len(target) == 1 and "://" in target[0]
    program = None if is_url else shutil.which(target[0])
    if is_url and not _is_address(target[0]):
        console.note("cli.mcp.bad_url")
        return BAD_SETTING
    if not is_url and program is None:
        console.note("cli.mcp.no_program", program=target[0])
        return BAD_SETTING
    variables = tuple(dict.fromkeys((header if is_url else env) or ()))
    values = {one: _value(one) for one in variables}
    if lacking := [one for one, value in values.items() if not value]:
        console.note("cli.mcp.no_value", name=lacking[0])
        return BAD_SETTING
    argv = () if program is None else (os.path.abspath(program), *target[1:])  # noqa: PTH100
    url = target[0] if is_url else ""
    clock = SystemClock()

    async def work(stores: Stores, servers: Servers) -> Server | None:
        async with stores.main.write() as tx:
            host = await actors.ensure_local_host(tx, clock)
            server = Server(name, host.id, argv, url, variables)
            if not await mcp.add(tx, stores.vault, server, values, clock.now()):
                return None
        try:
            await servers.look(server)
        except BaseException:
            async with stores.main.write() as tx:
                await mcp.remove(tx, name)
            raise
        return server

    made = with_servers(console, settings, work)
    if isinstance(made, int):
        return made
    if made is None:
        console.note("cli.mcp.taken", name=name, most=mcp.MOST_SERVERS)
        return FAULT
    known = read_store(settings, lambda tx: mcp.tools(tx, name))
    console.tell("cli.mcp.added", name=name, count=len(known))
    if argv:
        console.tell("cli.mcp.uncaged", program=argv[0])
    if is_asked():
        from bot.cli.mcp_approve import ask_each

        return ask_each(session, known)
    _show_tools(console, known)
    console.tell("cli.mcp.approve_them", command=own_command(f"mcp approve {name}"))
    return 0


def list_servers(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json")] = False
) -> int:
    """The connected servers, and how many of their tools are usable, asleep or new."""
    session: Session = ctx.obj
    console = session.console
    found = read_store(session.settings, _everything)
    if as_json:
        console.json([as_data(server, tools) for server, tools in found])
        return 0
    if not found:
        console.tell("cli.mcp.none", command=own_command("mcp add"))
    for line in table(
        [(server.name, counted(console, tools), server.target) for server, tools in found]
    ):
        console.line(line)
    return 0


def show(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """A server and its tools as they were seen last, with what was approved."""
    session: Session = ctx.obj
    console = session.console
    found = [pair for pair in read_store(session.settings, _everything) if pair[0].name == name]
    if not found:
        return no_server(console, name)
    ((server, tools),) = found
    if as_json:
        console.json(as_data(server, tools))
        return 0
    console.line(f"{server.name}  {server.target}")
    if server.env:
        console.tell("cli.mcp.variables", names=", ".join(server.env))
    _show_tools(console, tools)
    return 0


def look(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Ask a server anew what tools it has; one that says something else now goes to sleep."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import mcp

    async def work(stores: Stores, servers: Servers) -> Server | None:
        async with stores.main.read() as tx:
            server = await mcp.find(tx, name)
        if server is not None:
            await servers.look(server)
        return server

    server = with_servers(console, settings, work)
    if isinstance(server, int):
        return server
    if server is None:
        return no_server(console, name)
    known = read_store(settings, lambda tx: mcp.tools(tx, name))
    if as_json:
        console.json(as_data(server, known))
        return 0
    _show_tools(console, known)
    return 0


def remove(ctx: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")]) -> int:
    """Disconnect a server: its approvals and the values it was given are deleted."""
    session: Session = ctx.obj
    from core.store import mcp

    if not write_store(session.settings, lambda tx: mcp.remove(tx, name)):
        return no_server(session.console, name)
    session.console.tell("cli.mcp.removed", name=name)
    return 0


def with_servers(
    console: Console,
    settings: Settings,
    work: Callable[[Stores, Servers], Awaitable[T]],
) -> T | int:
    """Run `work` with servers that end with it; an exit status when one could not be spoken
    with, which has been said."""
    from core.clock import SystemClock
    from core.errors import SecretUnreadable
    from core.foreign.link import LinkFailed, ServerSaidNo
    from core.foreign.servers import Servers
    from core.store.stores import open_stores

    async def whole() -> T:
        clock = SystemClock()
        stores = await open_stores(settings, clock)
        servers = Servers(stores, clock, settings.private_dir / "servers")
        try:
            return await work(stores, servers)
        finally:
            await servers.close()
            await stores.close()

    try:
        return asyncio.run(whole())
    except (LinkFailed, ServerSaidNo, SecretUnreadable) as exc:
        from core.catalog.foreign import clean

        console.note("cli.mcp.silent", why=clean(str(exc), most=300))
        if isinstance(exc, LinkFailed) and exc.said:
            console.note("cli.mcp.last_words", text=clean(exc.said, most=300))
        return FAULT


def no_server(console: Console, name: str) -> int:
    console.note("cli.mcp.unknown", name=name, command=own_command("mcp list"))
    return FAULT


def counted(console: Console, tools: list[KnownTool]) -> str:
    """How many tools there are of each state, in words."""
    states = [tool.state.value for tool in tools]
    return ", ".join(
        f"{states.count(state)} {console.say(f'mcp.state.{state}')}"
        for state in ("active", "changed", "gone", "new")
        if state in states
    )


def as_data(server: Server, tools: list[KnownTool]) -> dict[str, Any]:
    """A server as JSON says it; never a value of its environment."""
    return {
        "name": server.name,
        "target": server.target,
        "variables": list(server.env),
        "tools": [
            {
                "tool": one.seen.tool,
                "state": one.state.value,
                "description": one.seen.description,
                "name": executor.name if (executor := one.executor()) else None,
                "approval": None if one.approval is None else one.approval.to_json(),
            }
            for one in tools
        ],
    }


async def _everything(tx: Any) -> list[tuple[Server, list[KnownTool]]]:
    from core.store import mcp

    known = await mcp.tools(tx)
    return [
        (server, [one for one in known if one.server == server.name])
        for server in await mcp.servers(tx)
    ]


def _show_tools(console: Console, tools: list[KnownTool]) -> None:
    from core.catalog.foreign import clean

    rows: list[tuple[str, ...]] = []
    for one in tools:
        effect = "" if one.approval is None else console.say(f"mcp.effect.{one.approval.effect}")
        state = console.say(f"mcp.state.{one.state.value}")
        said = clean(one.seen.description, most=70)
        rows.append((f"  {one.seen.tool}", state, effect, said))
    for line in table(rows):
        console.line(line)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and bool(parts.hostname)
        and port_is_right
        and (parts.username is None and parts.password is None)
    )


def _value(variable: str) -> str:
    """What a server is given: from this command's own environment, else typed unseen or, without
    a terminal, a line of standard input."""
    if own := os.environ.get(variable):
        return own
    if is_asked():
        return typed(getpass.getpass, f"{variable}: ").strip()
    return sys.stdin.readline().rstrip("\r\n")
