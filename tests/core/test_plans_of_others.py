"""A guest is served what holds no value of anybody, and never spoils what others taught."""

from __future__ import annotations

from pathlib import Path

from core.messages import FinalKind
from tests.core.test_votes import CLOCK, GUEST, HOST, chat, kept, labels, say
from tests.support.scripted_model import Rule

CANARY = "kanarienvogel"


def reading(name: str) -> Rule:
    steps = [{"tool": "read_files", "args": {"paths": [name]}}]
    return Rule(user="leggi|read", plan={"steps": steps})


async def test_value_bound_plan_of_the_host_never_serves_a_guest(tmp_path: Path):
    async with chat(tmp_path, reading(f"{CANARY}.md")) as (house, model):
        (tmp_path / f"notes/{CANARY}.md").write_text("segreto di casa\n")
        request = f"leggi {CANARY}.md"
        told = await say(house, request)
        assert "segreto" in told.reply.plain
        await kept(house, 1)

        for text in (request, "leggi altro.md", f"read {CANARY}.md"):
            asked = len(model.asked)
            closed = await say(house, text, GUEST)
            assert len(model.asked) > asked, "planned, not remembered"
            assert "segreto" not in closed.reply.plain
            assert "⚡" not in closed.reply.plain
        rows = await kept(house)
        assert [(row.lesson.text, row.why) for row in rows if row.uses == 0] == [(request, "")]
        assert len((await say(house, request)).reply.buttons) == 1


async def test_value_free_plan_serves_a_guest_who_cannot_take_it_away(tmp_path: Path):
    async with chat(tmp_path, CLOCK) as (house, model):
        await say(house, "che ore sono?")
        await kept(house, 1)

        served = await say(house, "mi dici l'ora?", GUEST)

        assert len(model.asked) == 1
        assert served.reply.plain.endswith("⚡")
        assert "⚡" not in labels(served.reply)[0], "not theirs to approve"
        from tests.core.test_votes import button, press

        await press(house, button(served.reply, "👎").token, GUEST)
        assert len(await kept(house)) == 1
        await say(house, "che ore sono?", HOST)
        assert len(model.asked) == 1


async def test_guest_without_the_right_is_refused_and_the_row_stays(tmp_path: Path):
    lists = Rule(user="posta|mail", plan={"steps": [{"tool": "read_mails", "args": {}}]})
    async with chat(tmp_path, CLOCK, lists) as (house, _):
        await say(house, "che ore sono?")
        [row] = await kept(house, 1)
        # A row whose program no guest may use.
        async with house.stores.memory.write() as tx:
            plan = '{"steps":[{"tool":"read_mails","args":{}}]}'
            await tx.execute("UPDATE plan_cache SET plan_json = :plan", {"plan": plan})

        closed = await say(house, "che ore sono?", GUEST)

        assert closed.final_kind in {FinalKind.ANSWER, FinalKind.ERROR}
        assert "⚡" not in closed.reply.plain
        after = [one for one in await kept(house) if one.id == row.id]
        assert [(one.lesson.tools, one.why) for one in after] == [(row.lesson.tools, "")]
