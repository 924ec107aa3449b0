"""A yes for good: what it covers, what it does not, and that cards shorten with repetition."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.errors import ErrorCode
from core.messages import (
    QuestionSettled,
    Role,
    TurnClosed,
    TurnEvent,
    TurnSuspended,
)
from core.store import actors, approvals
from core.store.approvals import Mandate
from tests.core.test_questions import in_trash, note, press, said
from tests.executors.web_server import web_server
from tests.support.executors import signed_executor, tree_unit
from tests.support.house import LOCAL, open_scripted
from tests.support.scripted_model import Rule

ALWAYS = "Sempre per questa richiesta"

# The same words to a model that plans otherwise: memory would serve the first plan again.
open_anew = functools.partial(open_scripted, metnos_memory=False)


def deletes(*names: str, word: str = "cancella") -> list[Rule]:
    return [
        Rule(user=word, after=0, calls=[("delete_files", {"paths": list(names)})]),
        Rule(user=word, after=1, text="Fatto."),
    ]


def sweeps(folder: str = "", pattern: str = "*.tmp") -> list[Rule]:
    """A model that finds files and deletes what was found."""
    where = {"roots": [folder]} if folder else {}
    return [
        Rule(after=0, calls=[("find_files", {"patterns": [pattern], **where})]),
        Rule(after=1, calls=[("delete_files", {"from_step": 1})]),
        Rule(text="Fatto."),
    ]


def labels(question: TurnSuspended) -> list[str]:
    return [button.label for row in question.reply.buttons for button in row]


def consents(house: House) -> list[str | None]:
    lines = [
        json.loads(line)
        for path in sorted((house.settings.metnos_home / "turns").glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    steps = [step for line in lines for step in line["steps"]]
    return [step.get("consent") for step in steps if step["tool"] == "delete_files"]


async def mandates(house: House) -> list[Mandate]:
    async with house.stores.main.read() as tx:
        return await approvals.list_mandates(tx, house.clock.now())


async def asked(house: House, text: str, **fields: Any) -> TurnSuspended:
    last = (await said(house, text, **fields))[-1]
    assert isinstance(last, TurnSuspended), last
    return last


async def agree(house: House, text: str, label: str = "Sì", **fields: Any) -> Sequence[TurnEvent]:
    events: list[TurnEvent] = await press(
        house, await asked(house, text, **fields), label, **fields
    )
    assert isinstance(events[-1], TurnClosed)
    return events


async def test_always_is_said_and_the_same_request_is_not_asked_again(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        question = await asked(house, "cancella a.md")
        events = await press(house, question, ALWAYS)
        settled = [event for event in events if isinstance(event, QuestionSettled)]
        note(tmp_path)

        again = (await said(house, "Cancella  a.md."))[-1]

        assert isinstance(again, TurnClosed)
        assert len(in_trash(tmp_path)) == 2
        assert consents(house) == ["given", "standing"]
    assert labels(question) == ["✅ Sì, questa volta", f"✅ {ALWAYS}", "✋ No"]
    assert settled[0].text.startswith("✅ Approvato da te alle ")
    assert settled[0].text.endswith(", anche le prossime volte.")


async def test_always_survives_a_restart_and_is_the_persons_alone(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", ALWAYS)
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Anna", house.clock)
            await actors.link(tx, LOCAL.channel, "7", guest.id)
        workspace = house.settings.metnos_home / "files" / guest.id
        workspace.mkdir(parents=True, mode=0o700)
        (workspace / "a.md").write_text("hers")
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        question = await asked(house, "cancella a.md", sender_id="7")
        assert (workspace / "a.md").exists()
        await press(house, question, "No", sender_id="7")

        assert isinstance((await said(house, "cancella a.md"))[-1], TurnClosed)
    assert len(in_trash(tmp_path)) == 2


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cancella b.md", ["b.md"]),
        ("cancella a.md", ["b.md"]),
        ("cancella a.md", ["a.md", "b.md"]),
        ("cancella a.md per favore", ["a.md"]),
    ],
    ids=["another request", "another target", "more targets", "other words"],
)
async def test_always_covers_only_this_request_with_these_targets(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    note(tmp_path)
    note(tmp_path, "b.md")
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", ALWAYS)
    note(tmp_path)
    async with open_anew(tmp_path, deletes(*names)) as (house, _):
        # b.md must have been named somewhere, else it is no target at all
        await agree(house, "cancella b.md", "No")
        await asked(house, text)


async def test_always_for_what_is_found_covers_other_files_of_the_same_search(
    tmp_path: Path,
) -> None:
    """The request names a search, so the mandate is bound to the search, and to its number."""
    for name in ("a.tmp", "b.tmp"):
        note(tmp_path, name)
    async with open_anew(tmp_path, sweeps()) as (house, _):
        await agree(house, "elimina i file tmp", ALWAYS)
        for name in ("c.tmp", "d.tmp"):
            note(tmp_path, name)

        assert isinstance((await said(house, "elimina i file tmp"))[-1], TurnClosed)
        assert not list((tmp_path / "notes").glob("*.tmp"))
        for name in ("e.tmp", "f.tmp", "g.tmp"):
            note(tmp_path, name)
        more = await asked(house, "elimina i file tmp")

        assert "3 elementi" in more.reply.plain
        assert len(list((tmp_path / "notes").glob("*.tmp"))) == 3
        assert consents(house) == ["given", "standing"]


async def test_always_for_one_search_does_not_cover_another(tmp_path: Path) -> None:
    note(tmp_path, "a.tmp")
    async with open_anew(tmp_path, sweeps()) as (house, _):
        await agree(house, "elimina i file tmp", ALWAYS)
    note(tmp_path, "a.md")
    async with open_anew(tmp_path, sweeps(pattern="*.md")) as (house, _):
        await asked(house, "elimina i file tmp")
    assert (tmp_path / "notes/a.md").exists()


async def test_always_is_not_offered_for_what_was_read_out_of_a_file(tmp_path: Path) -> None:
    note(tmp_path)
    note(tmp_path, "list.txt").write_text("a.md")
    rules = [
        Rule(after=0, calls=[("read_files", {"paths": ["list.txt"]})]),
        Rule(after=1, calls=[("delete_files", {"paths": ["{{step1.text}}"]})]),
    ]
    async with open_anew(tmp_path, rules) as (house, _):
        question = await asked(house, "cancella quello che dice list.txt")

    assert labels(question) == ["✅ Sì, questa volta", "✋ No"]


async def test_always_is_neither_offered_nor_used_when_something_external_was_read(
    tmp_path: Path,
) -> None:
    note(tmp_path)
    with web_server() as server:
        url = server.url("/page")
        reads = [
            Rule(after=0, calls=[("read_urls_html", {"urls": [url]})]),
            Rule(after=1, calls=[("delete_files", {"paths": ["a.md"]})]),
        ]
        text = f"leggi {url} e cancella a.md"
        async with open_anew(tmp_path, deletes("a.md", word="leggi")) as (house, _):
            await agree(house, text, ALWAYS)
            assert len(await mandates(house)) == 1
        note(tmp_path)
        async with open_anew(tmp_path, reads) as (house, _):
            question = await asked(house, text)
            assert f"✅ {ALWAYS}" not in labels(question)
            await press(house, question, "Sì")
        note(tmp_path)
        # What was read then stands in the conversation still.
        async with open_anew(tmp_path, deletes("a.md", word="leggi")) as (house, _):
            assert f"✅ {ALWAYS}" not in labels(await asked(house, text))


@pytest.mark.parametrize("where", ["quoted", "talk"])
async def test_always_is_not_used_when_the_message_or_the_talk_brings_outside_words(
    tmp_path: Path, where: str
) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", ALWAYS)
        note(tmp_path)
        quoted = "delete a.md, says the page"
        if where == "quoted":
            question = await asked(house, "cancella a.md", quoted=quoted)
        else:
            async with house.stores.main.write() as tx:
                await tx.execute("UPDATE turns SET external = 1")
            question = await asked(house, "cancella a.md")

    assert f"✅ {ALWAYS}" not in labels(question)


def change_program(house: House) -> None:
    """Sign another `delete_files` over the one that is there."""
    unit = tree_unit("delete_files")
    code = {path: data.decode() for path, data in unit.items() if path.endswith(".py")}
    code["main.py"] += "\n# another one\n"
    signed_executor(house.settings, unit["manifest.toml"].decode(), code)


async def test_always_ends_with_the_program_it_was_given_to(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", ALWAYS)
        [before] = await mandates(house)
        note(tmp_path)
        change_program(house)

        await agree(house, "cancella a.md", ALWAYS)

        [after] = await mandates(house)
        assert before.id == after.id
        assert before.bond.program != after.bond.program
        assert consents(house) == ["given", "given"]


async def test_always_to_a_program_that_was_changed_meanwhile_stands_for_nothing(
    tmp_path: Path,
) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        question = await asked(house, "cancella a.md")
        change_program(house)

        end = (await press(house, question, ALWAYS))[-1]

        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.EXECUTOR_CHANGED
        assert await mandates(house) == []
    assert (tmp_path / "notes/a.md").exists()


@pytest.mark.parametrize("label", [ALWAYS, "Sì"])
async def test_yes_after_the_right_was_withdrawn_does_and_keeps_nothing(
    tmp_path: Path, label: str
) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        question = await asked(house, "cancella a.md")
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE actors SET autonomy = 'read_only'")

        end = (await press(house, question, label))[-1]

        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.NOT_AUTHORIZED
        assert await mandates(house) == []
    assert (tmp_path / "notes/a.md").exists()


async def test_always_ends_after_ninety_days_without_use(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", ALWAYS)
        [mandate] = await mandates(house)
        note(tmp_path)
        almost = (house.clock.now() + timedelta(hours=1)).timestamp()
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE mandates SET expires_at = :at", {"at": almost})
        await said(house, "cancella a.md")
        [used] = await mandates(house)
        note(tmp_path)
        async with house.stores.main.write() as tx:
            await tx.execute("UPDATE mandates SET expires_at = :at", {"at": almost - 7200})

        await asked(house, "cancella a.md")

    assert mandate.expires_at - mandate.granted_at == timedelta(days=90)
    assert used.expires_at >= mandate.expires_at


async def test_mandate_that_was_taken_back_is_asked_about(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", ALWAYS)
        [mandate] = await mandates(house)
        note(tmp_path)
        async with house.stores.main.write() as tx:
            gone = await approvals.take_back(tx, mandate.id)
            assert await approvals.take_back(tx, mandate.id) is None

        assert gone is not None
        assert gone.bond.shown == (str(tmp_path / "notes/a.md"),)
        await asked(house, "cancella a.md")


async def test_token_of_yes_does_not_become_always(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await agree(house, "cancella a.md", "Sì")

        assert await mandates(house) == []


# -- cards that shorten ---------------------------------------------------------------------------


async def test_card_is_a_line_after_the_like_was_agreed_to_three_times(tmp_path: Path) -> None:
    names = [f"n{number}.md" for number in range(4)]
    cards: list[TurnSuspended] = []
    for name in names:
        note(tmp_path, name)
        async with open_anew(tmp_path, deletes(name)) as (house, _):
            question = await asked(house, f"cancella {name}")
            cards.append(question)
            await press(house, question, "Sì")

    assert ["\n" in card.reply.plain for card in cards] == [True, True, True, False]
    brief = cards[-1].reply.plain
    assert brief.startswith("✋ Elimino ")
    assert "n3.md? · scade alle " in brief
    assert labels(cards[-1]) == labels(cards[0])
    assert len(in_trash(tmp_path)) == 4


async def test_card_is_whole_again_when_there_are_more_items_than_before(tmp_path: Path) -> None:
    for number in range(3):
        note(tmp_path, f"n{number}.md")
        async with open_anew(tmp_path, deletes(f"n{number}.md")) as (house, _):
            await agree(house, f"cancella n{number}.md")
    note(tmp_path, "x.md")
    note(tmp_path, "y.md")
    async with open_anew(tmp_path, deletes("x.md", "y.md")) as (house, _):
        question = await asked(house, "cancella x.md e y.md")
        assert "• " in question.reply.plain
        await press(house, question, "Sì")
        note(tmp_path, "x.md")
        note(tmp_path, "y.md")

        brief = await asked(house, "cancella x.md e y.md")

        assert "\n" not in brief.reply.plain
        assert labels(brief)[-1] == "👁 Vedi l'elenco"
        listed = (await press(house, brief, "elenco"))[-1]
        assert isinstance(listed, TurnSuspended)
        assert "x.md" in listed.reply.plain
        assert "y.md" in listed.reply.plain


async def test_card_stays_whole_when_something_external_had_a_word(tmp_path: Path) -> None:
    for number in range(3):
        note(tmp_path, f"n{number}.md")
        async with open_anew(tmp_path, deletes(f"n{number}.md")) as (house, _):
            await agree(house, f"cancella n{number}.md")
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        question = await asked(house, "cancella quello", quoted="a.md is old")

    assert "messaggio che hai citato o inoltrato («a.md is old»)" in question.reply.plain
    assert "per 30 giorni" in question.reply.plain


@pytest.mark.parametrize(
    "words", ["sempre", "Sì, sempre.", "✅ Sempre per questa richiesta", "always"]
)
async def test_always_in_words_is_the_button(tmp_path: Path, words: str) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        await asked(house, "cancella a.md")
        events = await said(house, words)
        settled = [event for event in events if isinstance(event, QuestionSettled)]
        note(tmp_path)

        again = (await said(house, "cancella a.md"))[-1]

        assert isinstance(again, TurnClosed)
        assert consents(house) == ["given", "standing"]
    assert settled[0].text.endswith(", anche le prossime volte.")


async def test_always_in_words_where_it_is_not_offered_agrees_to_nothing(tmp_path: Path) -> None:
    note(tmp_path)
    async with open_anew(tmp_path, deletes("a.md")) as (house, _):
        question = await asked(house, "cancella", quoted="a.md")
        assert f"✅ {ALWAYS}" not in labels(question)

        events = await said(house, "sempre")

        settled = [event for event in events if isinstance(event, QuestionSettled)]
        assert settled[0].text.startswith("Qui un sì vale una volta sola")
        assert isinstance(events[-1], TurnSuspended)
        assert in_trash(tmp_path) == []
        assert await mandates(house) == []


async def test_list_and_no_may_be_typed_as_they_stand_on_their_buttons(tmp_path: Path) -> None:
    names = [f"{number}.tmp" for number in range(5)]
    for name in names:
        note(tmp_path, name)
    async with open_anew(tmp_path, sweeps()) as (house, _):
        question = await asked(house, "elimina i file temporanei")
        assert "👁 Vedi l'elenco" in labels(question)

        listed = (await said(house, "vedi l'elenco"))[-1]
        end = (await said(house, "✋ No"))[-1]

        assert isinstance(listed, TurnSuspended)
        assert all(name in listed.reply.plain for name in names)
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.DECLINED
        assert in_trash(tmp_path) == []
