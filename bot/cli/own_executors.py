"""`metnos executors new|test`: writing a program of one's own, and trying its examples."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.lines import as_plain, own_command, short_path
from bot.cli.output import BAD_SETTING, FAULT, Console, Session

if TYPE_CHECKING:
    from core.catalog.loader import LoadedExecutor
    from core.config import Settings
    from core.execution.births import Born


def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    into: Annotated[Path, typer.Option("--into", metavar="FOLDER")] = Path(),
) -> int:
    """Make a folder NAME with a manifest and code whose example passes, to be changed."""
    session: Session = ctx.obj
    console = session.console
    from core.catalog.loader import CatalogLoader
    from core.catalog.nursery import make
    from core.errors import CatalogError

    if name in CatalogLoader.of(session.settings).current().executors:
        console.note("cli.executors.exists", name=name)
        return BAD_SETTING
    try:
        made = make(into, name)
    except CatalogError:
        from core.vocabulary import OBJECTS, QUALIFIERS, VERBS

        console.note("cli.executors.bad_name", name=name)
        console.note(
            "cli.executors.words",
            verbs=", ".join(sorted(VERBS)),
            objects=", ".join(sorted(OBJECTS)),
            qualifiers=", ".join(sorted(QUALIFIERS)),
        )
        return BAD_SETTING
    except FileExistsError:
        console.note("cli.executors.folder_exists", path=short_path(into / name))
        return BAD_SETTING
    except OSError as exc:
        console.note("cli.executors.no_folder", path=short_path(into / name), why=exc.strerror)
        return FAULT
    for path in made:
        console.line(short_path(path))
    place = os.path.join(".", os.path.relpath(into / name))  # noqa: PTH118 - as one types it
    for key, words in (("next_test", "test"), ("next_sign", "sign"), ("next_use", "chat")):
        command = "chat" if words == "chat" else f"executors {words} {place}"
        console.tell(f"cli.executors.{key}", command=own_command(command))
    return 0


def try_examples(
    ctx: typer.Context,
    which: Annotated[list[str] | None, typer.Argument(metavar="NAME_OR_FOLDER")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Try the examples of these executors, of all of the home when none is named. 1 when one does
    not hold."""
    session: Session = ctx.obj
    found = _chosen(session, which or [])
    return FAULT if found is None else try_births(session, found, as_json=as_json)


def try_births(session: Session, executors: list[LoadedExecutor], *, as_json: bool = False) -> int:
    """Run birth tests in the cage and tell them, one line an executor, one more for each example
    that does not hold. 1 when there is one."""
    console = session.console
    results: list[dict[str, Any]] = []
    failed = examples = 0

    def tell(name: str, born: list[Born]) -> None:
        nonlocal failed, examples
        wrong = [one for one in born if not one.ok]
        failed, examples = failed + len(wrong), examples + len(born)
        results.append(
            {
                "name": name,
                "ok": not wrong,
                "examples": [
                    as_plain({"name": b.example, "why": b.why}) | {"ok": b.ok} for b in born
                ],
            }
        )
        if as_json:
            return
        console.line(f"{'✗' if wrong else '✓'} {name} ({len(born) - len(wrong)}/{len(born)})")
        for one in wrong:
            console.line(f"    {one.example}: {one.why}")

    asyncio.run(_births(session.settings, executors, tell))
    if as_json:
        console.json({"ok": not failed, "examples": examples, "executors": results})
    elif results:
        key = "cli.executors.births_failed" if failed else "cli.executors.births_hold"
        console.tell(key, count=failed or examples)
    return FAULT if failed else 0


async def _births(settings: Settings, executors: list[LoadedExecutor], tell: Any) -> None:
    from core.catalog.loader import CatalogLoader
    from core.execution.births import births
    from core.execution.cage.process import ProcessCage

    sdk = CatalogLoader.of(settings).current().sdk
    cage = ProcessCage(unsafe=settings.metnos_unsafe_no_cage)
    try:
        for executor in executors:
            tell(executor.name, [born async for born in births(executor, sdk, cage, settings)])
    finally:
        cage.close()


def _chosen(session: Session, which: list[str]) -> list[LoadedExecutor] | None:
    """The executors that are meant; None when one is not, which was said."""
    console: Console = session.console
    from core.catalog.loader import CatalogLoader
    from core.catalog.nursery import loaded
    from core.errors import CatalogError

    catalog = CatalogLoader.of(session.settings).current()
    if not which:
        return list(catalog.executors.values())
    found = []
    for one in which:
        if one in catalog.executors:
            found.append(catalog.executors[one])
        elif os.sep in one or Path(one).is_dir():
            try:
                found.append(loaded(Path(one).absolute()))
            except CatalogError as exc:
                console.note_line(console.sentence(exc))
                return None
        else:
            console.note("cli.executors.unknown", name=one)
            return None
    return found
