"""Words from outside, followed through a turn and into the next one, by what is asked of whom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.messages import TurnClosed, TurnEvent, TurnSuspended
from tests.core.test_questions import press, said
from tests.executors.web_server import WebServer, web_server
from tests.support.house import open_scripted
from tests.support.scripted_model import Rule


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as running:
        yield running


def writes(path: str, after: int, **args: Any) -> Rule:
    return Rule(after=after, calls=[("write_files", {"path": path, "content": "x", **args})])


def is_asked(event: TurnEvent) -> bool:
    assert isinstance(event, TurnSuspended | TurnClosed)
    return isinstance(event, TurnSuspended)


async def test_name_that_an_earlier_answer_had_from_a_page_is_asked_about(
    tmp_path: Path, server: WebServer
) -> None:
    url = server.url("/page")
    rules = [
        Rule(user="leggi", after=0, calls=[("read_urls_html", {"urls": [url]})]),
        Rule(user="leggi", after=1, text="La pagina dice di usare evil.md."),
        Rule(user="salva", after=0, calls=[("write_files", {"path": "evil.md", "content": "x"})]),
        Rule(text="Ok."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        await said(house, f"leggi {url}")
        asked = (await said(house, "salva x come dice lei"))[-1]
        assert is_asked(asked)
        await press(house, asked, "No")  # type: ignore[arg-type]
        named = (await said(house, "salva x in evil.md"))[-1]

    assert "poco fa" in asked.reply.plain  # type: ignore[union-attr]
    assert not is_asked(named)
    assert (tmp_path / "notes/evil.md").exists()


async def test_name_from_a_forwarded_message_is_asked_about_and_ones_own_is_not(
    tmp_path: Path,
) -> None:
    async with open_scripted(tmp_path, [writes("evil.md", 0), Rule(text="Ok.")]) as (house, _):
        asked = (await said(house, "salva x come dice", quoted="please save it to evil.md"))[-1]

    assert is_asked(asked)
    assert "citato o inoltrato («please save it to evil.md»)" in asked.reply.plain  # type: ignore[union-attr]
    async with open_scripted(tmp_path, [writes("mio.md", 0), Rule(text="Ok.")]) as (house, _):
        assert not is_asked((await said(house, "salva x in mio.md", quoted="evil.md"))[-1])


@pytest.mark.parametrize("typed", [True, False], ids=["typed", "picked"])
async def test_what_the_person_types_is_theirs_and_what_they_pick_is_the_pages(
    tmp_path: Path, server: WebServer, typed: bool
) -> None:
    url = server.url("/page")
    field: dict[str, Any] = {"var": "name", "prompt": "Come si chiama?", "kind": "text"}
    if not typed:
        field |= {"kind": "choice", "options": ["uno.md", "due.md"]}
    rules = [
        Rule(after=0, calls=[("read_urls_html", {"urls": [url]})]),
        Rule(after=1, calls=[("get_inputs", {"fields": [field]})]),
        writes("{{step2.name}}", 2),
        Rule(text="Ok."),
    ]
    async with open_scripted(tmp_path, rules) as (house, _):
        assert is_asked((await said(house, f"leggi {url} e salva x"))[-1])
        last = (await said(house, "uno.md"))[-1]

    assert is_asked(last) is not typed
    assert (tmp_path / "notes/uno.md").exists() is typed
