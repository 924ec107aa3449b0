"""`metnos plans`: what is remembered, why it served last or did not, and taking it away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bot.cli import plans_merit
from bot.cli.beside import read_memory, read_store, write_memory
from bot.cli.lines import table
from bot.cli.output import FAULT, Console, Session, is_asked
from bot.prompt import typed
from core.levels.reuse import serves

if TYPE_CHECKING:
    from core.config import Settings
    from core.store.plan_cache import StoredPlan

_SHOWN_REQUEST = 60

Number = Annotated[int, typer.Argument(metavar="NUMBER")]
Layer = Annotated[Literal["l0", "l1", "all"], typer.Option("--layer")]
OneLayer = Annotated[Literal["l0", "l1"], typer.Option("--layer")]
AsJson = Annotated[bool, typer.Option("--json")]


def list_plans(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 50,
    as_json: AsJson = False,
) -> int:
    """The plans in memory: those pinned first, then the last used; then those that serve by
    merit, and what is to be avoided."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import plan_cache

    found = read_memory(settings, lambda tx: plan_cache.listed(tx, limit=limit))
    merit, avoided = plans_merit.found(settings, limit)
    names = _names(settings)
    if as_json:
        own = [{"layer": "l0", **_as_data(plan, names)} for plan in found]
        console.json([*own, *plans_merit.as_data(merit, avoided)])
        return 0
    if not (found or merit or avoided):
        console.tell("cli.plans.none")
    for line in table([_row(console, plan, names) for plan in found]):
        console.line(line)
    plans_merit.tell(console, merit, avoided, names)
    return 0


def show(ctx: typer.Context, number: Number, as_json: AsJson = False) -> int:
    """One plan whole: its steps, how it is found again, and why it last served or did not."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import plan_cache

    found = read_memory(settings, lambda tx: plan_cache.get(tx, number))
    if found is None:
        console.note("cli.plans.unknown", number=number)
        return FAULT
    names = _names(settings)
    if as_json:
        console.json(
            {
                **_as_data(found, names),
                "plan": found.lesson.plan.to_json(),
                "values": [text for _, text in found.lesson.values],
                "why_exact": found.lesson.why_exact or None,
                "turn": found.turn_id,
            }
        )
        return 0
    name = names.get(found.actor_id, found.actor_id[:8])
    console.tell("cli.plans.head", number=found.id, name=name, request=found.lesson.text)
    console.tell(f"cli.plans.{'approved' if found.approved else 'learnt'}", when=_learnt(
        console, settings, found))  # fmt: skip
    console.tell("cli.plans.serves", how=console.say(f"memory.serves.{serves(found.lesson)}"))
    console.tell("cli.plans.last", why=why_of(console, found.why))
    for place, step in enumerate(found.lesson.plan.steps, start=1):
        console.line(f"  {place} {step.tool} {_brief(step.args)}".rstrip())
    return 0


def approve(
    ctx: typer.Context, number: Number, off: Annotated[bool, typer.Option("--off")] = False
) -> int:
    """Pin a plan so that it does not age out, or take that back with `--off`."""
    session: Session = ctx.obj
    console = session.console
    from core.store import plan_cache

    if not write_memory(session.settings, lambda tx: plan_cache.approve(tx, number, not off)):
        console.note("cli.plans.unknown", number=number)
        return FAULT
    console.tell("cli.plans.unpinned" if off else "cli.plans.pinned", number=number)
    return 0


def delete(ctx: typer.Context, number: Number, layer: OneLayer = "l0") -> int:
    """Forget one plan: the next time its request is planned anew. `--layer l1`: one of those that
    serve by merit."""
    session: Session = ctx.obj
    console = session.console
    from core.store import autopath, plan_cache

    delete_one = autopath.delete if layer == "l1" else plan_cache.delete
    if not write_memory(session.settings, lambda tx: delete_one(tx, number)):
        console.note("cli.plans.unknown", number=number)
        return FAULT
    console.tell("cli.plans.deleted", number=number)
    return 0


def flush(
    ctx: typer.Context,
    yes: Annotated[bool, typer.Option("--yes")] = False,
    layer: Layer = "all",
) -> int:
    """Forget all plans, or those of one layer, after the word that the question names, or with
    `--yes`."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.store import plan_cache

    approved, learnt = (0, 0) if layer == "l1" else read_memory(settings, plan_cache.count)
    merit = 0 if layer == "l0" else plans_merit.count(settings)
    if not approved + learnt + merit:
        console.tell("cli.plans.none")
        return 0
    if not yes:
        if not is_asked():
            console.note("cli.plans.flush_needs_yes")
            return FAULT
        word = console.say("cli.plans.flush_word")
        prompt = console.say(
            "cli.plans.flush_ask", count=approved + learnt + merit, approved=approved
        )
        try:
            answer = typed(input, f"{prompt} ")
        except EOFError:
            answer = ""
        if answer.strip().casefold() != word.casefold():
            console.note("cli.plans.flush_left")
            return FAULT
    gone = 0 if layer == "l1" else write_memory(settings, plan_cache.flush)
    gone += 0 if layer == "l0" else plans_merit.flush(settings)
    console.tell("cli.plans.flushed", count=gone)
    return 0


def why_of(console: Console, why: str) -> str:
    """What the last look-up of a plan came to, in words."""
    key = f"memory.why.{why or 'never'}"
    return console.say(key if console.texts.has(key, console.lang) else "memory.why.other")


def _row(console: Console, plan: StoredPlan, names: dict[str, str]) -> tuple[str, ...]:
    text = plan.lesson.text
    shown = text if len(text) <= _SHOWN_REQUEST else text[: _SHOWN_REQUEST - 1].rstrip() + "…"
    return (
        str(plan.id),
        "⚡" if plan.approved else "·",
        names.get(plan.actor_id, plan.actor_id[:8]),
        console.say("cli.plans.uses", count=plan.uses),
        why_of(console, plan.why),
        f"«{shown}»",
    )


def _learnt(console: Console, settings: Settings, plan: StoredPlan) -> str:
    return console.texts.datetime(plan.learnt_at, console.lang, settings.metnos_tz)


def _brief(args: Any) -> str:
    import json

    return json.dumps(args, ensure_ascii=False) if args else ""


def _names(settings: Settings) -> dict[str, str]:
    from core.store import actors

    people = read_store(settings, actors.list_actors)
    return {person.id: person.display_name for person in people}


def _as_data(plan: StoredPlan, names: dict[str, str]) -> dict[str, object]:
    return {
        "id": plan.id,
        "actor": plan.actor_id,
        "name": names.get(plan.actor_id),
        "lang": plan.lang,
        "request": plan.lesson.text,
        "tools": [step.tool for step in plan.lesson.plan.steps],
        "serves": serves(plan.lesson),
        "approved": plan.approved,
        "uses": plan.uses,
        "why": plan.why or None,
        "learnt_at": plan.learnt_at.isoformat(),
        "used_at": plan.used_at.isoformat() if plan.used_at else None,
    }
