"""What is remembered, seen and cleared in the console: every kind of row, in both languages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from core.levels.champions import Status, Tally
from core.plan import Plan
from core.store import antis, autopath, observations, plan_cache
from core.store.observations import Observed
from tests.acceptance.test_console import remember
from tests.console.conftest import Console

PLAN = Plan.from_json({"steps": [{"tool": "find_files", "args": {"pattern": "*.pdf"}}]})
KINDS = ("all", "approved", "learnt", "active", "shadow", "demoted", "observations", "anti")


def seen(console: Console, number: int, **fields: Any) -> Observed:
    values: dict[str, Any] = {
        "turn_id": f"turn{number}",
        "actor_id": console.host.id,
        "lang": "it",
        "intent": f"intent{number}",
        "said": f"find file {number}",
        "cluster": "c",
        "plan": PLAN,
        "way": "find_files",
        "fingerprint": f"print{number}",
        "tools": "t",
        "families": "f",
        "level": "simple",
        "latency_ms": 40,
        "at": console.house.clock.now(),
    }
    return Observed(**{**values, **fields})


async def fill(console: Console) -> None:
    """One row of every kind."""
    now = console.house.clock.now()
    await remember(console, "che ore sono")
    pinned = await remember(console, "trova i pdf")
    async with console.house.stores.memory.write() as tx:
        await plan_cache.approve(tx, pinned, True)
        for number, status in enumerate(Status, start=1):
            await autopath.teach(tx, seen(console, number), Tally(up=number), status)
            await observations.record(tx, seen(console, number))
        await antis.strike(
            tx,
            console.host.id,
            "intent9",
            "print9",
            said="delete file",
            way="delete_files",
            fails=3,
            until=now + timedelta(days=30),
            now=now,
        )


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_every_kind_of_row_is_shown(console: Console, lang: str) -> None:
    await fill(console)
    await console.speak(lang)

    pages = {kind: await console.get(f"/praxis?kind={kind}") for kind in KINDS}
    detail = await console.get("/praxis/merit/1")

    assert {page.status_code for page in (*pages.values(), detail)} == {200}
    shown = {
        "all": ("che ore sono", "trova i pdf"),
        "approved": ("trova i pdf",),
        "learnt": ("che ore sono",),
        "active": ("find file 1",),
        "shadow": ("find file 2",),
        "demoted": ("find file 3",),
        "observations": ("find file 1", "find file 2", "find file 3", "/turns/turn3"),
        "anti": ("delete file",),
    }
    assert {k: all(word in pages[k].text for word in words) for k, words in shown.items()} == (
        dict.fromkeys(KINDS, True)
    )
    assert "che ore sono" not in pages["approved"].text
    assert "find_files" in detail.text


async def test_rows_are_deleted_and_what_is_kept_away_is_allowed(console: Console) -> None:
    await fill(console)

    first = await console.post("/praxis/plans/1/delete", kind="learnt")
    await console.post("/praxis/plans/2/pin", to="no")
    await console.post("/praxis/merit/1/delete", kind="active")
    await console.post("/praxis/observations/1/delete")
    await console.post("/praxis/lift", actor=console.host.id, intent="intent9", plan="print9")

    assert first.headers["location"] == "/praxis?kind=learnt&done=plan_deleted"
    async with console.house.stores.memory.read() as tx:
        assert await plan_cache.count(tx) == (0, 1)
        assert (await autopath.count(tx))[Status.ACTIVE] == 0
        assert await observations.count(tx) == 2
        assert await antis.count(tx, console.house.clock.now()) == 0
    told = await console.get(first.headers["location"])
    assert "La prossima volta si pianifica di nuovo" in told.text
    for path in ("/praxis/plans/99/pin", "/praxis/plans/x/delete", "/praxis/merit/-1/delete"):
        assert (await console.post(path)).status_code == 404
    assert (await console.get("/praxis/merit/99999999999999999999")).status_code == 404


@pytest.mark.parametrize(
    ("level", "plans", "merit"), [("l0", 0, 3), ("l1", 2, 0), ("all", 0, 0), ("", 2, 3)]
)
async def test_levels_are_emptied_after_the_word(
    console: Console, level: str, plans: int, merit: int
) -> None:
    await fill(console)

    await console.post("/praxis/flush", which=level, word="altro")
    async with console.house.stores.memory.read() as tx:
        assert await plan_cache.count(tx) == (1, 1)
    await console.post("/praxis/flush", which=level, word=" Svuota ")

    async with console.house.stores.memory.read() as tx:
        assert sum(await plan_cache.count(tx)) == plans
        assert sum((await autopath.count(tx)).values()) == merit
        assert (await observations.count(tx) > 0) is (merit > 0)
