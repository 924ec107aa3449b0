"""The bundled model: loading, the first plan, and plans whose prompt it has read before.

Optional, as it needs the model's file: `python -m tests.bench model --model FILE`.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bot.app import House, open_house
from core.llm.local_model import model_path
from core.store import actors
from core.store.turn_log import read_lines
from tests.bench.figures import resident_mb, spread, times
from tests.support.executors import signed_home
from tests.support.house import ask, house_settings

_FIRST = "che ore sono a Tokyo?"
_LATER = ("trova i file pdf nella cartella notes", "leggi le ultime tre righe di diary.md")
_OTHER_LANGUAGE = "what time is it in Lisbon?"


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Seconds and tokens; without `--model` only that it was left out."""
    parser = argparse.ArgumentParser(prog="model")
    parser.add_argument("--model", type=Path)
    path: Path | None = parser.parse_args(argv).model
    if path is None:
        return {"left_out": "give the model's file with --model"}
    return asyncio.run(_measured(path))


async def _measured(path: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="metnos-bench-") as folder:
        home = signed_home(Path(folder)).metnos_home
        place = model_path(home)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path.resolve())
        settings = house_settings(
            Path(folder),
            metnos_llm_base_url=None,
            metnos_llm_model="",
            metnos_engine="auto",
            metnos_most_tools=0,
        )
        async with open_house(settings, "bench") as house:
            server = house.server
            if server is None:
                raise RuntimeError("the file is not the bundled model, or xllamacpp is missing")
            async with house.stores.main.write() as tx:
                await actors.ensure_local_host(tx, house.clock)
            start = time.perf_counter()
            await server.start()
            load = time.perf_counter() - start
            cold = await _plan_ms(house, _FIRST)
            later = [await _plan_ms(house, text) for text in _LATER[: times(len(_LATER), least=1)]]
            other = await _plan_ms(house, _OTHER_LANGUAGE)
            # A greeting has a prompt of its own; does the planning prompt survive it?
            greeting = await _plan_ms(house, "ciao")
            after = await _plan_ms(house, _FIRST)
            pid = server.pid
            return {
                "load_s": round(load, 2),
                "cold_plan_ms": cold,
                "cached_plan": spread([ms / 1000 for ms in later]),
                "other_language_cold_ms": other,
                "greeting_ms": greeting,
                "plan_after_greeting_ms": after,
                "server_mb": resident_mb(pid) if pid else None,
            }


async def _plan_ms(house: House, text: str) -> float:
    await ask(house, text)
    lines = [
        line
        for day in house.settings.metnos_home.joinpath("turns").glob("*.jsonl")
        for line in read_lines(day)
    ]
    return float(lines[-1]["model_ms"])
