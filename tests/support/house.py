"""A whole house in a temporary home: real stores, executors and processes, a scripted model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.app import House, open_house
from core.config import Settings, load_settings
from core.messages import ChatAddress, Inbound, InboundKind, TurnClosed, TurnEvent
from core.store import actors
from tests.support.executors import prepare_home
from tests.support.scripted_model import Rule, ScriptedModel

LOCAL = ChatAddress("terminal", "local")


def house_settings(
    tmp_path: Path, *, base_url: str = "http://127.0.0.1:9/v1", **overrides: Any
) -> Settings:
    """Settings of a fresh home below `tmp_path`, with a folder `notes` among the roots."""
    notes = tmp_path / "notes"
    notes.mkdir(exist_ok=True)
    values: dict[str, Any] = {
        "metnos_home": tmp_path / "home",
        "metnos_lang": "it",
        "metnos_tz": "Europe/Rome",
        "metnos_llm_base_url": base_url,
        "metnos_llm_model": "scripted",
        "metnos_engine": "simple",
        # Scripts call tools that their requests do not speak of.
        "metnos_most_tools": 60,
        "metnos_files_roots": (notes,),
        "metnos_private_hosts": ("127.0.0.1",),
    }
    return load_settings(**{**values, **overrides})


@asynccontextmanager
async def open_scripted(
    tmp_path: Path, rules: Sequence[Rule], **overrides: Any
) -> AsyncIterator[tuple[House, ScriptedModel]]:
    """The house beside a scripted model server over HTTP."""
    model = ScriptedModel(list(rules))
    with model.running() as base_url:
        settings = house_settings(tmp_path, base_url=base_url, **overrides)
        prepare_home(settings.metnos_home)
        async with open_house(settings, "test") as house:
            async with house.stores.main.write() as tx:
                await actors.ensure_local_host(tx, house.clock)
            yield house, model


def inbound(text: str, *, id: str = "", address: ChatAddress = LOCAL, **fields: Any) -> Inbound:
    """What the person at the terminal says."""
    return Inbound(
        id=id or f"test:{text}:{datetime.now(UTC).timestamp()}",
        address=address,
        sender_id=fields.pop("sender_id", "local"),
        kind=fields.pop("kind", InboundKind.TEXT),
        text=text,
        received_at=datetime.now(UTC),
        **fields,
    )


async def events_of(house: House, said: Inbound) -> list[TurnEvent]:
    return [event async for event in house.turns.run(said)]


async def ask(house: House, text: str, **fields: Any) -> TurnClosed:
    """Say something and wait for the end of the turn."""
    events = await events_of(house, inbound(text, **fields))
    last = events[-1]
    assert isinstance(last, TurnClosed)
    return last


async def until(test: Callable[[], bool], *, seconds: float = 60) -> None:
    """Wait for something that another thread or process does."""
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.01)
