"""`metnos plans calibrate`: how near what means the same lies by an embedder, measured."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bot.cli.beside import read_memory, write_memory
from bot.cli.output import FAULT, Console, Session

if TYPE_CHECKING:
    from core.config import Settings
    from core.levels.calibration import Pair
    from core.levels.vectors import Vector
    from core.llm.embedder import Embedder

Name = Literal["auto", "hashing", "e5", "endpoint"]


def calibrate(
    ctx: typer.Context,
    pairs: Annotated[Path | None, typer.Option("--pairs", metavar="FILE")] = None,
    embedder: Annotated[Name | None, typer.Option("--embedder")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Calibrate the embedder of the settings, or the one named: the floor below which requests are
    not near is measured on pairs and kept. Done again it takes the place of the one before."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.clock import SystemClock
    from core.levels.calibration import ENOUGH
    from core.levels.calibration import calibrate as measure
    from core.llm.embedder import EmbedderDown
    from core.store import embedder_floors

    chosen = _chosen(settings, embedder)
    if chosen is None:
        console.note(f"cli.plans.calibrate.{'off' if embedder is None else 'no_endpoint'}")
        return FAULT
    found = _pairs(console, settings, pairs)
    if found is None:
        return FAULT
    source, known = found
    decided = sum(one.is_decided for one in known)
    if sum(one.is_decided and one.same for one in known) < ENOUGH:
        console.note("cli.plans.calibrate.few", count=decided, least=ENOUGH)
        return FAULT
    try:
        vectors = asyncio.run(_vectors(chosen, known))
    except EmbedderDown as exc:
        console.note("cli.plans.calibrate.down", name=chosen.name, why=exc.detail)
        return FAULT
    result = measure(known, vectors)
    write_memory(
        settings,
        lambda tx: embedder_floors.keep(
            tx, chosen.name, result, source=source, now=SystemClock().now()
        ),
    )
    if as_json:
        console.json(
            {
                "embedder": chosen.name,
                "source": source,
                "pairs": result.pairs,
                "floor": result.floor,
                "lost": result.lost,
                "undecided": len(known) - decided,
                "others": result.others,
                "passed": result.passed,
            }
        )
        return 0
    console.tell(f"cli.plans.calibrate.from_{source}", count=result.pairs)
    console.tell("cli.plans.calibrate.floor", name=chosen.name, floor=round(result.floor, 3))
    console.tell("cli.plans.calibrate.lost", count=result.lost)
    if len(known) > decided:
        console.tell("cli.plans.calibrate.undecided", count=len(known) - decided)
    if result.others:
        console.tell("cli.plans.calibrate.passed", count=result.passed, of=result.others)
    return 0


def _chosen(settings: Settings, wanted: Name | None) -> Embedder | None:
    from core.llm.embedder import embedder_of

    if wanted == "endpoint" and settings.metnos_embed_base_url is None:
        return None
    return embedder_of(settings, wanted or "")


def _pairs(
    console: Console, settings: Settings, file: Path | None
) -> tuple[str, list[Pair]] | None:
    """Where the pairs come from, and they: those of the file; else of the plans in memory, when
    they make enough; else the ones that are shipped."""
    from core.levels.calibration import ENOUGH, pairs_in, pairs_of_plans, shipped_pairs
    from core.store import plan_cache

    if file is not None:
        try:
            return "file", pairs_in(file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            console.note("cli.plans.calibrate.no_text", file=str(file))
        except OSError as exc:
            console.note("cli.plans.calibrate.no_file", file=str(file), why=exc.strerror or "")
        except ValueError as exc:
            example = '{"a": "…", "b": "…", "reusable": true}'
            console.note(
                "cli.plans.calibrate.no_pair", file=str(file), line=str(exc), example=example
            )
        return None
    own = pairs_of_plans(read_memory(settings, plan_cache.texts_by_meaning))
    return ("plans", own) if len(own) >= ENOUGH else ("shipped", list(shipped_pairs()))


async def _vectors(embedder: Embedder, pairs: list[Pair]) -> dict[str, Vector]:
    from core.levels.calibration import texts_of
    from core.levels.nearness import close, embedded

    try:
        return await embedded(embedder, texts_of(pairs))
    finally:
        await close(embedder)
