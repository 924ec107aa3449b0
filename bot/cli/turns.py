"""`metnos turns`: what was asked, how it ended, and by which steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.beside import read_store
from bot.cli.lines import table
from bot.cli.output import FAULT, Console, Session

if TYPE_CHECKING:
    from core.config import Settings
    from core.store.turns import StoredTurn

_SHOWN_ID = 8
_SHOWN_REQUEST = 60


def list_turns(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 20,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """The newest turns of everybody, newest first."""
    session: Session = ctx.obj
    console = session.console
    from core.store import turns

    found = read_store(session.settings, lambda tx: turns.list_turns(tx, limit))
    if as_json:
        console.json([_summary(turn) for turn in found])
        return 0
    if not found:
        console.tell("cli.turns.none")
    rows: list[tuple[str, ...]] = [
        (
            turn.id[:_SHOWN_ID],
            f"{turn.started_at.astimezone(session.settings.zone):%Y-%m-%d %H:%M}",
            _ended(console, turn),
            _on_one_line(_asked(console, turn)),
        )
        for turn in found
    ]
    for line in table(rows):
        console.line(line)
    return 0


def show(
    ctx: typer.Context,
    turn: Annotated[str, typer.Argument(metavar="TURN")],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """One turn by its id or the beginning of it (4 characters): request, steps, answer."""
    session: Session = ctx.obj
    console = session.console
    from core.store import turns

    found = read_store(session.settings, lambda tx: turns.get(tx, turn))
    if found is None:
        console.note("cli.turns.unknown", id=turn)
        return FAULT
    line = _line_of(session.settings, found)
    if as_json:
        console.json({**_summary(found), "answer": found.answer, "log": dict(line)})
        return 0
    _show(console, session.settings, found, line)
    return 0


def _show(console: Console, settings: Settings, turn: StoredTurn, line: Mapping[str, Any]) -> None:
    when = console.texts.datetime(turn.started_at, console.lang, settings.metnos_tz)
    console.tell("cli.turns.head", id=turn.id, when=when)
    console.tell("cli.turns.request", text=_asked(console, turn))
    seconds = 0.0 if turn.ended_at is None else (turn.ended_at - turn.started_at).total_seconds()
    console.tell("cli.turns.end", kind=_ended(console, turn), seconds=round(seconds, 1))
    if line:
        console.tell(
            "cli.turns.cost",
            model=line.get("model") or "-",
            count=line.get("model_calls", 0),
            tokens=line.get("tokens_in", 0) + line.get("tokens_out", 0),
        )
    for step in line.get("steps", ()):
        sign = "✓" if step.get("ok") else "✗"
        why = f" {step['error_class']}" if step.get("error_class") else ""
        ms = round(step.get("latency_ms") or 0)
        console.line(f"  {step.get('number')} {sign} {step.get('tool')}{why} ({ms} ms)")
    if turn.answer:
        console.line()
        console.line(turn.answer)


def _ended(console: Console, turn: StoredTurn) -> str:
    """How it ended, or what it waits for, in a word."""
    open_ = "waiting" if turn.state == "suspended" else "running"
    kind = turn.final_kind.value if turn.final_kind else open_
    return console.say(f"console.kind.{kind}").lower()


def _asked(console: Console, turn: StoredTurn) -> str:
    """The request in its words, or that they were forgotten."""
    return turn.request or console.say("cli.turns.forgotten")


def _summary(turn: StoredTurn) -> dict[str, Any]:
    return {
        "id": turn.id,
        "conversation": turn.conversation,
        "actor": turn.actor_id,
        "lang": turn.lang,
        "request": turn.request,
        "state": turn.state,
        "final_kind": turn.final_kind.value if turn.final_kind else None,
        "started_at": turn.started_at.isoformat(),
        "ended_at": turn.ended_at.isoformat() if turn.ended_at else None,
    }


def _line_of(settings: Settings, turn: StoredTurn) -> Mapping[str, Any]:
    """The line of the turn log, from the store while it is not logged yet; else empty."""
    from core.store.turn_log import TurnLog, read_lines

    if turn.log_line or turn.log_day is None:
        return turn.log_line
    path = TurnLog(settings.metnos_home / "turns").path_of(turn.log_day)
    lines = [
        line
        for line in read_lines(path, containing=turn.id.encode())
        if line.get("turn_id") == turn.id
    ]
    return lines[-1] if lines else {}


def _on_one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_REQUEST else line[: _SHOWN_REQUEST - 1] + "…"
