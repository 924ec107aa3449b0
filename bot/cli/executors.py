"""`metnos executors`: what the programs are, whether they may run, and signing one's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from bot.cli.lines import as_plain, table
from bot.cli.output import FAULT, Session


def list_executors(
    ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json")] = False
) -> int:
    """Those that run and those that are refused. 1 when there is none at all."""
    session: Session = ctx.obj
    console = session.console
    from core.catalog.loader import CatalogLoader

    catalog = CatalogLoader.of(session.settings).current()
    if as_json:
        console.json(
            [
                {
                    "name": name,
                    "version": executor.manifest.version,
                    "description": executor.manifest.description[console.lang],
                    "effect": executor.manifest.effect.value,
                    "runs": True,
                }
                for name, executor in catalog.executors.items()
            ]
            + [
                {"name": r.name, "runs": False, "reason": r.reason_code, "detail": r.detail}
                for r in catalog.rejected
            ]
        )
    else:
        rows: list[tuple[str, ...]] = [
            (name, e.manifest.version, e.manifest.description[console.lang])
            for name, e in catalog.executors.items()
        ]
        for line in table(rows):
            console.line(line)
        for rejection in catalog.rejected:
            console.tell(
                "cli.executors.refused", name=rejection.name, reason=console.reason(rejection)
            )
    if not catalog.executors and not catalog.rejected:
        console.note("cli.executors.none")
        return FAULT
    return 0


def show(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument()],
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """One executor: what it does, what it takes, what it may do, which bytes it is."""
    session: Session = ctx.obj
    console = session.console
    from core.catalog.loader import CatalogLoader

    catalog = CatalogLoader.of(session.settings).current()
    executor = catalog.executors.get(name)
    if executor is None:
        refused = [r for r in catalog.rejected if r.name == name]
        if refused:
            console.note("cli.executors.refused", name=name, reason=console.reason(refused[0]))
        else:
            console.note("cli.executors.unknown", name=name)
        return FAULT
    data = _description(executor.manifest, console.lang)
    if as_json:
        console.json(data)
        return 0
    console.line(f"{data['name']} {data['version']} ({data['author']})")
    console.line(data["description"])
    console.line()
    rows = [
        (arg, spec.get("type", ""), spec.get("description", ""))
        for arg, spec in data["arguments"].items()
    ]
    for line in table([tuple(map(str, row)) for row in rows]):
        console.line(f"  {line}")
    console.line()
    for key in ("effect", "capabilities", "requires", "timeout_s", "digest"):
        value = data.get(key)
        if value:
            text = ", ".join(value) if isinstance(value, list) else str(value)
            console.line(f"{console.say(f'cli.executors.{key}')}: {text}")
    return 0


def verify(
    ctx: typer.Context,
    tests: Annotated[bool, typer.Option("--tests")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Every executor from its files, thoroughly, with `tests` also its examples in the cage. 1
    when one is refused, a key does not count or an example does not hold."""
    session: Session = ctx.obj
    status = _verify(session, as_json=as_json and not tests)
    if not tests:
        return status
    from bot.cli.own_executors import try_births
    from core.catalog.loader import CatalogLoader

    found = list(CatalogLoader.of(session.settings).current().executors.values())
    return try_births(session, found, as_json=as_json) or status


def _verify(session: Session, *, as_json: bool) -> int:
    console = session.console
    from core.catalog.report import verify_report

    report = verify_report(session.settings)
    if as_json:
        console.json(
            {
                "ok": report.ok,
                "current": report.current,
                "key_problems": list(report.key_problems),
                "executors": [
                    as_plain(
                        {
                            "name": unit.name,
                            "version": unit.version,
                            "reason": unit.rejection and unit.rejection.reason_code,
                            "detail": unit.rejection and unit.rejection.detail,
                        }
                    )
                    | {"ok": unit.ok}
                    for unit in report.units
                ],
            }
        )
        return 0 if report.ok else FAULT
    for unit in report.units:
        if unit.rejection is None:
            console.line(f"✓ {unit.name} {unit.version}")
        else:
            console.line(f"✗ {unit.name}: {console.reason(unit.rejection)}")
    for problem in report.key_problems:
        console.tell("cli.executors.key_problem", detail=problem)
    if not report.units:
        console.note("cli.executors.none")
    elif not report.current:
        console.tell("cli.executors.not_current")
    return 0 if report.ok else FAULT


def sign(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument()],
    allow_downgrade: Annotated[bool, typer.Option("--allow-downgrade")] = False,
) -> int:
    """Sign an executor with the owner's key: of the home by its name, or from a folder, which is
    copied there."""
    session: Session = ctx.obj
    from core.catalog.staging import sign_folder

    in_home = os.sep not in name and (session.settings.executors_dir / name).is_dir()
    source = None if in_home else Path(name).absolute()
    if source is not None and not source.is_dir():
        session.console.note("cli.executors.nothing_to_sign", name=name)
        return FAULT
    name = source.name if source else name
    version = sign_folder(session.settings, name, source=source, allow_downgrade=allow_downgrade)
    session.console.tell("cli.executors.signed", name=name, version=version)
    return 0


def _description(manifest: Any, lang: str) -> dict[str, Any]:
    schema = manifest.tool_schema(lang)
    return {
        "name": manifest.name,
        "version": manifest.version,
        "author": manifest.author,
        "description": manifest.description[lang],
        "effect": manifest.effect.value,
        "reversible": manifest.reversible,
        "arguments": schema.get("properties", {}),
        "capabilities": [
            " ".join([capability.name, *capability.hints]) for capability in manifest.capabilities
        ],
        "requires": list(manifest.requires),
        "timeout_s": manifest.timeout_s,
        "digest": manifest.digest,
    }
