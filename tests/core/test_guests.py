"""What guests may use and how much of it, and what becomes of those whose right is withdrawn."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import Actor, ChatAddress, Role, TurnClosed, TurnSuspended
from core.store import actors, grants, leaving, outbox, usage
from core.store.grants import GrantKind
from tests.acceptance.scenes import turn_lines
from tests.core.test_questions import press, said
from tests.support.executors import PURE_CODE, manifest_toml, signed_executor
from tests.support.house import open_scripted, until
from tests.support.scripted_model import Rule

NUMBER = "7007"
HERE = ChatAddress("telegram", NUMBER)
GUEST: dict[str, Any] = {"address": HERE, "sender_id": NUMBER}
WAITS = """
import time
from pathlib import Path


def run(call):
    time.sleep(2)
    return {"ok": True, "content": 1}
"""


async def let_in(house: House, **values: Any) -> Actor:
    async with house.stores.main.write() as tx:
        guest = await actors.add(tx, Role.GUEST, "Luca", house.clock)
        await actors.link(tx, HERE.channel, NUMBER, guest.id)
        return await actors.change(tx, guest.id, **values) or guest


async def say(house: House, text: str, **fields: Any) -> TurnClosed:
    last = (await said(house, text, **{**GUEST, **fields}))[-1]
    assert isinstance(last, TurnClosed), last
    return last


async def revoke(house: House, guest: Actor) -> None:
    async with house.stores.main.write() as tx:
        assert await leaving.revoke(tx, guest.id, house.clock.now()) is not None


def calls(tool: str, args: dict[str, Any] | None = None, word: str = "") -> list[Rule]:
    return [Rule(user=word, after=0, calls=[(tool, args or {})]), Rule(text="Ecco.")]


# -- the catalogue --------------------------------------------------------------------------------


@pytest.mark.parametrize("right", ["mail:read", "calendar:write", "system:read", "code:exec"])
async def test_guest_neither_sees_nor_runs_what_asks_for_more_rights(
    tmp_path: Path, right: str
) -> None:
    rules = calls("read_messages")
    async with open_scripted(tmp_path, rules) as (house, model):
        signed_executor(house.settings, manifest_toml("read_messages", right=right), PURE_CODE)
        await let_in(house)

        closed = await say(house, "leggi la posta")
        shown = set(model.asked[0].tool_names)
        await said(house, "leggi la posta")

    assert closed.error is not None
    assert closed.error.code is ErrorCode.NOT_AUTHORIZED
    assert "solo chi mi ha in casa" in closed.reply.plain
    assert "read_messages" not in shown
    assert {"read_files", "get_now", "find_places", "read_urls_html"} <= shown
    assert "read_messages" in model.asked[-1].tool_names, "the host has it"


async def test_right_that_is_granted_opens_the_tool_to_this_guest_until_it_is_taken_back(
    tmp_path: Path,
) -> None:
    async with open_scripted(tmp_path, calls("read_messages")) as (house, _):
        signed_executor(
            house.settings, manifest_toml("read_messages", right="mail:read"), PURE_CODE
        )
        guest = await let_in(house)
        async with house.stores.main.write() as tx:
            grant = await grants.add(
                tx, guest.id, GrantKind.RIGHT, "mail:read", now=house.clock.now()
            )
        granted = await say(house, "leggi la posta")
        async with house.stores.main.write() as tx:
            await grants.revoke(tx, grant.id)
        after = await say(house, "leggi la posta ancora")

    assert granted.error is None
    assert after.error is not None
    assert after.error.code is ErrorCode.NOT_AUTHORIZED


async def test_plan_of_a_guest_with_a_tool_of_the_host_does_not_begin(tmp_path: Path) -> None:
    plan = {"steps": [{"tool": "get_now", "args": {}}, {"tool": "read_messages", "args": {}}]}
    rules = [Rule(plan=plan)]
    async with open_scripted(tmp_path, rules, metnos_engine="metis") as (house, _):
        signed_executor(
            house.settings, manifest_toml("read_messages", right="mail:read"), PURE_CODE
        )
        await let_in(house)
        closed = await say(house, "che ore sono? poi leggi la posta")

    assert closed.error is not None
    assert closed.error.code is ErrorCode.NOT_AUTHORIZED
    assert turn_lines(house.settings.metnos_home)[-1]["steps"] == []


# -- how much -------------------------------------------------------------------------------------


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_guest_has_so_many_turns_an_hour_and_no_model_beyond(
    tmp_path: Path, lang: str
) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ecco.")], metnos_guest_turns_per_hour=3) as (
        house,
        model,
    ):
        guest = await let_in(house, lang=lang)
        ends = [await say(house, f"ciao {n}") for n in range(5)]
        asked = len(model.asked)
        async with house.stores.main.write() as tx:
            hour = timedelta(hours=1).total_seconds()
            await tx.execute(f"UPDATE turns SET started_at = started_at - {hour}")
        again = await say(house, "ciao ancora")
        async with house.stores.main.write() as tx:
            await actors.change(tx, guest.id, turns_per_hour=0)
        free = [await say(house, f"di nuovo {n}") for n in range(4)]

    codes = [end.error.code if end.error else None for end in ends]
    assert codes == [None, None, None, ErrorCode.QUOTA_TURNS, ErrorCode.QUOTA_TURNS]
    assert asked == 3
    words = {"it": "3 richieste nell'ultima ora", "en": "3 requests in the last hour"}
    assert words[lang] in ends[-1].reply.plain
    assert again.error is None
    assert [end.error for end in free] == [None] * 4


@pytest.mark.parametrize("lang", ["it", "en"])
async def test_guest_who_used_up_the_day_asks_no_model_until_tomorrow(
    tmp_path: Path, lang: str
) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ecco.")]) as (house, model):
        guest = await let_in(house, lang=lang, tokens_per_day=1)
        first = await say(house, "ciao")
        second = await say(house, "ciao ancora")
        asked = len(model.asked)
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE usage SET day = '2020-01-01'")
        third = await say(house, "buongiorno")
        async with house.stores.main.read() as tx:
            today = house.clock.now().astimezone(ZoneInfo("Europe/Rome")).date()
            day = await usage.of_day(tx, guest.id, today)

    assert first.error is None
    assert second.error is not None
    assert second.error.code is ErrorCode.QUOTA_DAY
    assert {"it": "Per oggi", "en": "Today's limit"}[lang] in second.reply.plain
    assert not second.reply.buttons
    assert asked == 1
    assert third.error is None
    assert day.turns == 1


async def test_day_that_is_used_up_within_a_turn_ends_it_with_what_was_done(
    tmp_path: Path,
) -> None:
    rules = [
        Rule(after=0, calls=[("write_files", {"path": "lista.md", "content": "latte"})]),
        Rule(text="Ecco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        guest = await let_in(house, tokens_per_day=10)
        closed = await say(house, "scrivi latte in lista.md")
        files = house.settings.metnos_home / "files" / guest.id

    assert len(model.asked) == 1
    assert closed.error is not None
    assert closed.error.code is ErrorCode.QUOTA_DAY
    assert (files / "lista.md").read_text() == "latte"
    assert "lista.md" in closed.reply.plain


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize("answer", ["✅", "✋"])
async def test_host_at_the_end_of_the_day_is_asked_and_may_go_on(
    tmp_path: Path, lang: str, answer: str
) -> None:
    """A hundred tokens a day: the first turn takes more, the next asks."""
    rules = [Rule(user="orologio|clock", after=0, calls=[("get_now", {})]), Rule(text="Ecco.")]
    limits = {"metnos_money_per_day": 0.001} if lang == "it" else {"metnos_tokens_per_day": 100}
    async with open_scripted(tmp_path, rules, **limits) as (house, model):
        if lang == "it":
            priced = house.tiers.settings_of("plan").model_copy(update={"input_price": 100.0})
            house.tiers.settings_of = lambda role: priced  # type: ignore[method-assign]
        await said(house, "ciao", lang=lang)
        question = (await said(house, {"it": "guarda l'orologio", "en": "look at the clock"}[lang],
                               data={"lang": lang}))[-1]  # fmt: skip
        assert isinstance(question, TurnSuspended)
        asked = len(model.asked)
        last = (await press(house, question, answer))[-1]

    assert asked == 1
    words = {"it": "limite di uso che hai impostato", "en": "the limit of use that you set"}
    assert words[lang] in question.reply.plain
    assert isinstance(last, TurnClosed)
    if answer == "✋":
        assert len(model.asked) == 1
        assert last.error is not None
        assert last.error.code is ErrorCode.QUOTA_DAY


async def test_host_has_no_limits_but_those_that_are_set(tmp_path: Path) -> None:
    async with open_scripted(
        tmp_path,
        [Rule(text="Ecco.")],
        metnos_guest_turns_per_hour=1,
        metnos_guest_tokens_per_day=1,
    ) as (house, _):
        ends = [(await said(house, f"ciao {n}"))[-1] for n in range(4)]

    assert [end.error for end in ends if isinstance(end, TurnClosed)] == [None] * 4


# -- who left -------------------------------------------------------------------------------------


async def queued(house: House) -> list[outbox.OutboxItem]:
    async with house.stores.main.read() as tx:
        rows = await tx.fetch_all("SELECT key FROM outbox WHERE state = 'pending'")
        found = [await outbox.find(tx, str(row["key"])) for row in rows]
    return [item for item in found if item is not None]


async def test_turn_that_runs_while_its_person_is_revoked_changes_and_says_nothing_more(
    tmp_path: Path,
) -> None:
    rules = [
        Rule(user="aspetta", after=0, calls=[("get_texts", {})]),
        Rule(user="aspetta", after=1, calls=[("write_files", {"path": "a.md", "content": "x"})]),
        Rule(text="Ecco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        signed_executor(house.settings, manifest_toml("get_texts"), WAITS)
        guest = await let_in(house)
        turn = asyncio.create_task(say(house, "aspetta la prova e scrivi x in a.md"))
        await until(lambda: bool(model.asked))
        await revoke(house, guest)

        closed = await turn
        after = await say(house, "ci sei?")

        assert await queued(house) == []
    assert closed.reply.blocks == ()
    assert not (house.settings.metnos_home / "files" / guest.id / "a.md").exists()
    assert after.error is not None
    assert after.error.code is ErrorCode.NOT_AUTHORIZED
    assert len(model.asked) <= 3


async def test_sweep_stops_the_turn_of_somebody_revoked(tmp_path: Path) -> None:
    rules = [Rule(user="aspetta", after=0, calls=[("get_texts", {})]), Rule(text="Ecco.")]
    async with open_scripted(tmp_path, rules) as (house, model):
        signed_executor(house.settings, manifest_toml("get_texts"), WAITS)
        guest = await let_in(house)
        turn = asyncio.create_task(say(house, "aspetta la prova"))
        await until(lambda: bool(model.asked))
        await revoke(house, guest)
        await house.turns.expire()
        closed = await turn

    assert closed.error is not None
    assert closed.error.code is ErrorCode.STOPPED
    assert len(model.asked) == 1
    assert turn_lines(house.settings.metnos_home)[-1]["final_kind"] == "error"


async def test_question_of_somebody_revoked_is_void_and_its_turn_ends_without_a_word(
    tmp_path: Path,
) -> None:
    rules = calls("delete_files", {"paths": ["a.md"]})
    async with open_scripted(tmp_path, rules) as (house, _):
        guest = await let_in(house)
        mine = house.settings.metnos_home / "files" / guest.id
        mine.mkdir(parents=True, exist_ok=True)
        (mine / "a.md").write_text("x")
        question = (await said(house, "cancella a.md", **GUEST))[-1]
        assert isinstance(question, TurnSuspended)

        await revoke(house, guest)
        tapped = (await press(house, question, "Sì", **GUEST))[-1]
        told = await house.turns.expire()
        again = await house.turns.expire()

        assert (mine / "a.md").exists()
        assert (told, again) == ([], [])
        assert await queued(house) == []
        async with house.stores.main.read() as tx:
            rows = await tx.fetch_all("SELECT state FROM turns UNION ALL "
                                      "SELECT state FROM suspensions")  # fmt: skip
    assert [row["state"] for row in rows] == ["closed", "cancelled"]
    assert isinstance(tapped, TurnClosed)
    assert tapped.error is not None
    lines = turn_lines(house.settings.metnos_home)
    assert [line["segment"] for line in lines] == [1, 2]


async def test_whoever_is_let_in_again_is_somebody_new(tmp_path: Path) -> None:
    rules = [
        Rule(user="ricorda", after=0, calls=[("write_files", {"path": "mio.md", "content": "x"})]),
        Rule(user="leggi", after=0, calls=[("read_files", {"paths": ["mio.md"]})]),
        Rule(text="Ecco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        first = await let_in(house)
        await say(house, "ricorda x in mio.md")
        await revoke(house, first)
        second = await let_in(house)
        closed = await say(house, "leggi mio.md")
        prompt = str(model.asked[-1].body)

    assert first.id != second.id
    assert closed.error is not None
    assert closed.error.code is ErrorCode.NOT_FOUND
    assert "ricorda" not in prompt, "the former conversation is nobody's"


async def test_start_after_a_crash_ends_what_ran_for_somebody_revoked(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ecco.")]) as (house, _):
        guest = await let_in(house)
        await say(house, "ciao")
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE turns SET state = 'running', ended_at = NULL")
        await revoke(house, guest)
    async with open_scripted(tmp_path, [Rule(text="Ecco.")]) as (house, _):
        async with house.stores.main.read() as tx:
            states = [row["state"] for row in await tx.fetch_all("SELECT state FROM turns")]
        assert states == ["closed"]
        assert await queued(house) == []


# -- in one room ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whose", "stopper", "stops"),
    [("local", NUMBER, False), (NUMBER, "local", True), (NUMBER, NUMBER, True)],
    ids=["a guest the host's", "the host a guest's", "a guest their own"],
)
async def test_stop_in_a_group_ends_ones_own_turn_and_the_hosts_any(
    tmp_path: Path, whose: str, stopper: str, stops: bool
) -> None:
    group = ChatAddress("telegram", "-100")
    rules = [Rule(user="aspetta", after=0, calls=[("get_texts", {})]), Rule(text="Ecco.")]
    async with open_scripted(tmp_path, rules) as (house, model):
        signed_executor(house.settings, manifest_toml("get_texts"), WAITS)
        await let_in(house)
        async with house.stores.main.write() as tx:
            host = await actors.find_host(tx)
            assert host is not None
            await actors.link(tx, "telegram", "local", host.id)
        turn = asyncio.create_task(say(house, "aspetta la prova", address=group, sender_id=whose))
        await until(lambda: bool(model.asked))

        stopped = await house.turns.stop(group, stopper)
        closed = await turn

    assert stopped is stops
    assert (closed.error is not None) is stops
