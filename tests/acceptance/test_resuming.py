"""Bar R11: turns that wait survive the death of the engine, and go on only with what they had.

Many conversations each wait for an answer of their own; the engine is killed; every answer resumes
the right turn. Where the program was changed or the right taken away meanwhile, a polite word and
no effect.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from bot.app import House, open_house
from core.messages import ChatAddress, FinalKind, InboundKind, TurnClosed, TurnEvent, TurnSuspended
from core.store import actors, effects
from tests.acceptance.lives import LINE, OLD, RULES
from tests.acceptance.scenes import repetitions
from tests.support.executors import home_settings, install_unit, tree_unit
from tests.support.house import events_of, house_settings, inbound
from tests.support.scripted_model import ScriptedModel
from tests.support.world import REPO

# What is answered, or happens before the answer.
KINDS = ("choice", "delete", "no", "withdrawn", "changed")
Buttons = dict[str, str]


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


async def say(house: House, number: int, text: str = "", **about: Any) -> TurnEvent:
    address = ChatAddress("terminal", f"c{number}")
    said = inbound(text, id=f"c{number}:{text or about}", address=address, **about)
    return (await events_of(house, said))[-1]


async def ask_all(home: Path, base_url: str, numbers: Iterable[int]) -> None:
    """Bring every conversation to its question, say the buttons, and die."""
    asked: dict[int, Buttons] = {}
    async with open_house(house_settings(home, base_url=base_url), "test") as house:
        async with house.stores.main.write() as tx:
            await actors.ensure_local_host(tx, house.clock)
        for number in numbers:
            name = f"chat{number}"
            (home / "notes" / f"{name}.txt").write_text(OLD, encoding="utf-8")
            wish = f"elimina {name}.txt"
            if kind_of(number) == "choice":
                wish = f"scrivi il colore di {name}.txt in {name}.md"
            last = await say(house, number, wish)
            assert isinstance(last, TurnSuspended), (number, last)
            asked[number] = {b.label: b.token for row in last.reply.buttons for b in row}
        print(json.dumps(asked), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def ask_and_die(home: Path, base_url: str, count: int) -> dict[int, Buttons]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.acceptance.test_resuming", str(home), base_url, str(count)],
        env={"PYTHONPATH": str(REPO), "PATH": os.defpath, "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    return {int(number): buttons for number, buttons in told.items()}


async def answer(house: House, number: int, buttons: Buttons) -> TurnClosed:
    wanted = {"choice": "verde", "no": "✋"}.get(kind_of(number), "✅")
    token = next(token for label, token in buttons.items() if label.startswith(wanted))
    last = await say(house, number, kind=InboundKind.CHOICE, data={"token": token})
    assert isinstance(last, TurnClosed), (number, last)
    return last


async def check(house: House, notes: Path, number: int, end: TurnClosed) -> None:
    """The answer came to its own turn, and did what it should and nothing else."""
    kind, name = kind_of(number), f"chat{number}"
    async with house.stores.main.read() as tx:
        journal = await effects.of_turn(tx, end.turn_id)
        row = await tx.fetch_one("SELECT request FROM turns WHERE id = :id", {"id": end.turn_id})
    assert row is not None
    assert name in row["request"]
    acts = kind in {"choice", "delete"}
    assert [one.state for one in journal] == (["done"] if acts else []), (number, kind)
    assert end.reply.plain.strip()
    if kind in {"changed", "withdrawn"}:
        assert end.final_kind is FinalKind.ERROR, (number, kind, end.reply.plain)
        assert "Traceback" not in end.reply.plain
    there = notes / f"{name}.txt"
    assert there.exists() == (kind != "delete"), (number, kind)
    written = notes / f"{name}.md"
    assert written.exists() == (kind == "choice"), (number, kind)
    if kind == "choice":
        assert written.read_text(encoding="utf-8") == LINE


@pytest.mark.timeout(900)
async def test_turns_that_wait_go_on_after_a_kill_or_politely_do_not(tmp_path: Path) -> None:
    count = repetitions(100, least=len(KINDS) * 2)
    model = ScriptedModel(list(RULES))
    seen: Counter[str] = Counter()
    notes = tmp_path / "notes"
    notes.mkdir()
    with model.running() as base_url:
        asked = await asyncio.to_thread(ask_and_die, tmp_path, base_url, count)
        assert len(asked) == count
        settings = house_settings(tmp_path, base_url=base_url)
        async with open_house(settings, "test") as house:
            for kind in KINDS:
                await _before(house, tmp_path, kind)
                for number in (n for n in asked if kind_of(n) == kind):
                    await check(house, notes, number, await answer(house, number, asked[number]))
                    seen[kind] += 1
                async with house.stores.main.write() as tx:
                    await tx.execute("UPDATE actors SET autonomy = 'supervised'")
    print(f"\nR11: {count} waiting turns, a kill, {sum(seen.values())} right; {dict(seen)}")
    assert sum(seen.values()) == count


async def _before(house: House, tmp_path: Path, kind: str) -> None:
    """What happens to the house before these questions are answered."""
    if kind == "withdrawn":
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE actors SET autonomy = 'read_only'")
    elif kind == "changed":
        files = tree_unit("delete_files")
        files["main.py"] += b"# another version\n"
        install_unit(home_settings(tmp_path), "delete_files", files)


if __name__ == "__main__":
    asyncio.run(ask_all(Path(sys.argv[1]), sys.argv[2], range(int(sys.argv[3]))))
