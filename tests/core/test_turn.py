"""Turns through the door: every bad input gets an answer, a log line, and loses nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.levels.terminator import Terminator
from core.messages import Autonomy, FinalKind, InboundKind, StepStarted, TurnClosed, TurnStarted
from core.store import effects, scratchpad, turns
from tests.support.house import LOCAL, ask, events_of, inbound, open_scripted, until
from tests.support.scripted_model import Ask, Rule


def lines(house: House) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in sorted((house.settings.metnos_home / "turns").glob("*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


async def test_turn_emits_its_start_first_and_its_end_last(tmp_path: Path) -> None:
    rules = [
        Rule(user="ore", after=0, calls=[("get_now", {})]),
        Rule(user="ore", text="Le dieci."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        events = await events_of(house, inbound("che ore sono?"))

        kinds = [type(event) for event in events]
        assert kinds[0] is TurnStarted
        assert kinds[-1] is TurnClosed
        assert kinds.count(TurnClosed) == 1
        assert [e.phrase for e in events if isinstance(e, StepStarted)] != [""]
        assert lines(house)[0]["final_kind"] == "answer"


async def test_turn_of_an_inbound_delivered_twice_runs_once(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ciao!")]) as (house, model):
        first = await ask(house, "ciao", id="same")
        again = await ask(house, "ciao", id="same")

        assert first.reply == again.reply
        assert len(model.asked) == 1
        assert len(lines(house)) == 1


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ([Rule(status=500)], ErrorCode.MODEL_UNREACHABLE),
        ([Rule(status=401)], ErrorCode.MODEL_REFUSED),
        ([Rule(cut=True, text="half of an answer")], ErrorCode.MODEL_UNREACHABLE),
        ([Rule(text="")], ErrorCode.MODEL_REPLY_INVALID),
        ([Rule(text='{"name": "launch_rocket", "arguments": {}}')], ErrorCode.MODEL_REPLY_INVALID),
    ],
    ids=["500", "401", "cut", "empty", "tool-shaped"],
)
async def test_turn_with_a_broken_model_says_so_and_changes_nothing(
    tmp_path: Path, rules: list[Rule], code: ErrorCode
) -> None:
    async with open_scripted(tmp_path, rules) as (house, _):
        closed = await ask(house, "che ore sono?")

        assert closed.final_kind is FinalKind.ERROR
        assert closed.error is not None
        assert closed.error.code is code
        assert "Non ho cambiato nulla." in closed.reply.plain
        assert "{" not in closed.reply.plain
        assert lines(house)[0]["error_class"] == code.value


async def test_turn_without_a_reachable_model_closes_with_an_error(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [], metnos_llm_base_url="http://127.0.0.1:9/v1") as (h, _):
        closed = await ask(h, "che ore sono?")

        assert closed.error is not None
        assert closed.error.code is ErrorCode.MODEL_UNREACHABLE
        assert lines(h)[0]["final_kind"] == "error"


async def test_turn_with_an_invented_tool_lets_the_model_correct_itself(tmp_path: Path) -> None:
    rules = [
        Rule(user="ore", after=0, calls=[("get_time", {})]),
        Rule(user="ore", after=1, calls=[("get_now", {})]),
        Rule(user="ore", after=2, text="Le dieci."),
    ]
    async with open_scripted(tmp_path, rules, metnos_most_tools=12) as (house, model):
        closed = await ask(house, "che ore sono?")

        assert closed.final_kind is FinalKind.ANSWER
        assert "get_now" in model.asked[1].last_result  # the near name is suggested
        assert [s["error_class"] for s in lines(house)[0]["steps"]] == ["unknown_tool", None]


async def test_turn_with_bad_arguments_gets_a_structured_error_and_corrects(
    tmp_path: Path,
) -> None:
    rules = [
        Rule(user="leggi", after=0, calls=[("read_files", {"paths": ["a.md"], "lines": 3})]),
        Rule(user="leggi", after=1, calls=[("read_files", {"paths": ["a.md"], "tail_lines": 1})]),
        Rule(user="leggi", after=2, text="Ecco."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/a.md").write_text("x\ny\n")

        closed = await ask(house, "leggi a.md")

        assert closed.final_kind is FinalKind.ANSWER
        error = json.loads(model.asked[1].last_result)["error"]
        assert error["code"] == "invalid_args"
        assert "lines" in error["detail"]


async def test_turn_that_repeats_a_failing_step_breaks_the_loop(tmp_path: Path) -> None:
    rules = [Rule(user="leggi", calls=[("read_files", {"paths": ["missing.md"]})])]
    async with open_scripted(tmp_path, rules) as (house, model):
        closed = await ask(house, "leggi missing.md")

        assert closed.final_kind is FinalKind.LOOP_BREAK
        assert len(model.asked) == 2
        assert lines(house)[0]["final_kind"] == "loop_break"


async def test_turn_that_reads_the_same_again_is_told_to_answer(tmp_path: Path) -> None:
    rules = [
        Rule(user="leggi", after=0, calls=[("read_files", {"paths": ["a.md"]})]),
        Rule(user="leggi", after=1, calls=[("read_files", {"paths": ["./a.md"]})]),
        Rule(user="leggi", after=2, text="Dice x."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/a.md").write_text("x\n")

        closed = await ask(house, "leggi a.md")

        assert closed.reply.plain == "Dice x."
        assert json.loads(model.asked[2].last_result)["error"]["code"] == "duplicate_call"


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "\udfff\ud800", "\x00\x01", "\u202e\u200b", "   "],
    ids=["huge", "surrogates", "nul", "bidi", "blank"],
)  # fmt: skip
async def test_turn_with_a_text_nobody_can_read_is_answered_without_a_model(
    tmp_path: Path, text: str
) -> None:
    async with open_scripted(tmp_path, [Rule(text="?")]) as (house, model):
        closed = await ask(house, text, id="odd")

        assert closed.final_kind is FinalKind.ERROR
        assert closed.reply.plain
        assert model.asked == []
        assert len(lines(house)) == 1


async def test_turn_of_a_text_with_invisible_characters_is_cleaned(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ciao!")]) as (house, model):
        await ask(house, "ci\u202eao\x00 \ud83d")

        assert model.asked[0].user == "ciao"


async def test_turn_of_a_stranger_reaches_no_model(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ciao!")]) as (house, model):
        closed = await ask(house, "ciao", sender_id="666")

        assert closed.error is not None
        assert closed.error.code is ErrorCode.NOT_AUTHORIZED
        assert model.asked == []


async def test_turn_of_another_kind_says_what_it_cannot(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Ciao!")]) as (house, model):
        closed = await ask(house, "", kind=InboundKind.FILE)

        assert closed.error is not None
        assert closed.error.code is ErrorCode.UNSUPPORTED
        assert model.asked == []


async def test_turn_that_is_stopped_says_so_and_is_logged(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="tardi", delay=120)]) as (house, model):
        running = asyncio.create_task(events_of(house, inbound("aspetta")))
        await until(lambda: len(model.asked) == 1)
        assert house.turns.status(LOCAL) is not None

        stopped = await asyncio.wait_for(house.turns.stop(LOCAL), 45)
        events = await running

        assert stopped
        last = events[-1]
        assert isinstance(last, TurnClosed)
        assert last.reply.plain.startswith("Fermato.")
        assert lines(house)[0]["error_class"] == "stopped"
        assert house.turns.status(LOCAL) is None
        assert not await house.turns.stop(LOCAL)


async def test_turn_stopped_after_a_change_tells_what_was_done(tmp_path: Path) -> None:
    rules = [
        Rule(user="scrivi", after=0, calls=[("write_files", {"path": "a.md", "content": "x"})]),
        Rule(user="scrivi", after=1, text="tardi", delay=30),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        running = asyncio.create_task(events_of(house, inbound("scrivi x in a.md")))
        await until(lambda: len(model.asked) == 2)

        await house.turns.stop(LOCAL)
        last = (await running)[-1]

        assert isinstance(last, TurnClosed)
        assert "Scritto" in last.reply.plain
        assert "a.md" in last.reply.plain
        assert "Non ho cambiato nulla" not in last.reply.plain


async def test_turns_of_one_conversation_wait_for_each_other(tmp_path: Path) -> None:
    rules = [Rule(user="uno", text="1", delay=0.3), Rule(user="due", text="2")]
    async with open_scripted(tmp_path, rules) as (house, model):
        first = asyncio.create_task(ask(house, "uno"))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(ask(house, "due"))
        await asyncio.gather(first, second)

        assert [asked.user for asked in model.asked] == ["uno", "due"]


async def test_turn_large_observation_becomes_a_handle_that_can_be_read_on(
    tmp_path: Path,
) -> None:
    big = "".join(f"line {n}\n" for n in range(12_000))

    def read_tail(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
        handle = json.loads(asked.last_result)
        args = {"id": handle["scratchpad_id"], "mode": "tail", "n": 20}
        return [("scratchpad_read", args)]

    rules = [
        Rule(user="grande", after=0, calls=[("read_files", {"paths": ["big.txt"]})]),
        Rule(user="grande", after=1, calls=read_tail),
        Rule(user="grande", after=2, text=lambda a: json.loads(a.last_result)["content"]),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/big.txt").write_text(big)

        closed = await ask(house, "leggi il file grande")

        handle = json.loads(model.asked[1].last_result)
        assert len(handle["scratchpad_id"]) == 16
        assert handle["summary"].startswith("line 0\n")
        assert "line 11999" in handle["summary"]
        assert len(model.asked[1].last_result) < 4096
        assert "scratchpad_read" not in model.asked[0].tool_names
        assert "scratchpad_read" in model.asked[1].tool_names
        assert closed.reply.plain.endswith("line 11999")
        async with house.stores.main.read() as tx:
            stored = await tx.fetch_one("SELECT actor_id FROM scratchpad")
            assert stored is not None
            other = await scratchpad.get(
                tx, stored["actor_id"], "another turn", handle["scratchpad_id"]
            )
        assert other is None


async def test_turn_delete_by_a_fully_trusted_actor_goes_to_the_trash(tmp_path: Path) -> None:
    rules = [
        Rule(user="cancella", after=0, calls=[("delete_files", {"paths": ["a.md"]})]),
        Rule(user="cancella", after=1, text="Cancellato a.md."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        (tmp_path / "notes/a.md").write_text("x")
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE actors SET autonomy = ?", (Autonomy.FULL.value,))

        closed = await ask(house, "cancella a.md")

        assert not (tmp_path / "notes/a.md").exists()
        assert list((tmp_path / "notes/.metnos-trash").rglob("a.md"))
        assert "cestino" in closed.reply.plain


async def test_turn_forbidden_path_is_denied_and_a_note_about_it_is_written(
    tmp_path: Path,
) -> None:
    note = "la chiave sta in ~/.ssh/id_rsa"
    rules = [
        Rule(user="chiave", after=0, calls=[("read_files", {"paths": ["~/.ssh/id_rsa"]})]),
        Rule(user="chiave", after=1, text="Non posso."),
        Rule(user="nota", after=0, calls=[("write_files", {"path": "n.md", "content": note})]),
        Rule(user="nota", after=1, text="Scritta."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        await ask(house, "leggi la mia chiave")
        await ask(house, "scrivi una nota in n.md")

        assert json.loads(model.asked[1].last_result)["error"]["code"] == "forbidden_path"
        assert (tmp_path / "notes/n.md").read_text() == note


async def test_turn_cut_by_a_crash_after_a_change_is_told_and_not_run_again(
    tmp_path: Path,
) -> None:
    async with open_scripted(tmp_path, [Rule(text="?")]) as (house, model):
        said = inbound("scrivi x in a.md", id="crashed")
        async with house.stores.main.write() as tx:
            row = await tx.fetch_one("SELECT id FROM actors")
            assert row is not None
            await turns.open_turn(
                tx,
                turn_id="t1",
                inbound_id="crashed",
                actor_id=row["id"],
                conversation=LOCAL.key,
                lang="it",
                request="scrivi x in a.md",
                now=house.clock.now(),
            )
            await effects.start(
                tx,
                key="t1:1",
                turn_id="t1",
                step=1,
                tool="write_files",
                before=None,
                expected=None,
                summary={"targets": ["/n/a.md"]},
                now=house.clock.now(),
            )

        closed = (await events_of(house, said))[-1]

        assert isinstance(closed, TurnClosed)
        assert "Non so se" in closed.reply.plain
        assert "/n/a.md" in closed.reply.plain
        assert model.asked == []
        assert lines(house)[0]["error_class"] == "interrupted"


async def test_conversation_is_remembered_for_the_next_request(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(text="Piove.")]) as (house, model):
        await ask(house, "che tempo fa a Torino?")
        await ask(house, "e domani?")

        earlier = "\n".join(str(m["content"]) for m in model.asked[1].body["messages"][:-1])
        assert "che tempo fa a Torino?" in earlier
        assert "Piove." in earlier
        assert model.asked[1].body["messages"][-1]["content"] == "e domani?"


async def test_turn_answers_in_the_persons_language_before_the_channels(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, [Rule(status=401)]) as (house, _):
        by_channel = await ask(house, "che ore sono?", lang="en-GB")
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE actors SET lang = 'it'")
        by_choice = await ask(house, "what time is it?", lang="en")

        assert by_channel.reply.lang == "en"
        assert by_choice.reply.lang == "it"


async def test_turn_whose_words_cannot_be_made_still_ends_and_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Terminator, "close", broken)
    async with open_scripted(tmp_path, [Rule(text="Ciao!")]) as (house, _):
        closed = await ask(house, "ciao")

        assert closed.final_kind is FinalKind.ERROR
        assert "errore interno" in closed.reply.plain
        assert [line["final_kind"] for line in lines(house)] == ["error"]
        async with house.stores.main.read() as tx:
            assert await turns.running(tx) == []


async def test_turn_stopped_twice_at_once_ends_once(tmp_path: Path) -> None:
    rules = [
        Rule(after=0, calls=[("get_now", {})]),
        Rule(after=1, text="tardi", delay=30),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        running = asyncio.create_task(events_of(house, inbound("che ore sono?")))
        await until(lambda: len(model.asked) == 2)

        stopped = await asyncio.gather(*(house.turns.stop(LOCAL) for _ in range(3)))
        ends = [event for event in await running if isinstance(event, TurnClosed)]

        assert any(stopped)
        assert len(ends) == 1
        assert ends[0].reply.plain.startswith("Fermato.")
        # What was spent before the stop is not forgotten.
        assert lines(house)[0]["tokens_in"] > 0
        assert len(lines(house)) == 1


async def test_turn_log_holds_no_secret_of_the_settings_or_of_the_person(tmp_path: Path) -> None:
    key = "plain-canary-key"
    rules = [
        Rule(after=0, calls=[("read_files", {"paths": [f"{key}.md"]})]),
        Rule(after=1, text=f"Non trovo {key}."),
    ]
    async with open_scripted(tmp_path, rules, metnos_llm_api_key=key) as (house, _):
        await ask(house, f"leggi {key}.md, la password è canary-typed")

        logged = json.dumps(lines(house))
        assert "canary" not in logged
        assert "leggi" in logged


async def test_turn_log_line_has_every_field_of_a_step(tmp_path: Path) -> None:
    rules = [Rule(after=0, calls=[("get_now", {})]), Rule(after=1, text="Le dieci.")]
    async with open_scripted(tmp_path, rules) as (house, _):
        await ask(house, "che ore sono?")

        line = lines(house)[0]
        assert set(line) >= set(
            """turn_id segment ts_start ts_end actor channel user_query mode engine match_source
            candidates steps effect_counts final_message final_kind tokens_in tokens_out cost
            """.split()
        )
        step = line["steps"][0]
        assert set(step) >= set(
            """number tool raw_args resolved_args tokens_in tokens_out model_ms validation scope
            grounding guard judge consent ok error_class effects latency_ms""".split()
        )
        assert step["validation"] == step["scope"] == step["guard"] == step["judge"] == "ok"
