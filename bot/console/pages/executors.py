"""The programs that may run, what each may touch, and which are refused and why; beside them the
tools of connected servers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.console.pages.servers import connected
from bot.console.ports import Outcome, Page, Shown, Visit
from core.catalog.loaded import LoadedExecutor
from core.execution.cage.packages import PackageMissing, resolve

LIFECYCLES = ("active", "candidate", "deprecated", "archived")


@dataclass(frozen=True, slots=True)
class Program:
    """`effect` is what it can do to the world (`console.effect.…`), `scopes` the rights it asks
    for, `missing` the packages it needs and that are not installed, `accounts` the kinds of
    account without which it is dormant."""

    name: str
    version: str
    author: str
    head: str
    description: str
    lifecycle: str
    effect: str
    tone: str
    reversible: bool
    scopes: tuple[str, ...]
    requires: tuple[str, ...]
    missing: tuple[str, ...]
    accounts: tuple[str, ...]
    arguments: tuple[tuple[str, str, bool, str], ...]
    timeout_s: float
    digest: str


async def listed(visit: Visit) -> Outcome:
    catalog = visit.house.loader.current()
    programs = [program_of(one, visit.lang) for one in catalog.executors.values()]
    return Shown(
        "executors.html",
        {
            "groups": [
                (state, found)
                for state in LIFECYCLES
                if (found := [one for one in programs if one.lifecycle == state])
            ],
            "refused": [
                {
                    "name": one.name,
                    "key": one.message_key,
                    "code": one.reason_code,
                    "detail": one.detail,
                }
                for one in catalog.rejected
            ],
            "servers": await connected(visit),
            "count": len(programs),
            "sdk": catalog.sdk.version,
            "signature": catalog.signature,
        },
    )


def program_of(executor: LoadedExecutor, lang: str) -> Program:
    """What a page tells of a program, in a language."""
    manifest = executor.manifest
    schema = manifest.tool_schema(lang)
    required = schema.get("required", ())
    return Program(
        name=manifest.name,
        version=manifest.version,
        author=manifest.author,
        head=manifest.head(lang),
        description=manifest.description.get(lang, ""),
        lifecycle=manifest.lifecycle,
        effect=manifest.effect.value,
        tone=_tone(manifest.effect.value, manifest.reversible),
        reversible=manifest.reversible,
        scopes=tuple(" ".join([one.name, *one.hints]) for one in manifest.capabilities),
        requires=manifest.requires,
        missing=tuple(one for one in manifest.requires if _is_missing(one)),
        accounts=tuple(sorted(kind.value for kind in manifest.needed_accounts)),
        arguments=tuple(
            (name, _type(spec), name in required, str(spec.get("description", "")))
            for name, spec in schema.get("properties", {}).items()
        ),
        timeout_s=manifest.timeout_s,
        digest=manifest.digest,
    )


def _type(spec: dict[str, Any]) -> str:
    found = spec.get("type", "")
    return " | ".join(map(str, found)) if isinstance(found, list) else str(found)


def _tone(effect: str, reversible: bool) -> str:
    if effect == "pure":
        return "calm"
    return "good" if reversible else "warn"


def _is_missing(package: str) -> bool:
    try:
        resolve((package,))
    except PackageMissing:
        return True
    return False


PAGES = (Page("/executors", listed, nav="console.nav.executors"),)
