"""L1: the plan that did best serves everybody who means the same, and three dislikes end that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bot.app import House
from core.messages import FinalKind, TurnClosed
from core.store import actors, antis, autopath, observations, plan_cache
from core.store.antis import Anti
from core.store.autopath import Champion
from core.store.observations import Observed
from tests.core.test_votes import GUEST, HOST, button, chat, kept, labels, press, say
from tests.support.executors import manifest_toml, signed_executor
from tests.support.house import house_settings
from tests.support.scripted_model import Rule


def plan_of(*steps: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"steps": [{"tool": tool, "args": args} for tool, args in steps]}


async def champions_of(house: House) -> list[Champion]:
    async with house.stores.memory.read() as tx:
        return await autopath.listed(tx)


async def seen_in(house: House, most: int) -> list[Observed]:
    """What was observed, once it is so much: memory is written after the end."""
    async with asyncio.timeout(30):
        while True:
            async with house.stores.memory.read() as tx:
                rows = await observations.listed(tx)
            if len(rows) >= most:
                return rows
            await asyncio.sleep(0.01)


async def antis_of(house: House) -> list[Anti]:
    async with house.stores.memory.read() as tx:
        return await antis.listed(tx, house.clock.now())


async def forget_l0(house: House) -> None:
    async with house.stores.memory.write() as tx:
        await plan_cache.flush(tx)


async def is_measured(house: House) -> bool:
    async with house.stores.memory.read() as tx:
        row = await tx.fetch_one("SELECT COUNT(*) AS n FROM plan_cache WHERE vector IS NULL")
    return row is not None and row["n"] == 0


async def later(house: House, seconds: float) -> None:
    """Let all that L1 and what was disliked know have happened so much earlier."""
    columns = {
        "anti_autopaths": ("until", "soft_until", "changed_at"),
        "champions": ("created_at", "used_at", "changed_at"),
        "observations": ("at", "verdict_at"),
        "disliked": ("until",),
    }
    async with house.stores.memory.write() as tx:
        for table, names in columns.items():
            changes = ", ".join(f"{name} = {name} - :by" for name in names)
            await tx.execute(f"UPDATE {table} SET {changes}", {"by": seconds})


async def vote(house: House, told: TurnClosed, sign: str, person: str = HOST) -> None:
    end, _ = await press(house, button(told.reply, sign).token, person)
    assert end.final_kind is FinalKind.ANSWER


async def teach(house: House, *, seen: int = 1) -> TurnClosed:
    told = await say(house, "che ore sono?")
    await seen_in(house, seen)
    await vote(house, told, "👍")
    return told


def sources(house: House) -> list[str]:
    from tests.core.test_turn import lines

    return [line["match_source"] for line in lines(house)]


async def test_one_yes_lets_a_plan_serve_everybody_until_another_is_approved(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        await teach(house)
        [row] = await champions_of(house)
        assert (row.status.value, row.is_champion, row.tally.up) == ("active", True, 1)
        await forget_l0(house)

        mine = await say(house, "che ore sono?")
        theirs = await say(house, "what time is it?", GUEST, data={"lang": "en"})

        assert len(model.asked) == 1
        for told in (mine, theirs):
            assert told.reply.plain.endswith("⚡")
        assert sources(house) == ["engine", "autopath", "autopath"]
        assert len(await seen_in(house, 3)) == 3
        [row] = await champions_of(house)
        assert (row.tally.ran, row.why) == (2, "intent")
        assert row.used_at is not None
        # What is approved wins over merit, also for other words.
        again = await say(house, "mi dici l'ora?")
        await press(house, button(again.reply, "⚡").token)
        async with asyncio.timeout(60):
            while not await is_measured(house):  # noqa: ASYNC110 - in the background
                await asyncio.sleep(0.01)
        await say(house, "dimmi l'ora")
        assert sources(house)[3:] == ["autopath", "fastpath"]


async def test_turned_off_it_observes_and_serves_nothing(tmp_path: Path):
    async with chat(tmp_path, metnos_autopath=False) as (house, _):
        told = await say(house, "che ore sono?")
        await kept(house, 1)
        await vote(house, told, "👍")
        await say(house, "mi dici l'ora?")

        assert sources(house) == ["engine", "fastpath"]
        assert await seen_in(house, 0) == []


async def test_plan_with_a_value_is_observed_without_it_and_never_serves(tmp_path: Path):
    reads = Rule(user="leggi", plan=plan_of(("read_files", {"paths": ["kanarien.md"]})))
    async with chat(tmp_path, reads) as (house, model):
        (tmp_path / "notes/kanarien.md").write_text("segreto\n")
        told = await say(house, "leggi il file kanarien.md")
        [seen] = await seen_in(house, 1)
        await vote(house, told, "👍")

        assert (seen.cluster, seen.way) == ("", "read_files")
        assert "kanarien" not in repr(seen)
        assert await champions_of(house) == []
        asked = len(model.asked)
        closed = await say(house, "leggi il file kanarien.md", GUEST)
        assert len(model.asked) > asked
        assert "segreto" not in closed.reply.plain


async def disliked_thrice(house: House) -> TurnClosed:
    for number in range(3):
        told = await say(house, "che ore sono?")
        await seen_in(house, number + 2)
        await vote(house, told, "👎")
    return told


async def test_three_dislikes_keep_a_plan_away_and_a_later_yes_lifts_that(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        await teach(house)
        told = await disliked_thrice(house)
        [row] = await champions_of(house)
        assert row.status.value == "demoted"
        [anti] = await antis_of(house)
        assert (anti.fails, anti.reason, anti.way) == (3, "disliked", "get_now")

        # Kept from the proposer too, which is asked once more; looking is allowed all the same.
        asked = len(model.asked)
        again = await say(house, "mi dici l'ora?")
        assert again.final_kind is FinalKind.ANSWER
        assert "⚡" not in again.reply.plain
        assert len(model.asked) == asked + 2
        assert "get_now" in str(model.asked[-1].body["messages"])
        assert await kept(house) == [], "and is not learnt"

        await vote(house, told, "👍")
        assert await antis_of(house) == []
        [row] = await champions_of(house)
        assert (row.status.value, row.is_champion) == ("active", True)
        asked = len(model.asked)
        served = await say(house, "mi dici l'ora?")
        assert served.reply.plain.endswith("⚡")
        assert len(model.asked) == asked


async def test_dislikes_of_a_guest_are_the_guests_alone(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        await teach(house)
        for number in range(3):
            told = await say(house, "che ore sono?", GUEST)
            await seen_in(house, number + 2)
            await vote(house, told, "👎", GUEST)
            await later(house, 3700)

        [anti] = await antis_of(house)
        [row] = await champions_of(house)
        assert (anti.reason, row.status.value) == ("disliked", "active")
        asked = len(model.asked)
        served = await say(house, "mi dici l'ora?", HOST)
        assert served.reply.plain.endswith("⚡")
        assert len(model.asked) == asked
        await say(house, "mi dici l'ora?", GUEST)
        assert len(model.asked) == asked + 2


async def test_planning_anew_puts_a_plan_aside_for_an_hour(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        told = await teach(house)
        _, row = await press(house, button(told.reply, "⋯").token)
        assert row is not None
        await press(house, button(row, "di nuovo").token)
        await forget_l0(house)
        assert [one.reason for one in await antis_of(house)] == ["anew"]

        asked = len(model.asked)
        await say(house, "mi dici l'ora?")
        assert len(model.asked) == asked + 1
        await forget_l0(house)
        await later(house, 3700)
        served = await say(house, "mi dici l'ora?")
        assert served.reply.plain.endswith("⚡")


async def test_change_that_was_turned_down_three_times_is_not_made_again(tmp_path: Path):
    writes = Rule(user="scrivi", plan=plan_of(("write_files", {"path": "a.md", "content": "x"})))
    async with chat(tmp_path, writes) as (house, _):
        for number in range(3):
            told = await say(house, 'scrivi "x" in a.md')
            await seen_in(house, number + 1)
            await vote(house, told, "👎")
            (tmp_path / "notes/a.md").unlink()

        refused = await say(house, 'scrivi "x" in a.md')

        assert refused.final_kind is FinalKind.ASK
        assert "non ti è piaciuto" in refused.reply.plain
        assert not (tmp_path / "notes/a.md").exists()


async def test_of_two_plans_the_better_one_serves_once_it_is_clearly_so(tmp_path: Path):
    ones = plan_of(("get_now", {}))
    twos = plan_of(("list_dirs", {}), ("get_now", {}))
    plans = iter([ones, twos, twos])
    rule = Rule(user="or[ae]", plan=lambda ask: next(plans))
    async with chat(tmp_path, rule) as (house, _):
        await teach(house)
        for number in range(2):
            await forget_l0(house)
            [first] = [one for one in await champions_of(house) if one.is_champion]
            assert first.way == "get_now"
            told = await say(house, "che ore sono?")
            assert told.reply.plain.endswith("⚡"), "until then the champion serves"
            _, row = await press(house, button(told.reply, "⋯").token)
            assert row is not None
            anew, _ = await press(house, button(row, "di nuovo").token)
            await seen_in(house, 2 * number + 3)
            await later(house, 3700)
            await vote(house, anew, "👍")

        rows = await champions_of(house)
        assert [(one.way, one.is_champion) for one in rows] == [
            ("list_dirs > get_now", True),
            ("get_now", False),
        ]


async def test_long_plan_serves_in_the_shadow_after_two_successes(tmp_path: Path):
    long = plan_of(
        ("find_files", {}),
        ("sort_entries", {"from_step": 1, "by": "name"}),
        ("sort_entries", {"from_step": 2, "by": "size"}),
        ("compute_entries", {"from_step": 3, "op": "count"}),
    )
    async with chat(tmp_path, Rule(user="file", plan=long)) as (house, model):
        (tmp_path / "notes/a.md").write_text("a")
        first = await say(house, "conta i file")
        assert first.final_kind is FinalKind.ANSWER, first.reply.plain
        await say(house, "conta i file")
        await seen_in(house, 2)
        [row] = await champions_of(house)
        assert (row.status.value, row.is_champion) == ("shadow", False)
        await forget_l0(house)

        told = await say(house, "quanti file ci sono?")
        assert (len(model.asked), sources(house)[-1]) == (1, "autopath")
        await seen_in(house, 3)
        await vote(house, told, "👍")
        [row] = await champions_of(house)
        assert (row.status.value, row.is_champion) == ("active", True)


async def test_new_sibling_is_a_miss_once_with_its_reason(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        await teach(house)
        await forget_l0(house)
        code = "def run(call):\n    return {'ok': True, 'content': 'mezzogiorno'}\n"
        signed_executor(house_settings(tmp_path), manifest_toml("read_now"), code)

        again = await say(house, "mi dici l'ora?")
        assert len(model.asked) == 2
        assert "⚡" not in again.reply.plain
        await seen_in(house, 2)
        [row] = await champions_of(house)
        assert row.status.value == "active"
        await forget_l0(house)
        served = await say(house, "mi dici l'ora?")
        assert served.reply.plain.endswith("⚡")
        assert len(model.asked) == 2


HARMS = (
    "plan_json = '{'",
    "plan_json = '{\"steps\": 3}'",
    "status = 'king'",
    "up = 'many'",
    "version = 99",
    "created_at = 1e300",
    'plan_json = \'{"steps":[{"tool":"gone_now","args":{}}]}\'',
    "tools = ''",
)


async def test_row_that_cannot_be_used_is_a_miss(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        for number, harm in enumerate(HARMS):
            await teach(house, seen=2 * number + 1)
            await forget_l0(house)
            async with house.stores.memory.write() as tx:
                await tx.execute(f"UPDATE champions SET {harm}")
            asked = len(model.asked)

            closed = await say(house, "che ore sono?")

            assert closed.final_kind is FinalKind.ANSWER
            assert "⚡" not in closed.reply.plain, harm
            assert len(model.asked) == asked + 1
            await seen_in(house, 2 * number + 2)
            async with house.stores.memory.write() as tx:
                await tx.execute("DELETE FROM champions")
            await forget_l0(house)


async def test_flush_during_a_hit_and_votes_after_it_do_nothing(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        await teach(house)
        await forget_l0(house)
        told = await say(house, "che ore sono?")
        await seen_in(house, 2)
        async with house.stores.memory.write() as tx:
            await autopath.flush(tx)

        for sign in ("👍", "👎"):
            await vote(house, told, sign)
        assert await champions_of(house) == []
        assert await antis_of(house) == []
        await say(house, "che ore sono?")
        assert len(model.asked) == 2


async def test_pin_under_an_answer_of_l1_approves_that_plan_for_these_words(tmp_path: Path):
    async with chat(tmp_path) as (house, model):
        await teach(house)
        told = await say(house, "mi dici l'ora?", GUEST)
        assert labels(told.reply) == [["👍", "👎", "⚡", "⋯"]]
        await seen_in(house, 2)

        await press(house, button(told.reply, "⚡").token, GUEST)
        await say(house, "mi dici l'ora?", GUEST)

        assert sources(house) == ["engine", "autopath", "fastpath"]
        assert [one.approved for one in await kept(house)] == [True, False]
        assert len(model.asked) == 1


async def test_forgetting_a_person_leaves_what_others_had_succeed(tmp_path: Path):
    async with chat(tmp_path) as (house, _):
        await teach(house)
        await say(house, "mi dici l'ora?", GUEST)
        await seen_in(house, 2)
        async with house.stores.main.read() as tx:
            host = await actors.find_host(tx)
        assert host is not None
        async with house.stores.memory.write() as tx:
            await autopath.forget(tx, host.id)

        [row] = await champions_of(house)
        assert row.taught_by != host.id
        assert [one.actor_id for one in await seen_in(house, 1)] == [row.taught_by]
        async with house.stores.memory.write() as tx:
            await autopath.forget(tx, row.taught_by)
        assert await champions_of(house) == []
