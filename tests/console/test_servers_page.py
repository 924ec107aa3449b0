"""Connected servers of tools on the page of programs."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from core.catalog.foreign import Approval, SeenTool, seen_tool
from core.catalog.manifest import Effect
from core.store import mcp
from core.store.mcp import Server
from tests.console.conftest import Console

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
ODD = {"type": "object", "properties": {"a": {}}}


def tool(name: str, said: str = "Does it.", schema: Any = TEXT) -> SeenTool:
    return seen_tool(name, said, schema)


async def connect(console: Console) -> dict[str, SeenTool]:
    """A program with a tool in every state, and a service that lists none."""
    now, house = console.house.clock.now(), console.house
    before = {name: tool(name) for name in ("reads", "acts", "other", "left", "fresh", "odd")}
    before["odd"] = tool("odd", schema=ODD)
    said = {**before, "other": tool("other", "Sends it to <b>all</b>.")}
    del said["left"]
    async with house.stores.main.write() as tx:
        program = Server("raw", console.host.id, ("/bin/raw", "--here"), env=("TOKEN",))
        assert await mcp.add(tx, house.stores.vault, program, {"TOKEN": "canary-91-value"}, now)
        service = Server("far", console.host.id, url="https://far.example/mcp")
        assert await mcp.add(tx, house.stores.vault, service, {}, now)
        await mcp.saw(tx, "raw", list(before.values()))
        for name, approval in {
            "reads": Approval(Effect.PURE),
            "acts": Approval(Effect.BLIND, ("mail:send",)),
            "other": Approval(Effect.KEYED),
            "left": Approval(Effect.PURE),
        }.items():
            assert await mcp.approve(tx, "raw", before[name], approval, now)
        await mcp.saw(tx, "raw", list(said.values()))
    return said


def parts(page: str) -> dict[str, str]:
    """The words of each tool, by its name."""
    found = re.findall(r'<li id="raw-(\w+)">(.*?)</li>', page, re.DOTALL)
    plain = {name: re.sub(r"<[^>]+>", " ", html) for name, html in found}
    return {name: " ".join(unescape(text).split()) for name, text in plain.items()}


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        (
            "it",
            {
                "reads": ("in uso", "legge", "mcp_get_raw_reads", "Non lo chiedo"),
                "acts": ("in uso", "mcp_act_raw_acts", "Lo chiedo ogni volta", "mail:send"),
                "other": ("cambiato", "Dice di sé altro", "metnos mcp approve raw"),
                "left": ("sparito", "non lo elenca più"),
                "fresh": ("da approvare", "mai stato approvato"),
                "odd": ("Rifiutato", "una forma che non so usare"),
            },
        ),
        (
            "en",
            {
                "reads": ("in use", "mcp_get_raw_reads", "Not asked for"),
                "acts": ("in use", "mcp_act_raw_acts", "Asked for every time", "mail:send"),
                "other": ("says something else", "metnos mcp approve raw"),
                "left": ("lists it no more",),
                "fresh": ("never approved",),
                "odd": ("Refused", "form that I cannot use"),
            },
        ),
    ],
)
async def test_each_tool_says_what_it_does_what_is_pinned_and_why_it_is_not_used(
    console: Console, lang: str, words: dict[str, tuple[str, ...]]
) -> None:
    said = await connect(console)

    page = (await console.get("/executors", lang=lang)).text

    found = parts(page)
    assert sorted(found) == sorted(words)
    for name, wanted in words.items():
        assert [one for one in wanted if one not in found[name]] == []
    assert found["reads"].count(said["reads"].digest[:16]) == 2  # approved, and the same now
    assert found["other"].count(said["other"].digest[:16]) == 1
    assert "mcp_act_raw_other" not in found["other"]
    assert "TOKEN" in page
    assert "canary-91-value" not in page
    assert "https://far.example/mcp" in page
    assert "<b>all</b>" not in page
