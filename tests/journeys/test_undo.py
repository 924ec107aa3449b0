"""Taking back what was done last: real files, real cage, real stores, a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.execution import world
from core.execution.undo_steps import undo_and_rest
from core.messages import ChatAddress, FinalKind, Role, TurnClosed, TurnEvent
from core.store import actors, effects, pairing, turns
from core.store.effects import UNDO_LAST_TURN, EffectState
from tests.support.house import ask, events_of, inbound, open_scripted
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
        *rules("annulla e poi", ("undo_last_turn", {})),
    ]
    async with open_scripted(tmp_path, scripted) as (house, _):
        yield house


def closed_of(events: list[TurnEvent]) -> TurnClosed:
    assert isinstance(events[-1], TurnClosed)
    return events[-1]


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
    (notes / "b.md").write_text("prima", encoding="utf-8")
    await ask(house, f"scrivi sopra in {notes}/b.md")
    assert (notes / "b.md").read_text(encoding="utf-8") == "sopra"

    closed = await ask(house, "/undo")

    assert (notes / "b.md").read_text(encoding="utf-8") == "prima", closed.reply.plain


async def test_undo_of_a_move_moves_back(house: House, notes: Path) -> None:
    (notes / "b.md").write_text("prima", encoding="utf-8")
    await ask(house, f"sposta {notes}/b.md in {notes}/c.md")
    assert not (notes / "b.md").exists()

    await ask(house, "Annulla l'ultima operazione, per favore")

    assert (notes / "b.md").read_text(encoding="utf-8") == "prima"
    assert not (notes / "c.md").exists()


async def test_undo_of_several_steps_goes_newest_first(house: House, notes: Path) -> None:
    done = await ask(house, f"scrivi due volte in {notes}/d.md, poi muovi in {notes}/e.md")
    assert done.final_kind is FinalKind.ANSWER, done.reply.plain
    assert "due volte" in (notes / "e.md").read_text(encoding="utf-8")

    closed = await ask(house, "undo that")

    assert sorted(p.name for p in notes.iterdir() if not p.name.startswith(".")) == [], (
        closed.reply.plain
    )


async def test_undo_twice_is_a_message_and_changes_nothing(house: House, notes: Path) -> None:
    (notes / "b.md").write_text("prima", encoding="utf-8")
    await ask(house, f"scrivi sopra in {notes}/b.md")
    await ask(house, "annulla")

    closed = await ask(house, "annulla tutto")

    assert closed.final_kind is FinalKind.ANSWER
    assert "già annullata" in closed.reply.plain
    assert (notes / "b.md").read_text(encoding="utf-8") == "prima"
    assert await journal_of(house, closed.turn_id) == []


async def test_undo_that_a_model_asks_for_goes_the_same_way(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")

    closed = await ask(house, "annulla e poi dimmi ciao", lang="it")

    assert not (notes / "a.md").exists()
    assert "Rimesso com'era" in closed.reply.plain
    [row] = await journal_of(house, closed.turn_id)
    assert (row.tool, row.state) == (UNDO_LAST_TURN, EffectState.DONE)


async def test_undo_that_was_cut_short_is_brought_to_its_end(house: House, notes: Path) -> None:
    """Killed between taking the new file away and bringing the former one back."""
    (notes / "b.md").write_text("prima", encoding="utf-8")
    await ask(house, f"scrivi sopra in {notes}/b.md")
    async with house.stores.main.read() as tx:
        row = await tx.fetch_one("SELECT turn_id FROM effects")
    assert row is not None
    async with house.stores.main.write() as tx:
        await effects.start(
            tx,
            key="killed:1",
            turn_id="killed",
            step=1,
            tool=UNDO_LAST_TURN,
            before=None,
            expected=None,
            summary={"undoes": row["turn_id"]},
            now=house.clock.now(),
        )
        await effects.finish(tx, "killed:1", EffectState.UNKNOWN, house.clock.now())
    (notes / "b.md").unlink()

    closed = await ask(house, "annulla")

    assert (notes / "b.md").read_text(encoding="utf-8") == "prima", closed.reply.plain


async def test_undo_of_one_who_may_only_look_is_refused(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    async with house.stores.main.write() as tx:
        await tx.execute("UPDATE actors SET autonomy = 'read_only'")

    closed = await ask(house, "annulla")

    assert closed.final_kind is FinalKind.ERROR
    assert (notes / "a.md").exists()
    assert await journal_of(house, closed.turn_id) == []


async def test_undo_wished_twice_at_once_is_done_once(house: House, notes: Path) -> None:
    (notes / "b.md").write_text("prima", encoding="utf-8")
    await ask(house, f"scrivi sopra in {notes}/b.md")
    async with house.stores.main.write() as tx:
        await tx.execute(
            """INSERT INTO identities (channel, sender_id, actor_id)
               SELECT 'terminal', 'again', actor_id FROM identities LIMIT 1"""
        )

    ends = await asyncio.gather(
        ask(house, "annulla"),
        ask(house, "annulla", sender_id="again", address=ChatAddress("terminal", "again")),
    )

    assert (notes / "b.md").read_text(encoding="utf-8") == "prima"
    journals = [await journal_of(house, end.turn_id) for end in ends]
    assert sorted(map(len, journals)) == [0, 1]


async def test_undo_with_nothing_done_says_so_without_a_model(house: House) -> None:
    closed = await ask(house, "undo")

    assert "nothing to undo" in closed.reply.plain.lower() or "nulla" in closed.reply.plain


async def test_undo_leaves_alone_what_changed_since(house: House, notes: Path) -> None:
    for name in ("b.md", "x.md"):
        (notes / name).write_text(name, encoding="utf-8")
    (notes / "box").mkdir()
    await ask(house, f"archivia {notes}/b.md e {notes}/x.md in {notes}/box")
    assert (notes / "box/b.md").exists()
    (notes / "box/x.md").write_text("di un altro", encoding="utf-8")

    closed = await ask(house, "annulla")

    assert (notes / "b.md").read_text(encoding="utf-8") == "b.md"
    assert (notes / "box/x.md").read_text(encoding="utf-8") == "di un altro"
    assert not (notes / "x.md").exists()
    assert "x.md: è cambiato nel frattempo" in closed.reply.plain


async def test_undo_where_everything_changed_is_an_error_and_changes_nothing(
    house: House, notes: Path
) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    (notes / "a.md").write_text("ci ho messo mano", encoding="utf-8")

    closed = await ask(house, "annulla")

    assert closed.final_kind is FinalKind.ERROR
    assert (notes / "a.md").read_text(encoding="utf-8") == "ci ho messo mano"
    [row] = await journal_of(house, closed.turn_id)
    assert row.state is EffectState.FAILED


async def test_undo_of_deleted_files_brings_them_back(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    text = (notes / "a.md").read_text(encoding="utf-8")
    await as_if_deleted(house, notes / "a.md")

    closed = await ask(house, "annulla")

    assert (notes / "a.md").read_text(encoding="utf-8") == text, closed.reply.plain


async def as_if_deleted(house: House, path: Path) -> None:
    """A turn of the host that deleted a file, as the executor does after consent."""
    kept = path.parent / ".metnos-trash" / "deleted" / path.name
    kept.parent.mkdir(parents=True)
    before = world.state_now(str(path))
    path.rename(kept)
    now = house.clock.now()
    async with house.stores.main.write() as tx:
        host = await actors.find_actor(tx, "terminal", "local")
        assert host is not None
        await turns.open_turn(
            tx,
            turn_id="deleted",
            inbound_id="deleted",
            actor_id=host.id,
            conversation="terminal:local:",
            lang="it",
            request="elimina",
            now=now,
        )
        await effects.start(
            tx,
            key="deleted:1",
            turn_id="deleted",
            step=1,
            tool="delete_files",
            before={"found": [before]},
            expected={
                "wanted": [{"path": str(path), "exists": False}],
                "undo": [{"do": "restore", "from": str(kept), "to": str(path)}],
            },
            summary={"targets": [str(path)]},
            now=now,
        )
        await effects.finish(tx, "deleted:1", EffectState.DONE, now)
        await turns.close_turn(tx, "deleted", FinalKind.ANSWER, {}, now)


async def test_undo_when_what_was_kept_is_gone_says_so(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    await as_if_deleted(house, notes / "a.md")
    (notes / ".metnos-trash/deleted/a.md").unlink()

    closed = await ask(house, "annulla")

    assert closed.final_kind is FinalKind.ERROR
    assert "la copia che avevo tenuto non c'è più" in closed.reply.plain


@pytest.mark.parametrize(
    ("undone_before_crash", "told"),
    [(False, "Scritto: "), (True, "Non ho cambiato nulla.")],
    ids=["it was written", "it was not"],
)
async def test_recovery_tells_from_the_world_what_a_crash_left(
    tmp_path: Path, notes: Path, undone_before_crash: bool, told: str
) -> None:
    """The write has been journalled; whether it happened is seen at the next start."""
    asked = inbound(f"scrivi nota nuova in {notes}/a.md", id="crash:1", lang="it")
    write = ("write_files", {"path": f"{notes}/a.md", "content": "nota nuova"})
    async with open_scripted(tmp_path, rules("nota nuova", write)) as (house, _):
        closed = closed_of(await events_of(house, asked))
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE effects SET state = 'started', ended_at = NULL")
            await tx.execute(
                """UPDATE turns SET state = 'running', final_kind = NULL, answer = NULL,
                       conversation = 'telegram:1:'"""
            )
    if undone_before_crash:
        (notes / "a.md").unlink()

    async with open_scripted(tmp_path, []) as (house, model):
        [row] = await journal_of(house, closed.turn_id)
        end = closed_of(await events_of(house, asked))

    assert row.state is (EffectState.FAILED if undone_before_crash else EffectState.DONE)
    assert end.reply.plain.startswith("Mi ero interrotto a metà (")
    assert told in end.reply.plain
    assert model.asked == []


async def test_undo_of_a_guest_does_not_reach_the_hosts_turn(house: House, notes: Path) -> None:
    await ask(house, f"scrivi nota nuova in {notes}/a.md")
    async with house.stores.main.write() as tx:
        code = await pairing.create_code(tx, Role.GUEST, house.clock)
        await pairing.redeem_code(tx, code, "terminal", "luca", "Luca", house.clock)

    closed = await ask(house, "annulla", sender_id="luca")

    assert (notes / "a.md").exists()
    assert "nulla" in closed.reply.plain


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("annulla l'ultima cosa e poi dimmi che ore sono", "dimmi che ore sono"),
        ("Annulla, poi scrivi ciao in a.md", "scrivi ciao in a.md"),
        ("annulla l'ultima cosa che hai fatto, ho sbagliato file", "ho sbagliato file"),
        ("annulla tutto perché mi sono sbagliata", ""),
        ("undo the last change, then list my notes", "list my notes"),
        ("undo that because it was the wrong folder", ""),
        ("put it back and tell me the time", "tell me the time"),
        ("annulla l'appuntamento di domani e poi scrivi ad Anna", None),
        ("scrivi a.md e poi annulla", None),
        ("undo", None),
        ("che cosa succede se annulla? e poi?", None),
    ],
)
def test_a_longer_request_that_begins_with_undo_is_told_apart(text: str, rest: str | None) -> None:
    assert undo_and_rest(text) == rest


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
async def test_undo_inside_a_longer_request_works_with_whole_plans(
    tmp_path: Path, notes: Path, twice: bool
) -> None:
    """`metis` plans the rest; taking back is not left to the model, and never learnt."""
    write = {"path": f"{notes}/a.md", "content": "nota nuova"}
    now = {"steps": [{"tool": "get_now", "args": {}}]}
    scripted = [
        Rule(
            user="nota nuova", text=json.dumps({"steps": [{"tool": "write_files", "args": write}]})
        ),
        Rule(user="che ore sono", text=json.dumps(now)),
    ]
    async with open_scripted(tmp_path, scripted, metnos_engine="metis") as (house, _):
        await ask(house, f"scrivi nota nuova in {notes}/a.md", data={"lang": "it"})
        assert (notes / "a.md").exists()
        for _ in range(1 + twice):
            end = await ask(
                house, "annulla l'ultima cosa e poi dimmi che ore sono", data={"lang": "it"}
            )
        journal = await journal_of(house, end.turn_id)

    assert not (notes / "a.md").exists()
    assert end.final_kind is FinalKind.ANSWER, end.reply.plain
    assert ("già annullata" if twice else "Rimesso com'era") in end.reply.plain
    assert "Sono le" in end.reply.plain
    assert len(journal) == (0 if twice else 1)
