"""The bundled model itself, over the server that ships: requests planned, run and answered.

Marked `llm`: run with `-m llm`. METNOS_TEST_MODEL names the model's file; without it the one that
`metnos model pull` keeps in the home is taken, and without that the tests are skipped.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.app import House, open_house
from core.config import load_settings
from core.llm.local_model import find_model, model_path
from core.llm.local_server import runtime_missing
from core.messages import FinalKind, TurnClosed
from core.store import actors
from core.store.turn_log import read_lines
from tests.executors.web_server import PAGE, web_server
from tests.support.house import ask, house_settings

pytestmark = [pytest.mark.llm, pytest.mark.timeout(900)]


def _model() -> Path | None:
    named = os.environ.get("METNOS_TEST_MODEL")
    return Path(named) if named else find_model(load_settings().metnos_home)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    model = _model()
    if model is None or runtime_missing():
        pytest.skip("the bundled model or its runtime is not here")
    settings = house_settings(
        tmp_path, metnos_llm_base_url=None, metnos_llm_model="", metnos_engine="auto"
    )
    place = model_path(settings.metnos_home)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(model.resolve())
    async with open_house(settings, "test") as opened:
        async with opened.stores.main.write() as tx:
            await actors.ensure_local_host(tx, opened.clock)
        yield opened


def _said(closed: TurnClosed) -> str:
    return "\n".join(block.text for block in closed.reply.blocks)


def _tools(house: House) -> list[list[str]]:
    """The tools of every turn of the log."""
    logs = sorted((house.settings.metnos_home / "turns").glob("*.jsonl"))
    return [[step["tool"] for step in line["steps"]] for log in logs for line in read_lines(log)]


async def test_bundled_model_reads_asks_the_time_and_talks(house: House, tmp_path: Path) -> None:
    diary = tmp_path / "notes" / "diario.md"
    diary.write_text("lunedì pioggia\nmartedì sole\nmercoledì vento\ngiovedì neve\n")

    read = await ask(house, f"leggi il file {diary} e dimmi le ultime tre righe")
    now = await ask(house, "what time is it in Tokyo?")
    thanks = await ask(house, "grazie mille!")

    assert [closed.final_kind for closed in (read, now, thanks)] == [FinalKind.ANSWER] * 3
    assert "giovedì neve" in _said(read)
    assert "lunedì pioggia" not in _said(read)
    assert "Tokyo" in _said(now)
    assert _tools(house) == [["read_files"], ["get_now"], []]


async def test_bundled_model_fetches_and_saves(house: House, tmp_path: Path) -> None:
    target = tmp_path / "notes" / "p.html"
    with web_server() as server:
        page = server.url("/page")
        closed = await ask(
            house, f"scarica la pagina {page}, salvala in {target} e dimmi quanti byte"
        )

    assert closed.final_kind is FinalKind.ANSWER
    assert target.read_bytes() == PAGE
    assert _tools(house) == [["get_urls", "write_files"]]
