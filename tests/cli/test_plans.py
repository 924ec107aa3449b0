"""`metnos plans`: what is remembered is seen, pinned and taken away beside a running engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from bot.cli.beside import read_memory, write_memory, write_store
from core.clock import SystemClock
from core.config import load_settings
from core.levels.champions import Status, Tally
from core.levels.reuse import Lesson
from core.plan import Plan, Step
from core.store import actors, antis, autopath, embedder_floors, observations, plan_cache
from core.store.database import Transaction
from core.store.embedder_floors import Floor
from core.store.observations import Observed
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("prepared")


def teach(*texts: str) -> list[int]:
    """Rows of the host in a home that was never run."""
    settings = load_settings()
    clock = SystemClock()
    host = write_store(settings, lambda tx: actors.ensure_local_host(tx, clock))

    async def work(tx: Transaction) -> list[int]:
        ids = []
        for text in texts:
            lesson = Lesson(
                text, Plan((Step("get_now", {}),)), (), (), text, "", "", text, "t", "f", False
            )
            now = datetime.now(UTC)
            ids.append(await plan_cache.keep(tx, host.id, "en", lesson, turn_id=text, now=now))
            await plan_cache.note_refused(tx, ids[-1], "other_values")
        return ids

    return write_memory(settings, work)


def test_plans_are_listed_with_why_they_did_not_serve_and_one_is_shown_whole(cli: Cli) -> None:
    assert cli("plans", "list").out == "No plan in memory.\n"
    [id] = teach("what time is it")

    listed, shown = cli("plans", "list").out, cli("plans", "show", str(id)).out
    data = json.loads(cli("plans", "show", str(id), "--json").out)

    assert "«what time is it»" in listed
    assert "the values do not fit" in listed
    assert "not served, the values do not fit" in shown
    assert "1 get_now" in shown
    assert "whoever asks the same" in shown
    assert data["why"] == "other_values"
    assert data["plan"] == {"steps": [{"tool": "get_now", "args": {}}]}
    assert [one["id"] for one in json.loads(cli("plans", "list", "--json").out)] == [id]


def test_plan_is_approved_taken_back_and_forgotten(cli: Cli) -> None:
    [id] = teach("what time is it")

    assert cli("plans", "approve", str(id)).out == f"Plan {id} approved.\n"
    assert json.loads(cli("plans", "list", "--json").out)[0]["approved"] is True
    assert cli("plans", "approve", str(id), "--off").status == 0
    assert json.loads(cli("plans", "list", "--json").out)[0]["approved"] is False
    assert cli("plans", "delete", str(id)).status == 0
    for command in ("show", "approve", "delete"):
        assert cli("plans", command, str(id)).status == 1


@pytest.mark.parametrize("lang", ["it", "en"])
def test_flush_needs_a_word_or_yes(cli: Cli, lang: str) -> None:
    cli.env(METNOS_LANG=lang)
    teach("one", "two")

    refused = cli("plans", "flush", stdin="flush\n")

    assert refused.status == 1
    assert "--yes" in refused.err
    assert len(read_memory(load_settings(), plan_cache.listed)) == 2
    assert "2" in cli("plans", "flush", "--yes").out
    assert read_memory(load_settings(), plan_cache.listed) == []


@pytest.mark.parametrize(("word", "left"), [("flush", 0), ("yes", 1), ("", 1)])
def test_flush_at_a_terminal_takes_only_its_word(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, word: str, left: int
) -> None:
    teach("one")
    monkeypatch.setattr("bot.cli.plans.is_asked", lambda: True)

    cli("plans", "flush", stdin=f"{word}\n")

    assert len(read_memory(load_settings(), plan_cache.listed)) == left


def floor_kept(name: str) -> Floor | None:
    return read_memory(load_settings(), lambda tx: embedder_floors.find(tx, name))


def test_calibrating_measures_the_shipped_pairs_and_keeps_the_floor(cli: Cli) -> None:
    data = json.loads(cli("plans", "calibrate", "--embedder", "hashing", "--json").out)

    assert data["source"] == "shipped"
    assert data["pairs"] > 90
    kept = floor_kept(data["embedder"])
    assert kept is not None
    assert (kept.floor, kept.pairs, kept.lost) == (data["floor"], data["pairs"], data["lost"])


@pytest.mark.parametrize("lang", ["it", "en"])
def test_calibrating_again_by_a_file_takes_the_place_of_the_first(cli: Cli, lang: str) -> None:
    cli.env(METNOS_LANG=lang, METNOS_EMBEDDER="hashing")
    cli("plans", "calibrate")
    politely: list[dict[str, object]] = [
        {"a": "che ore sono?", "b": f"mi dici l'ora{', grazie' * n}?"} for n in range(40)
    ]
    others: list[dict[str, object]] = [
        {"a": "copia le note", "b": "sposta le note", "reusable": False}
    ]
    file = cli.folder / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, politely + others)), encoding="utf-8")

    ran = cli("plans", "calibrate", "--pairs", str(file))

    assert ran.status == 0
    assert "40" in ran.out.splitlines()[0]
    assert ran.out.count("\n") == 5
    name = next(word for word in ran.out.split() if word.startswith("hashing-1")).rstrip(":")
    kept = floor_kept(name)
    assert kept is not None
    assert (kept.pairs, kept.source) == (40, "file")


def test_calibrating_takes_the_plans_in_memory_when_they_make_enough_pairs(cli: Cli) -> None:
    teach(*(f"che ore sono{', grazie' * n}" for n in range(9)))

    data = json.loads(cli("plans", "calibrate", "--embedder", "hashing", "--json").out)

    assert (data["source"], data["pairs"]) == ("plans", 36)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"\xff\xfe", "no text file"),
        (b"{}", "line 1"),
        (b"", "At least 30"),
        (b'{"a": "che ore sono?", "b": "mi dici l\'ora?"}', "there is 1"),
    ],
)
def test_calibrating_by_a_bad_file_says_so_and_leaves_the_floor(
    cli: Cli, content: bytes | None, said: str
) -> None:
    before = json.loads(cli("plans", "calibrate", "--embedder", "hashing", "--json").out)
    file = cli.folder / "pairs.jsonl"
    if content is not None:
        file.write_bytes(content)

    ran = cli("plans", "calibrate", "--embedder", "hashing", "--pairs", str(file))

    assert ran.status == 1
    assert said in ran.err
    kept = floor_kept(before["embedder"])
    assert kept is not None
    assert kept.floor == before["floor"]


@pytest.mark.parametrize(
    ("setting", "arguments", "said"),
    [
        ({"METNOS_EMBEDDER": "off"}, (), "METNOS_EMBEDDER=off"),
        ({}, ("--embedder", "endpoint"), "METNOS_EMBED_BASE_URL"),
        ({"METNOS_EMBED_BASE_URL": "http://127.0.0.1:9"}, (), "does not answer"),
    ],
)
def test_calibrating_what_is_not_there_says_what_is_missing(
    cli: Cli, setting: dict[str, str], arguments: tuple[str, ...], said: str
) -> None:
    cli.env(**setting)

    ran = cli("plans", "calibrate", *arguments)

    assert ran.status == 1
    assert said in ran.err


def test_endpoint_without_an_address_is_no_setting(cli: Cli) -> None:
    cli.env(METNOS_EMBEDDER="endpoint")

    assert "METNOS_EMBED_BASE_URL" in cli("plans", "list").err


def teach_merit() -> None:
    """One plan by merit, and one that was disliked."""
    now = datetime.now(UTC)
    plan = Plan((Step("get_now", {}),))
    seen = Observed(
        "t1", "a1", "en", "i", "time", "c", plan, "get_now", "f", "t", "s", "engine", 9, now
    )

    async def work(tx: Transaction) -> None:
        await observations.record(tx, seen)
        await autopath.teach(tx, seen, Tally(up=2, ran=1), Status.ACTIVE)
        await autopath.crown(tx, "i", "c")
        until = now + timedelta(days=30)
        await antis.strike(
            tx, "a1", "i", "g", said="time", way="list_dirs", fails=3, until=until, now=now
        )

    write_memory(load_settings(), work)


@pytest.mark.parametrize("lang", ["it", "en"])
def test_plans_by_merit_are_listed_and_each_layer_is_flushed_by_itself(
    cli: Cli, lang: str
) -> None:
    cli.env(METNOS_LANG=lang)
    teach("one")
    teach_merit()

    listed = cli("plans", "list").out
    data = json.loads(cli("plans", "list", "--json").out)
    assert ("in uso" if lang == "it" else "in use") in listed
    assert "★" in listed
    assert [one["layer"] for one in data] == ["l0", "l1", "anti"]
    assert (data[1]["up"], data[1]["champion"], data[2]["reason"]) == (2, True, "disliked")

    assert "1" in cli("plans", "flush", "--yes", "--layer", "l1").out
    left = [one["layer"] for one in json.loads(cli("plans", "list", "--json").out)]
    assert left == ["l0"]
    teach_merit()
    assert cli("plans", "delete", "--layer", "l1", str(data[1]["id"] + 1)).status == 0
    assert cli("plans", "flush", "--yes", "--layer", "l0").status == 0
    assert [one["layer"] for one in json.loads(cli("plans", "list", "--json").out)] == ["anti"]
    assert cli("plans", "flush", "--yes").status == 0
    assert json.loads(cli("plans", "list", "--json").out) == []
    assert cli("plans", "flush", "--yes", "--layer", "l2").status != 0
