"""`/praxis`: the host sees and clears what is remembered; nobody else sees a word of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.messages import ChatAddress
from core.store import observations
from tests.core.test_votes import CLOCK, GUEST, HOST, WORDS, button, chat, kept, press, say


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_host_sees_approves_deletes_and_flushes(tmp_path: Path, lang: str):
    data = {"lang": lang}
    asks, yes = {"it": ("tutto", "Sì"), "en": ("all", "Yes")}[lang]
    async with chat(tmp_path, CLOCK) as (house, model):
        await say(house, WORDS[lang]["clock"], data=data)
        await kept(house, 1)
        told = await say(house, "/praxis", data=data)
        assert WORDS[lang]["clock"].rstrip("?") in told.reply.plain
        await press(house, button(told.reply, "⚡").token, lang=lang)
        assert [one.approved for one in await kept(house)] == [True]
        await press(house, button(told.reply, "1").token, GUEST)

        _, sure = await press(house, button(told.reply, asks).token, lang=lang)
        assert sure is not None
        assert len(await kept(house)) == 1
        await press(house, button(sure, yes).token, lang=lang)
        assert await kept(house) == []

        await say(house, WORDS[lang]["clock"], data=data)
        await kept(house, 1)
        told = await say(house, "/praxis", data=data)
        await press(house, button(told.reply, "🗑").token, lang=lang)
        assert await kept(house) == []
        assert len(model.asked) == 2


async def test_guest_and_group_are_told_nothing_of_it(tmp_path: Path):
    async with chat(tmp_path, CLOCK) as (house, _):
        await say(house, "che ore sono?")
        await kept(house, 1)
        alone = ChatAddress("telegram", HOST)
        guest = await say(house, "/praxis", GUEST)
        group = await say(house, "/praxis", address=ChatAddress("telegram", "-5"), alone=alone)

    for told in (guest, group):
        assert "ore" not in told.reply.plain
        assert told.reply.buttons == ()


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_plans_by_merit_are_told_in_words_and_go_with_the_rest(tmp_path: Path, lang: str):
    data = {"lang": lang}
    asks, yes, merit = {
        "it": ("tutto", "Sì", "Per merito"),
        "en": ("all", "Yes", "By merit"),
    }[lang]
    async with chat(tmp_path, CLOCK) as (house, model):
        first = await say(house, WORDS[lang]["clock"], data=data)
        await press(house, button(first.reply, "👍").token, lang=lang)
        told = await say(house, "/praxis", data=data)
        assert merit in told.reply.plain
        assert "1 👍 0 👎" in told.reply.plain
        assert "get_now" not in told.reply.plain

        await press(house, button(told.reply, "2").token, lang=lang)
        assert "👍" not in (await say(house, "/praxis", data=data)).reply.plain
        _, sure = await press(house, button(told.reply, asks).token, lang=lang)
        assert sure is not None
        await press(house, button(sure, yes).token, lang=lang)
        async with house.stores.memory.read() as tx:
            assert await observations.count(tx) == 0
        assert len(model.asked) == 1
