"""Looking through 200 000 files: how long it takes, what the person sees of it meanwhile, what the
call's process holds in RAM, and how soon `/stop` ends it.

The tree is made once. Each program walks it in the cage, with the places that are closed to tools;
then a running bot is asked to look for equal files in it, and told `/stop` while it does.
`cpu_s` is the processor time of a call's process: on a machine that does other things too, the
steadier figure.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from core.execution import paths
from tests.bench.figures import times
from tests.bench.peak import Peak, children_of
from tests.bench.town import Town, open_town
from tests.support.run_executor import TREE, call_document, read_program, read_sdk, shared_cage
from tests.support.scripted_model import Rule

_FILES, _PER_FOLDER = 200_000, 100
_ENDINGS = ("pdf", "txt", "jpg", "docx", "md", "csv")
_FOLDER = "archivio"
_FILM = 64 << 30  # without any block on the disk
_WAIT_S = 60.0
_WALKS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "find_files": ("base_path", {"patterns": ["*.pdf"]}),
    "find_dirs": ("base_path", {}),
    "list_dirs": ("path", {"recursive": True}),
    "get_files": ("paths", {}),
}
_RULES = (
    Rule(
        user="^copie",
        after=0,
        calls=[("find_files_hash", {"base_path": f"~/notes/{_FOLDER}"})],
    ),
    Rule(user="^copie", after=1, text="Copie trovate."),
)


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """`files`, the figures of each program, and of `/stop`."""
    count = times(_FILES, least=2000)
    with open_town(1, _RULES) as town:
        tree = town.world.notes / _FOLDER
        begun = time.perf_counter()
        _grow(tree, count)
        made = round(time.perf_counter() - begun, 1)
        walks = {name: asyncio.run(_walk(name, tree, town.world.home)) for name in _WALKS}
        for number in (1, 2):  # what looks for copies is busy with them for a while
            with (tree / f"film {number}.mkv").open("wb") as film:
                film.truncate(_FILM)
        pid, _ = town.start()
        stopped = [_stop(town, pid, number) for number in range(times(3, least=1))]
    return {
        "files": count,
        "made_s": made,
        **walks,
        "budget_s": 3,
        "stop": {
            "child_ended_s": max(one["child_ended_s"] for one in stopped),
            "told_s": max(one["told_s"] for one in stopped),
            "lines_before": min(one["lines"] for one in stopped),
            "budget_s": 2,
        },
        "load_average": os.getloadavg()[0],
    }


def _grow(top: Path, count: int) -> None:
    """Files of a few bytes, a hundred in a folder, ten folders in one above."""
    for first in range(0, count, _PER_FOLDER):
        number = first // _PER_FOLDER
        folder = top / f"anno {number // 100:02}" / f"mese {number // 10 % 10}" / f"{number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        for one in range(first, min(count, first + _PER_FOLDER)):
            name = f"Documento {one:06}.{_ENDINGS[one % len(_ENDINGS)]}"
            (folder / name).write_bytes(b"x" * (1 + one % 1000))


async def _walk(name: str, tree: Path, home: Path) -> dict[str, Any]:
    where, more = _WALKS[name]
    target: Any = [str(tree)] if where == "paths" else str(tree)
    scope = paths.Scope(
        roots=(str(tree),), home=str(home.parent), product_home=str(home), workspace=str(home)
    )
    document = call_document(
        name, {where: target, **more}, roots=[tree], closed=paths.closed_places(scope)
    )
    told: list[int | None] = []
    spent, used, peak = [], [], Peak(_waiting, every_s=0.02)
    for _ in range(times(3, least=1)):
        begun = time.perf_counter()
        with peak:
            seen = await shared_cage().run(
                read_program(TREE / name),
                read_sdk(),
                document,
                on_progress=lambda done, _: told.append(done),
            )
        spent.append(time.perf_counter() - begun)
        used.append(peak.cpu_s)
        assert seen.ok, seen
    return {
        "median_s": round(median(spent), 2),
        "cpu_s": round(median(used), 2),
        "entries": len(seen.items() or ()),
        "available": seen.metadata.get("available"),
        "progress": len(told) // len(spent),
        "child_mb": round(peak.kib / 1024, 1),
        "own_mb": round(peak.own_kib / 1024, 1),
    }


def _waiting() -> tuple[int, ...]:
    return shared_cage().zygote_pids


def _stop(town: Town, pid: int, number: int) -> dict[str, float]:
    """Ask for equal files, wait until the person sees how far that is, and say /stop."""
    name = town.names[0]
    chat, events = town.telegram.names[name], town.telegram.tg.events
    since = len(events)

    def shown() -> list[str]:
        spoken = [e for e in events[since:] if e["kind"] in {"send", "edit"}]
        texts = [
            (e.get("message") or {}).get("text") or "" for e in spoken if e["chat_id"] == chat
        ]
        return [text for text in texts if text]

    town.say(name, f"copie {number}")
    _until(lambda: any(any(map(str.isdigit, text)) for text in shown()), town)
    calls = [call for child in children_of(pid) for call in children_of(child)]
    assert calls, "no call runs"
    lines, begun = len(shown()), time.perf_counter()
    town.say(name, "/stop")
    _until(lambda: not any(Path(f"/proc/{call}").exists() for call in calls), town)
    ended = time.perf_counter() - begun
    _until(lambda: "fermato" in " ".join(shown()[lines:]).lower(), town)
    return {
        "child_ended_s": round(ended, 3),
        "told_s": round(time.perf_counter() - begun, 3),
        "lines": lines,
    }


def _until(test: Callable[[], bool], town: Town) -> None:
    end = time.monotonic() + _WAIT_S
    while not test():
        if time.monotonic() > end:
            raise TimeoutError(
                f"it did not happen\n{town.telegram.transcript()}\n{town.telegram.tail()}"
            )
        time.sleep(0.005)
