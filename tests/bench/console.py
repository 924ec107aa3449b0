"""How long the pages of the console take over a long past.

A house with 100 000 turns of a year; every page of the menu, filters that fit nothing, the last
page of all, one turn. A request is made in process, from its first byte to the last of the page:
session, reading, drawing. `rows` is how much past there was.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.console import pages
from tests.bench.figures import spread, times
from tests.console.conftest import Console, open_console
from tests.support.past import GUESTS, Past, invent

TURNS, DAYS = 100_000, 365
BUDGET_MS = 50


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds of each page."""
    return asyncio.run(_run(times(TURNS, least=400), times(30, least=3)))


async def _run(turns: int, repeat: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_console(Path(folder)) as console:
            house = console.house
            begun = time.perf_counter()
            past = await invent(
                house.settings.metnos_home,
                house.stores,
                console.host.id,
                turns=turns,
                days=DAYS,
                now=house.clock.now(),
            )
            filled = round(time.perf_counter() - begun, 1)
            took = {path: await _measure(console, path, repeat) for path in _paths(past, turns)}
    return {"rows": turns, "filled_s": filled, "pages": took}


def _paths(past: Past, turns: int) -> list[str]:
    menu = [page.path for page in pages.ALL if page.nav is not None]
    return [
        *menu,
        f"/turns?page={max(1, turns // 50)}",
        f"/turns?actor={GUESTS[1][0]}&kind=error&source=fastpath",
        "/turns?kind=loop_break",
        "/effects?state=unknown",
        f"/turns/{past.resumed}",
        f"/turns/{past.newest}",
    ]


async def _measure(console: Console, path: str, repeat: int) -> dict[str, Any]:
    spent = []
    for number in range(repeat + 1):
        start = time.perf_counter()
        response = await console.get(path)
        if number:  # the first one compiles the template
            spent.append(time.perf_counter() - start)
        if response.status_code != 200:
            raise RuntimeError(f"{path} answered {response.status_code}")
    return spread(spent, budget_median_ms=BUDGET_MS, bytes=len(response.content))
