"""The tree of commands: which word runs which function."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bot.cli import (
    account_checks,
    accounts,
    actors,
    chat,
    chats,
    console,
    credentials,
    doctor,
    executors,
    forgetting,
    grants,
    mandates,
    mcp,
    mcp_approve,
    model,
    own_executors,
    pair,
    plans,
    plans_calibrate,
    run,
    setup,
    turns,
)
from bot.cli.output import Session
from bot.cli.speech import SpokenCommand, SpokenGroup


def build_command() -> Any:
    """The command line as one object whose `main` runs it."""
    app = _group()
    app.callback(invoke_without_command=True, cls=SpokenGroup)(_root)
    for name, function in {
        "setup": setup.setup,
        "run": run.run,
        "chat": chat.chat,
        "pair": pair.pair,
        "console": console.console,
        "doctor": doctor.doctor,
    }.items():
        _add(app, name, function)
    groups: dict[str, dict[str, Any]] = {
        "executors": {
            "list": executors.list_executors,
            "show": executors.show,
            "verify": executors.verify,
            "new": own_executors.new,
            "test": own_executors.try_examples,
            "sign": executors.sign,
        },
        "accounts": {
            "list": accounts.list_accounts,
            "add": accounts.add,
            "test": account_checks.try_them,
            "remove": accounts.remove,
        },
        "mcp": {
            "list": mcp.list_servers,
            "show": mcp.show,
            "add": mcp.add,
            "tools": mcp.look,
            "approve": mcp_approve.approve,
            "revoke": mcp_approve.revoke,
            "remove": mcp.remove,
        },
        "credentials": {"rotate": credentials.rotate},
        "grants": {
            "list": grants.list_grants,
            "add": grants.add,
            "revoke": grants.revoke,
            "agreed": mandates.list_agreed,
            "forget": mandates.forget,
        },
        "actors": {
            "list": actors.list_actors,
            "set": actors.set_actor,
            "revoke": actors.revoke,
            "unblock": actors.unblock,
            "forget": forgetting.forget,
        },
        "groups": {"list": chats.list_groups, "off": chats.turn_off},
        "turns": {"list": turns.list_turns, "show": turns.show},
        "plans": {
            "list": plans.list_plans,
            "show": plans.show,
            "approve": plans.approve,
            "delete": plans.delete,
            "flush": plans.flush,
            "calibrate": plans_calibrate.calibrate,
        },
        "model": {"pull": model.pull, "serve": model.serve, "status": model.status},
    }
    for name, commands in groups.items():
        group = _group()
        group.callback(invoke_without_command=True, cls=SpokenGroup)(_help_alone)
        for word, function in commands.items():
            _add(group, word, function)
        app.add_typer(group, name=name, cls=SpokenGroup)
    return typer.main.get_command(app)


def _group() -> typer.Typer:
    return typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        cls=SpokenGroup,
    )


def _add(app: typer.Typer, name: str, function: Any) -> None:
    app.command(name, cls=SpokenCommand)(function)


def _root(ctx: typer.Context, version: Annotated[bool, typer.Option("--version")] = False) -> None:
    if version:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as version_of

        session: Session = ctx.obj
        try:
            session.console.line(f"metnos {version_of('metnos')}")
        except PackageNotFoundError:
            session.console.line("metnos")
        raise typer.Exit(0)
    _help_alone(ctx)


def _help_alone(ctx: typer.Context) -> None:
    """A group without a command shows what there is."""
    if ctx.invoked_subcommand is None:
        session: Session = ctx.obj
        session.console.line(ctx.get_help())
