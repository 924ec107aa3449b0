"""`metnos turns` after a few requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from tests.cli.conftest import Cli
from tests.support.scripted_model import Rule, ScriptedModel


@pytest.fixture
def asked(cli: Cli, script: Callable[[Sequence[Rule]], ScriptedModel]) -> list[str]:
    script(
        [
            Rule(user="time", after=0, calls=[("get_now", {"timezone": "Tokyo"})]),
            Rule(user="time", after=1, text="It is late."),
            Rule(user="hello", text="Hello."),
        ]
    )
    said = [cli("chat", "--once", text, "--json").out for text in ("hello", "the time?")]
    return [json.loads(text)["turn_id"] for text in said]


def test_list_shows_the_newest_first(cli: Cli, asked: list[str]) -> None:
    ran = cli("turns", "list")

    assert [line.split()[0] for line in ran.out.splitlines()] == [i[:8] for i in asked[::-1]]
    assert "the time?" in ran.out


def test_list_limit_counts(cli: Cli, asked: list[str]) -> None:
    assert len(json.loads(cli("turns", "list", "--limit", "1", "--json").out)) == 1


def test_list_of_a_new_home_says_that_there_are_none(cli: Cli) -> None:
    ran = cli("turns", "list")

    assert (ran.status, ran.out) == (0, "No requests yet.\n")


def test_show_by_the_beginning_of_its_id_tells_the_steps(cli: Cli, asked: list[str]) -> None:
    ran = cli("turns", "show", asked[1][:8])

    assert "1 ✓ get_now" in ran.out
    assert "Outcome: answer" in ran.out
    assert ran.out.endswith("\nIt is late.\n")


def test_show_as_json_holds_the_whole_log_line(cli: Cli, asked: list[str]) -> None:
    said = json.loads(cli("turns", "show", asked[1], "--json").out)

    assert said["answer"] == "It is late."
    assert said["log"]["turn_id"] == asked[1]
    assert [step["tool"] for step in said["log"]["steps"]] == ["get_now"]


@pytest.mark.parametrize("id", ["", "abc", "ffffffffffff", "%", "'; --"])
def test_show_of_an_unknown_one_fails_politely(cli: Cli, asked: list[str], id: str) -> None:
    ran = cli("turns", "show", id)

    assert ran.status == 1
    assert "Traceback" not in ran.err
