"""What a server says of a tool: reduced to a manifest, or refused with a word."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from core.catalog.foreign import (
    Approval,
    clean,
    executor_of,
    is_server_name,
    seen_tool,
    with_foreign,
)
from core.catalog.foreign_schema import ForeignRefused
from core.catalog.loaded import NO_SDK, Catalog
from core.catalog.manifest import Effect
from core.execution import guests
from core.levels.shape import Call, Stage, next_state
from core.vocabulary import Category, category_of, foreign_name, is_executor_name, is_read_only

READS = Approval(Effect.PURE)
ACTS = Approval(Effect.BLIND)


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties)[:1]}


def made(spec: dict[str, Any], approval: Approval = READS, tool: str = "look_up") -> Any:
    return executor_of("wiki", seen_tool(tool, "Looks up a word. More.", spec), approval)


def test_an_approved_tool_is_like_an_executor() -> None:
    spec = schema(
        pageTitle={"type": "string", "description": "The\u202e page\x1b[31m title"},
        limit={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
        tags={"type": "array", "items": {"$ref": "#/$defs/Tag"}},
    )
    spec["$defs"] = {"Tag": {"type": "string", "enum": ["a", "b"], "title": "Tag"}}

    one = made(spec)

    assert one.name == "mcp_get_wiki_look_up"
    assert one.foreign.names == {"page_title": "pageTitle"}
    assert one.manifest.properties["limit"]["type"] == "integer"
    assert one.manifest.properties["tags"]["items"]["enum"] == ["a", "b"]
    assert one.manifest.properties["page_title"]["description"]["en"] == "The page[31m title"
    assert one.manifest.args["required"] == ["limit"]
    assert one.manifest.head("it") == "wiki: Looks up a word."
    assert one.manifest.provenance == "external"


def test_names_say_what_a_tool_may_do() -> None:
    reads, acts = made(schema()), made(schema(), ACTS)

    assert (reads.name, acts.name) == ("mcp_get_wiki_look_up", "mcp_act_wiki_look_up")
    assert category_of(reads.name) is Category.PRODUCES
    assert category_of(acts.name) is Category.ACTS
    assert is_read_only(reads.name)
    assert not is_read_only(acts.name)
    assert next_state(Stage.START, Call(reads.name)) is Stage.FED
    assert next_state(Stage.START, Call(acts.name)) is Stage.CLOSED
    assert not is_executor_name(reads.name)


@pytest.mark.parametrize("tool", ["créer Événement", "日本語", "a" * 128, "Ünï-cödé.v2", "🙂"])
def test_names_of_any_letters_become_names_of_ours(tool: str) -> None:
    name = foreign_name("wiki", tool, pure=True)

    assert len(name) <= 64
    assert name.isascii()
    assert name.startswith("mcp_get_wiki")
    assert name != foreign_name("wiki", f"{tool}x", pure=True)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"type": "array"}, "schema"),
        (schema(a={"oneOf": [{"type": "string"}, {"type": "integer"}]}), "schema"),
        (schema(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}), "schema"),
        (schema(a={}), "schema"),
        (schema(a={"$ref": "https://evil.example/schema"}), "schema"),
        (schema(a={"$ref": "#/nowhere"}), "schema"),
        (schema(a={"$ref": "#/properties/a"}), "schema"),
        (schema(aB={"type": "string"}, a_b={"type": "string"}), "schema"),
        (schema(a={"enum": ["plain", "with\u200bhidden"]}), "schema"),
        ({"type": "object", "required": ["ghost"]}, "schema"),
        (schema(**{f"a{n}": {"type": "string"} for n in range(17)}), "too_many_arguments"),
        (schema(a={"enum": [f"{n:0100}" for n in range(60)]}), "schema_too_large"),
    ],
)
def test_what_cannot_be_used_is_refused(spec: dict[str, Any], reason: str) -> None:
    with pytest.raises(ForeignRefused) as caught:
        made(spec)

    assert caught.value.reason == reason


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    node = {"type": "object", "properties": {c: {"$ref": "#/$defs/Node"} for c in "abcdef"}}
    spec = {**schema(a={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}

    with pytest.raises(ForeignRefused, match="nests too deep"):
        made(spec)


def test_a_huge_schema_is_not_even_kept() -> None:
    with pytest.raises(ForeignRefused) as caught:
        seen_tool("big", "", schema(a={"type": "string", "description": "x" * 70_000}))

    assert caught.value.reason == "too_large"


@pytest.mark.parametrize(
    ("approval", "reason"),
    [
        (Approval(Effect.CHECKABLE), "effect"),
        (Approval(Effect.BLIND, rights=("llm:local",)), "right"),
        (Approval(Effect.PURE, rights=("mail:send",)), "pure_rights"),
        (Approval(Effect.PURE, types={"a": "secret"}), "type"),
        (Approval(Effect.PURE, types={"b": "url"}), "argument"),
    ],
)
def test_what_cannot_be_approved_is_refused(approval: Approval, reason: str) -> None:
    with pytest.raises(ForeignRefused) as caught:
        made(schema(a={"type": "string"}), approval)

    assert caught.value.reason == reason


def test_any_other_word_is_another_digest() -> None:
    first = seen_tool("t", "Reads.", schema(a={"type": "string"}))

    assert first.digest == seen_tool("t", "Reads.", schema(a={"type": "string"})).digest
    # What cannot be seen counts too, though it is not shown.
    hidden = seen_tool("t", "Reads.\u200b", schema(a={"type": "string"}))
    assert hidden.description == first.description
    assert hidden.digest != first.digest
    assert first.digest != seen_tool("t", "Reads.", schema(a={"type": "integer"})).digest


def test_text_of_strangers_is_bounded_and_visible() -> None:
    assert clean("a\u202eb\x1b[2J\r\nc\u200d\ue000\t d", most=50) == "ab[2J c d"
    assert len(clean("x" * 500, most=60)) == 60
    long = made(schema(), Approval(Effect.PURE, description="Do this now " * 100))
    assert len(long.manifest.description["en"]) <= 240
    assert 8 <= len(long.manifest.head("en")) <= 64


def test_tools_are_the_hosts_and_stand_beside_executors() -> None:
    empty = Catalog({}, (), NO_SDK, "s")
    reads = made(schema())

    whole = with_foreign(empty, [reads])

    assert list(whole.offered) == [reads.name]
    assert whole.signature != empty.signature
    assert with_foreign(empty, []) is empty
    # Two that would carry one name: neither can be told from the other.
    assert not with_foreign(empty, [reads, made(schema(), tool="look-up")]).executors
    assert not guests.may_use(reads.manifest, guests.grantable_rights() | {"mcp:call"})
    assert not guests.is_public(reads.manifest)


def test_names_of_servers() -> None:
    assert is_server_name("git2")
    assert not any(map(is_server_name, ["", "2x", "A", "a_b", "a" * 17, "à"]))


def test_who_has_no_servers_does_not_pay_for_the_library() -> None:
    code = "import bot.app, bot.cli.mcp, core.foreign.servers, sys; print('mcp' in sys.modules)"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout == "False\n"
