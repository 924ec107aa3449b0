"""Undo of what a step made elsewhere: deleted by its id, by the tool that the manifest names."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.catalog.manifest import parse_manifest
from core.catalog.release import with_files
from core.errors import ManifestInvalid
from core.messages import TurnClosed
from core.store import effects
from core.store.effects import UNDO_LAST_TURN, EffectState
from tests.support.executors import home_settings, manifest_toml, signed_executor
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule

OLD = {"evt-old": {"name": "vecchio", "version": "v9"}}
ITALIAN = {"lang": "it"}
REQUEST = "prova: crea gli eventi nel calendario"

STORE = """
import json

PATH = {path!r}


def load():
    with open(PATH) as file:
        return json.load(file)


def save(events):
    with open(PATH, "w") as file:
        json.dump(events, file)
"""
CREATE = (
    STORE
    + """

def run(call):
    events = load()
    made = []
    for name in ("cena", "pranzo"):
        key = "evt-" + name
        events[key] = {{"name": name, "version": "v1"}}
        made.append({{"ok": True, "id": key, "name": name, "version": "v1"}})
    save(events)
    return {{"ok": True, "entries": made}}


def preview(call):
    return {{"targets": [PATH], "count": 2, "undo": [{{"do": "delete_by_id"}}]}}
"""
)
DELETE = (
    STORE
    + """

def run(call):
    events = load()
    with open(PATH + ".calls", "a") as file:
        file.write(json.dumps(call.args) + "\\n")
    for key in call.args["ids"]:
        del events[key]
    save(events)
    return {{"ok": True, "entries": [{{"ok": True, "id": key}} for key in call.args["ids"]]}}


def preview(call):
    events = load()
    return {{
        "targets": call.args["ids"],
        "count": len(call.args["ids"]),
        "before": [
            {{"id": key, "exists": key in events, "version": events.get(key, {{}}).get("version")}}
            for key in call.args["ids"]
        ],
    }}
"""
)
IDS = """[args.properties.ids]
type = "array"
items = { type = "string" }
description = { it = "Gli id.", en = "The ids." }
x-metnos-type = "free"
"""
BY_ID = 'reversible = true\nundo = "delete_by_id"\nundo_tool = "delete_events"\n'


@pytest.fixture
def calendar(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    path = tmp_path / "notes" / "calendar.json"
    path.write_text(json.dumps(OLD), encoding="utf-8")
    return path


@pytest.fixture
async def house(tmp_path: Path, calendar: Path) -> AsyncIterator[House]:
    rules = [
        Rule(user="crea gli eventi", after=0, calls=[("create_events", {})]),
        Rule(user="crea gli eventi", after=1, text="Fatto."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        settings = home_settings(tmp_path)
        for name, code, top, args in (
            ("create_events", CREATE, BY_ID, ""),
            ("delete_events", DELETE, "", IDS),
        ):
            manifest = manifest_toml(
                name, effect="checkable", top=top, args=args, right="fs:write"
            )
            signed_executor(settings, manifest, code.format(path=str(calendar)))
        yield house


def events_in(calendar: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(calendar.read_text(encoding="utf-8"))
    return found


def calls_of(calendar: Path) -> list[dict[str, Any]]:
    path = calendar.with_name(calendar.name + ".calls")
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if path.exists()
        else []
    )


async def created(house: House, calendar: Path) -> TurnClosed:
    closed = await ask(house, REQUEST, data=ITALIAN)
    assert set(events_in(calendar)) == {"evt-old", "evt-cena", "evt-pranzo"}, closed.reply.plain
    assert [b.label for row in closed.reply.buttons for b in row] == ["↩️ Annulla"]
    return closed


async def test_undo_deletes_by_id_what_the_turn_made_newest_first(
    house: House, calendar: Path
) -> None:
    await created(house, calendar)

    end = await ask(house, "annulla", data=ITALIAN)

    assert set(events_in(calendar)) == {"evt-old"}
    assert [call["ids"] for call in calls_of(calendar)] == [["evt-pranzo"], ["evt-cena"]]
    assert "Eliminato, perché prima non c'era: pranzo, cena" in end.reply.plain
    async with house.stores.main.read() as tx:
        [row] = await effects.of_turn(tx, end.turn_id)
    assert (row.tool, row.state) == (UNDO_LAST_TURN, EffectState.DONE)


async def test_undo_by_id_twice_is_a_message(house: House, calendar: Path) -> None:
    await created(house, calendar)
    await ask(house, "annulla", data=ITALIAN)

    end = await ask(house, "annulla", data=ITALIAN)

    assert "già annullata" in end.reply.plain
    assert len(calls_of(calendar)) == 2


async def test_what_changed_since_stays_and_the_rest_goes(house: House, calendar: Path) -> None:
    await created(house, calendar)
    events = events_in(calendar)
    events["evt-cena"]["version"] = "v2"
    calendar.write_text(json.dumps(events), encoding="utf-8")

    end = await ask(house, "annulla", data=ITALIAN)

    assert set(events_in(calendar)) == {"evt-old", "evt-cena"}
    assert "• cena: è cambiato nel frattempo" in end.reply.plain
    assert [call["ids"] for call in calls_of(calendar)] == [["evt-pranzo"]]


async def test_what_is_gone_already_needs_no_deleting(house: House, calendar: Path) -> None:
    await created(house, calendar)
    calendar.write_text(json.dumps(OLD), encoding="utf-8")

    end = await ask(house, "annulla", data=ITALIAN)

    assert "Tutto è già com'era" in end.reply.plain
    assert calls_of(calendar) == []


async def test_after_thirty_days_nothing_is_deleted(house: House, calendar: Path) -> None:
    await created(house, calendar)
    late = timedelta(days=31).total_seconds()
    async with house.stores.main.write() as tx:
        await tx.execute("UPDATE effects SET started_at = started_at - :late", {"late": late})

    end = await ask(house, "annulla", data=ITALIAN)

    assert "non si può annullare" in end.reply.plain
    assert len(events_in(calendar)) == 3


async def test_without_the_deleting_tool_nothing_is_done_and_that_is_said(
    house: House, calendar: Path, tmp_path: Path
) -> None:
    await created(house, calendar)
    (tmp_path / "home" / "executors" / "delete_events" / "manifest.sig").unlink()

    end = await ask(house, "annulla", data=ITALIAN)

    assert len(events_in(calendar)) == 3
    assert end.error is not None
    async with house.stores.main.read() as tx:
        [row] = await effects.of_turn(tx, end.turn_id)
    assert row.state is EffectState.FAILED


@pytest.mark.parametrize(
    "top",
    [
        'reversible = true\nundo = "delete_by_id"\n',
        'reversible = true\nundo = "delete_created"\nundo_tool = "delete_events"\n',
        'undo_tool = "delete_events"\n',
    ],
)
def test_manifest_names_the_deleting_tool_with_that_contract_and_no_other(top: str) -> None:
    text = manifest_toml("create_events", effect="keyed", top=top, right="fs:write")

    with pytest.raises(ManifestInvalid) as raised:
        parse_manifest(with_files(text.encode(), {"main.py": b"x"}), folder="create_events")

    assert "undo" in raised.value.detail
