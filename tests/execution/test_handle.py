"""Large observations: what the model sees of them, and reading on (S10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ErrorCode, ErrorInfo
from core.execution import handle
from core.observation import Observation, Provenance
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Ask, Rule

KEYS = {
    "ok", "scratchpad_id", "size_bytes", "kind", "summary", "metadata", "list_field", "count",
    "schema",
}  # fmt: skip


def shown(observation: Observation) -> dict[str, Any]:
    return handle.shown_handle(observation, handle.to_store(observation), "0123456789abcdef")


def one(**fields: Any) -> Observation:
    return Observation(ok=True, entries=({"ok": True, **fields},))


MANY = Observation(
    ok=True,
    entries=tuple({"ok": True, "path": f"/n/{n}", "size": n} for n in range(300)),
    metadata={"available": 300, "truncated": False},
)
LARGE = [
    Observation(ok=True, content="x" * 9000),
    Observation(ok=True, content={"a": ["y" * 9000]}),
    one(path="/n/a", text="z" * 9000),
    one(path="/n/a", text="漢" * 9000),
    one(path="/n/a", text="👩" * 9000, **{f"field_{n}": "👩" * 90 for n in range(100)}),
    one(**{f"field_{n}": "v" * 150 for n in range(400)}),
    MANY,
    Observation(
        ok=False,
        entries=tuple({"ok": False, "path": "/n/" + "x" * 90} for _ in range(100)),
        error=ErrorInfo(ErrorCode.NOT_FOUND, detail="none is there"),
    ),
]


@pytest.mark.parametrize("observation", LARGE)
def test_handle_has_these_keys_and_is_small_itself(observation: Observation) -> None:
    assert handle.shown_small(observation) is None
    found = shown(observation)

    assert set(found) == KEYS
    assert len(json.dumps(found, ensure_ascii=False).encode()) <= 4096
    assert found["ok"] is observation.ok
    assert found["size_bytes"] > 4096


@pytest.mark.parametrize(("text", "limit"), [("x", 4096), ("è", 2048), ("👩", 1024)])
def test_shown_small_measures_bytes_of_the_json(text: str, limit: int) -> None:
    around = len(json.dumps({"ok": True, "content": ""}))
    fits = (4096 - around) // len(text.encode())

    assert fits < limit
    assert handle.shown_small(Observation(ok=True, content=text * fits)) is not None
    assert handle.shown_small(Observation(ok=True, content=text * (fits + 1))) is None


def test_handle_of_a_text_shows_both_ends_and_how_much_is_left_out() -> None:
    found = shown(Observation(ok=True, content="a" * 500 + "b" * 8000 + "c" * 500))

    assert found["kind"] == "text"
    assert found["summary"].startswith("a" * 500)
    assert found["summary"].endswith("c" * 500)
    assert "8000" in found["summary"]
    assert "b" not in found["summary"]
    assert found["count"] is None


def test_handle_of_one_file_is_its_text_with_the_facts_beside_it() -> None:
    found = shown(one(path="/n/a", encoding="utf-8", text="z" * 9000))

    assert found["kind"] == "text"
    assert found["metadata"]["path"] == "/n/a"
    assert found["metadata"]["field"] == "text"
    assert found["count"] == 1


def test_handle_of_a_list_shows_count_and_keys_but_no_item() -> None:
    found = shown(MANY)

    assert found["kind"] == "list"
    assert found["list_field"] == "entries"
    assert found["count"] == 300
    assert found["schema"] == ["ok", "path", "size"]
    assert found["metadata"] == {"available": 300, "truncated": False}
    assert "/n/" not in json.dumps(found)


def test_handle_of_a_failure_keeps_the_reason() -> None:
    assert shown(LARGE[-1])["metadata"]["error"]["code"] == "not_found"


def test_handle_and_small_observation_from_outside_say_so() -> None:
    outside = {"ok": True, "provenance": Provenance.EXTERNAL}

    small = handle.shown_small(Observation(**outside, content="x"))  # type: ignore[arg-type]
    assert small is not None
    assert small["note"] == handle.OUTSIDE
    big = shown(Observation(**outside, content="x" * 9000))  # type: ignore[arg-type]
    assert big["metadata"]["note"] == handle.OUTSIDE


BIG = "".join(f"{n:06}\n" for n in range(20_000))  # 140 000 characters


async def test_scratchpad_read_in_every_mode(tmp_path: Path) -> None:
    wanted: list[dict[str, Any]] = [
        {"mode": "full"},
        {"mode": "head"},
        {"mode": "head", "n": "70"},
        {"mode": "tail", "n": 7, "start": None, "end": ""},
        {"mode": "range", "start": 70, "end": 84},
        {"mode": "range", "start": 139_993, "end": 999_999},
        {"mode": "range", "start": 500_000},
        {"mode": "head", "n": -5},
    ]

    def next_call(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
        entry = json.loads(asked.results[0])["scratchpad_id"]
        return [("scratchpad_read", {"id": entry, **wanted[len(asked.results) - 1]})]

    rules = [Rule(after=0, calls=[("read_files", {"paths": ["big.txt"]})])]
    rules += [Rule(after=n + 1, calls=next_call) for n in range(8)]
    rules += [Rule(after=9, text="Letto.")]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/big.txt").write_text(BIG)
        await ask(house, "leggi big.txt")

        full, head, seventy, tail, middle, end, beyond, one_ = (
            json.loads(text) for text in model.asked[-1].results[1:]
        )
        assert full["content"] == BIG[:8000]
        assert full["metadata"] == {"start": 0, "end": 8000, "size": 140_000, "truncated": True}
        assert head["content"] == BIG[:2000]
        assert seventy["content"] == BIG[:70]
        assert tail["content"] == BIG[-7:]
        assert middle["content"] == BIG[70:84]
        assert end["content"] == BIG[-7:]
        assert beyond["content"] == ""
        assert one_["content"] == BIG[:1]


@pytest.mark.parametrize(
    "args",
    [
        {"mode": "middle"},
        {"mode": "head", "colour": "red"},
        {"mode": "head", "n": 1.5},
        {"mode": "head", "n": True},
        {"mode": "range", "start": []},
    ],
)
async def test_scratchpad_read_refuses_what_it_does_not_know(
    tmp_path: Path, args: dict[str, Any]
) -> None:
    def call(asked: Ask) -> list[tuple[str, dict[str, Any]]]:
        return [("scratchpad_read", {"id": json.loads(asked.results[0])["scratchpad_id"], **args})]

    rules = [
        Rule(after=0, calls=[("read_files", {"paths": ["big.txt"]})]),
        Rule(after=1, calls=call),
        Rule(after=2, text="No."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/big.txt").write_text(BIG)
        await ask(house, "leggi big.txt")

        assert json.loads(model.asked[2].results[1])["error"]["code"] == "invalid_args"


async def test_scratchpad_read_before_there_is_an_entry_is_no_tool(tmp_path: Path) -> None:
    call = ("scratchpad_read", {"id": "0123456789abcdef", "mode": "full"})
    rules = [Rule(after=0, calls=[call]), Rule(after=1, text="No.")]
    async with open_scripted(tmp_path, rules) as (house, model):
        await ask(house, "leggi")

        assert json.loads(model.asked[1].last_result)["error"]["code"] == "unknown_tool"
