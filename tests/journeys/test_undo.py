"""Taking back what was done last: real files, real cage, real stores, a scripted model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.messages import FinalKind, Role
from core.store import effects, pairing
from core.store.effects import UNDO_LAST_TURN, EffectState
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule


def rules(user: str, *steps: tuple[str, dict[str, Any]]) -> list[Rule]:
    calls = [Rule(user=user, after=n, calls=[step]) for n, step in enumerate(steps)]
    return [*calls, Rule(user=user, after=len(steps), text="Fatto.")]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    return folder


@pytest.fixture
async def house(tmp_path: Path, notes: Path) -> AsyncIterator[House]:
    scripted = [
        *rules("nota nuova", ("write_files", {"path": f"{notes}/a.md", "content": "nota nuova"})),
        *rules("sopra", ("write_files", {"path": f"{notes}/b.md", "content": "sopra"})),
        *rules("sposta", ("move_files", {"paths": [f"{notes}/b.md"], "dst": f"{notes}/c.md"})),
        *rules(
            "scrivi due volte",
            ("write_files", {"path": f"{notes}/d.md", "content": "scrivi"}),
            (
                "write_files",
                {"path": f"{notes}/d.md", "content": " due volte", "mode": "append"},
            ),
            ("move_files", {"paths": [f"{notes}/d.md"], "dst": f"{notes}/e.md"}),
        ),
        *rules(
            "archivia",
            ("move_files", {"paths": [f"{notes}/b.md", f"{notes}/x.md"], "dst": f"{notes}/box"}),
        ),
    ]
    async with open_scripted(tmp_path, scripted) as (house, _):
        yield house


async def journal_of(house: House, turn_id: str) -> list[effects.StoredEffect]:
    async with house.stores.main.read() as tx:
        return await effects.of_turn(tx, turn_id)


async def test_undo_of_a_new_file_takes_it_away_and_says_so(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    assert (notes / "a.md").exists()

    closed = await ask(house, "annulla")

    assert closed.final_kind is FinalKind.ANSWER
    assert not (notes / "a.md").exists()
    assert "a.md" in closed.reply.plain
    [row] = await journal_of(house, closed.turn_id)
    assert (row.tool, row.state) == (UNDO_LAST_TURN, EffectState.DONE)


async def test_undo_of_an_overwritten_file_brings_its_bytes_back(
    house: House, notes: Path
) -> None:
    (notes / "b.md").write_text("prima")
    await ask(house, f"scrivi sopra in {notes}/b.md")
    assert (notes / "b.md").read_text() == "sopra"

    closed = await ask(house, "/undo")

    assert (notes / "b.md").read_text() == "prima", closed.reply.plain


async def test_undo_of_a_move_moves_back(house: House, notes: Path) -> None:
    (notes / "b.md").write_text("prima")
    await ask(house, f"sposta {notes}/b.md in {notes}/c.md")
    assert not (notes / "b.md").exists()

    await ask(house, "Annulla l'ultima operazione, per favore")

    assert (notes / "b.md").read_text() == "prima"
    assert not (notes / "c.md").exists()


async def test_undo_of_several_steps_goes_newest_first(house: House, notes: Path) -> None:
    done = await ask(house, f"scrivi due volte in {notes}/d.md, poi muovi in {notes}/e.md")
    assert done.final_kind is FinalKind.ANSWER, done.reply.plain
    assert "due volte" in (notes / "e.md").read_text()

    closed = await ask(house, "undo that")

    assert sorted(p.name for p in notes.iterdir() if not p.name.startswith(".")) == [], (
        closed.reply.plain
    )


async def test_undo_twice_is_a_message_and_changes_nothing(house: House, notes: Path) -> None:
    (notes / "b.md").write_text("prima")
    await ask(house, f"scrivi sopra in {notes}/b.md")
    await ask(house, "annulla")

    closed = await ask(house, "annulla tutto")

    assert closed.final_kind is FinalKind.ANSWER
    assert "già annullata" in closed.reply.plain
    assert (notes / "b.md").read_text() == "prima"
    assert await journal_of(house, closed.turn_id) == []


async def test_undo_with_nothing_done_says_so_without_a_model(house: House) -> None:
    closed = await ask(house, "undo")

    assert "nothing to undo" in closed.reply.plain.lower() or "nulla" in closed.reply.plain


async def test_undo_leaves_alone_what_changed_since(house: House, notes: Path) -> None:
    for name in ("b.md", "x.md"):
        (notes / name).write_text(name)
    (notes / "box").mkdir()
    await ask(house, f"archivia {notes}/b.md e {notes}/x.md in {notes}/box")
    assert (notes / "box/b.md").exists()
    (notes / "box/x.md").write_text("di un altro")

    closed = await ask(house, "annulla")

    assert (notes / "b.md").read_text() == "b.md"
    assert (notes / "box/x.md").read_text() == "di un altro"
    assert not (notes / "x.md").exists()
    assert "x.md: è cambiato nel frattempo" in closed.reply.plain


async def test_undo_where_everything_changed_is_an_error_and_changes_nothing(
    house: House, notes: Path
) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    (notes / "a.md").write_text("ci ho messo mano")

    closed = await ask(house, "annulla")

    assert closed.final_kind is FinalKind.ERROR
    assert (notes / "a.md").read_text() == "ci ho messo mano"
    [row] = await journal_of(house, closed.turn_id)
    assert row.state is EffectState.FAILED


async def test_undo_of_a_guest_does_not_reach_the_hosts_turn(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    async with house.stores.main.write() as tx:
        code = await pairing.create_code(tx, Role.GUEST, house.clock)
        await pairing.redeem_code(tx, code, "terminal", "luca", "Luca", house.clock)

    closed = await ask(house, "annulla", sender_id="luca")

    assert (notes / "a.md").exists()
    assert "nulla" in closed.reply.plain
