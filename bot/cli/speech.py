"""Help and usage errors of the command line in the person's language.

Commands are declared without words; their texts are `cli.help.<command>` and
`cli.help.<command>.<parameter>`, or `cli.help.option.<parameter>` for what several share.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from bot.cli.lines import visible
from bot.cli.output import BAD_SETTING, Console, Session


class SpokenCommand(TyperCommand):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_help(self, ctx, formatter)


class SpokenGroup(TyperGroup):
    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_help(self, ctx, formatter)

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order in which they were declared: setup first."""
        return list(self.commands)


def say_usage(console: Console, exc: TyperException) -> int:
    """Say what is wrong with the words of a command line; the exit status."""
    param = getattr(exc, "param", None)
    name = str(getattr(exc, "option_name", "") or (_name_of(param) if param else ""))
    key = {
        "NoSuchOption": "cli.usage.no_option",
        "MissingParameter": "cli.usage.missing",
        "BadParameter": "cli.usage.bad_value",
        "BadOptionUsage": "cli.usage.no_value",
    }.get(type(exc).__name__, "")
    if "No such command" in exc.message:
        key, name = "cli.usage.no_command", exc.message.split("'")[1]
    detail = visible(exc.message)
    if not key or not name:
        key = "cli.usage.other"
    ctx = getattr(exc, "ctx", None)
    help_command = f"{ctx.command_path if ctx else 'metnos'} --help"
    console.note(key, name=name, detail=detail)
    console.note("cli.usage.help", command=help_command)
    return BAD_SETTING


def _write_help(command: Any, ctx: Any, formatter: Any) -> None:
    session: Session = ctx.find_object(Session)
    console = session.console
    path = ".".join(ctx.command_path.split()[1:])
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    subcommands = command.list_commands(ctx) if isinstance(command, TyperGroup) else []
    pieces = [f"[{console.say('cli.help.word.options')}]"]
    pieces += [p.name.upper() if p.required else f"[{p.name.upper()}]" for p in arguments]
    pieces += [console.say("cli.help.word.command")] if subcommands else []
    prefix = console.say("cli.help.word.usage") + " "
    formatter.write_usage(ctx.command_path, " ".join(pieces), prefix=prefix)
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(console.say(f"cli.help.{path}" if path else "cli.help"))
    if arguments:
        with formatter.section(console.say("cli.help.word.arguments")):
            formatter.write_dl([(p.name.upper(), _help(console, path, p)) for p in arguments])
    options = [p for p in command.get_params(ctx) if p.param_type_name == "option"]
    with formatter.section(console.say("cli.help.word.option_list")):
        formatter.write_dl([(_spelling(p, ctx), _help(console, path, p)) for p in options])
    if subcommands:
        with formatter.section(console.say("cli.help.word.commands")):
            below = f"{path}." if path else ""
            formatter.write_dl(
                [(name, console.say(f"cli.help.{below}{name}")) for name in subcommands]
            )


def _help(console: Console, path: str, param: Any) -> str:
    own = f"cli.help.{path}.{param.name}"
    known = console.texts.has(own, console.lang)
    return console.say(own if known else f"cli.help.option.{param.name}")


def _spelling(param: Any, ctx: typer.Context) -> str:
    spelt = ", ".join([*param.opts, *param.secondary_opts])
    if getattr(param, "is_flag", False) or param.name == "help":
        return spelt
    kind = param.metavar or param.display_type(ctx).strip("<>")
    return f"{spelt} {kind if '|' in kind else kind.upper()}"


def _name_of(param: Any) -> str:
    return str(param.opts[0] if param.param_type_name == "option" else param.name.upper())
