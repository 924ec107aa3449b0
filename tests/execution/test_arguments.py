"""References resolved once, then schema, then one canonical form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from core.catalog.manifest import Manifest, parse_manifest
from core.errors import CallRefused, ErrorCode
from core.execution import arguments
from core.observation import Observation
from tests.support.executors import REPO, manifest_toml


class Steps:
    """Earlier observations by number."""

    def __init__(self, *observations: Observation) -> None:
        self._observations = observations

    def step(self, number: int) -> Observation:
        if not 1 <= number <= len(self._observations):
            raise CallRefused(ErrorCode.BAD_REFERENCE, f"step {number} does not exist")
        return self._observations[number - 1]

    def runtime(self, key: str) -> Any:
        if key == "today":
            return "2026-11-30"
        raise CallRefused(ErrorCode.BAD_REFERENCE, key)


def manifest(name: str) -> Manifest:
    return parse_manifest((REPO / "executors" / name / "manifest.toml").read_bytes(), folder=name)


def entries(*items: Mapping[str, Any]) -> Observation:
    return Observation(ok=True, entries=tuple({"ok": True, **item} for item in items))


ONE = entries({"path": "/n/a.md", "text": "hello", "size": 5, "inner": {"deep": [1, 2]}})
TWO = entries({"path": "/n/a.md"}, {"path": "/n/b.md"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{step1.text}}", "hello"),
        ("{{ step1.text }}", "hello"),
        ("${step1.size}", 5),
        ("{{step1.inner.deep.1}}", 2),
        ("{{step1.entries}}", [dict(ONE.entries[0])] if ONE.entries else []),
        ("size: {{step1.size}} of {{step1.text}}", "size: 5 of hello"),
        ("${RUNTIME:today}", "2026-11-30"),
        ("on ${RUNTIME:today}.", "on 2026-11-30."),
        ("no reference {{here}}", "no reference {{here}}"),
        ("{{step1.count}}", 1),
    ],
)
def test_resolve_references_gives_the_value(value: str, expected: Any) -> None:
    resolved = arguments.resolve_references({"x": value}, None, Steps(ONE))

    assert resolved == {"x": expected}


@pytest.mark.parametrize(
    "value",
    ["{{step2.text}}", "{{step0.text}}", "{{step1.nothing}}", "{{step1}}", "${RUNTIME:secret}",
     "${FILLER:x}", "{{step1.}}", "{{step1..text}}", "{{step1.text", "${step1.text",
     "a list {{step1.entries}} in text", "{{step1.__class__}}"],
)  # fmt: skip
def test_resolve_references_refuses_what_is_not_there(value: str) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.resolve_references({"x": value}, None, Steps(ONE))

    assert refused.value.code is ErrorCode.BAD_REFERENCE


def test_resolve_references_never_scans_what_an_observation_brought() -> None:
    hostile = entries({"text": "{{step2.path}} ${RUNTIME:today}"})

    resolved = arguments.resolve_references({"x": "{{step1.text}}"}, None, Steps(hostile, ONE))

    assert resolved == {"x": "{{step2.path}} ${RUNTIME:today}"}


def test_resolve_references_of_several_entries_advises_from_step() -> None:
    with pytest.raises(CallRefused, match="from_step"):
        arguments.resolve_references({"x": "{{step1.path}}"}, None, Steps(TWO))


def test_from_step_becomes_entries_where_the_tool_has_them() -> None:
    resolved = arguments.resolve_references({"from_step": 1}, manifest("sort_entries"), Steps(TWO))

    assert [item["path"] for item in resolved["entries"]] == ["/n/a.md", "/n/b.md"]


def test_from_step_becomes_the_list_argument_of_a_tool_without_entries() -> None:
    found = entries({"url": "https://a.example/"}, {"url": "https://b.example/"})

    resolved = arguments.resolve_references({"from_step": "1"}, manifest("get_urls"), Steps(found))

    assert resolved == {"urls": ["https://a.example/", "https://b.example/"]}


@pytest.mark.parametrize("raw", [0, 2, "x", True, 1.5, [1]])
def test_from_step_that_is_no_earlier_step_is_refused(raw: Any) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.resolve_references({"from_step": raw}, manifest("sort_entries"), Steps(TWO))

    assert refused.value.code is ErrorCode.BAD_REFERENCE


@pytest.mark.parametrize("bad", ["a\x00b", "\ud800", {"deep": ["\udc00"]}, [{"\ud800": 1}]])
def test_resolve_references_refuses_broken_text(bad: Any) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.resolve_references({"x": bad}, None, Steps())

    assert refused.value.code is ErrorCode.BAD_TEXT


def test_resolve_references_refuses_deep_nesting() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]

    with pytest.raises(CallRefused) as refused:
        arguments.resolve_references({"x": deep}, None, Steps())

    assert refused.value.code is ErrorCode.INVALID_ARGS


def test_validate_drops_empty_optional_arguments() -> None:
    args = {"paths": ["a"], "tail_lines": 0, "head_lines": None, "max_bytes": ""}

    assert arguments.validate(args, manifest("read_files")) == {"paths": ["a"]}


def test_validate_keeps_a_zero_that_means_something() -> None:
    args = {"base_path": "x", "size_max": 0}

    assert arguments.validate(args, manifest("find_files")) == args


def test_validate_makes_numbers_of_texts_and_lists_of_single_items() -> None:
    args = {"paths": "a.md", "tail_lines": "3"}

    valid = arguments.validate(args, manifest("read_files"))

    assert valid == {"paths": ["a.md"], "tail_lines": 3}


@pytest.mark.parametrize(
    "args",
    [{"paths": ["a"], "surprise": 1}, {"paths": [1]}, {"paths": ["a"], "tail_lines": "many"},
     {"paths": ["a"], "tail_lines": -1}, {"paths": {"a": 1}}],
)  # fmt: skip
def test_validate_refuses_what_the_schema_does_not_allow(args: dict[str, Any]) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.validate(args, manifest("read_files"))

    assert refused.value.code is ErrorCode.INVALID_ARGS


def test_validate_of_too_many_items_says_how_many_it_may_be_and_none_of_them() -> None:
    items = [{"ok": True, "path": f"/n/{number}.txt"} for number in range(600)]

    with pytest.raises(CallRefused) as refused:
        arguments.validate({"entries": items, "dst": "/n/dir"}, manifest("move_files"))

    assert refused.value.code is ErrorCode.TOO_MANY
    assert refused.value.params == {"argument": "entries", "count": 600, "limit": 500}
    assert "600" in refused.value.detail
    assert "/n/" not in refused.value.detail


def test_validate_of_a_long_value_says_what_is_against_it() -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.validate({"patterns": [{"glob": "x" * 900}]}, manifest("find_files"))

    assert "against type string" in refused.value.detail


def test_validate_without_any_of_a_needed_group_says_which() -> None:
    with pytest.raises(CallRefused, match="paths or from_step") as refused:
        arguments.validate({"tail_lines": 3}, manifest("read_files"))

    assert refused.value.code is ErrorCode.MISSING_INPUT


def test_canonicalise_gives_paths_urls_and_sizes_one_form() -> None:
    found = arguments.canonicalise(
        {"base_path": "x", "size_min": "2 GB"}, manifest("find_files"), lambda p: f"/root/{p}"
    )

    assert found == {"base_path": "/root/x", "size_min": 2_000_000_000}
    urls = arguments.canonicalise({"urls": ["Example.COM:443/a"]}, manifest("get_urls"), str)
    assert urls == {"urls": ["https://example.com/a"]}


def test_canonicalise_makes_paths_of_items_canonical_where_they_will_be_opened() -> None:
    args = {"entries": [{"path": "x", "n": 1}, {"n": 2}]}

    opened = arguments.canonicalise(args, manifest("read_files"), lambda p: f"/root/{p}")
    sorted_ = arguments.canonicalise(args, manifest("sort_entries"), lambda p: f"/root/{p}")

    assert opened == {"entries": [{"path": "/root/x", "n": 1}, {"n": 2}]}
    assert sorted_ == args


@pytest.mark.parametrize("path", [None, 3, ["a"], {"a": 1}])
def test_canonicalise_refuses_an_item_whose_path_is_no_text(path: Any) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.canonicalise({"entries": [{"path": path}]}, manifest("read_files"), str)

    assert refused.value.code is ErrorCode.INVALID_ARGS


def with_runtime_argument() -> Manifest:
    text = manifest_toml(
        args="""
[args.properties.lang]
type = "string"
description = { it = "lingua", en = "language" }
x-metnos-type = "free"
x-runtime-resolved = true
""",
    )
    closed = "additionalProperties = false"
    needed = text.replace(closed, f'{closed}\nrequired = ["lang"]')
    files = f'"main.py" = "{"0" * 64}"'
    return parse_manifest((needed + files).encode(), folder="get_now")


def test_validate_fills_what_the_runtime_knows_and_no_model_may_give() -> None:
    tool = with_runtime_argument()

    assert arguments.validate({}, tool, lambda key: f"<{key}>") == {"lang": "<lang>"}
    arguments.validate_partly({}, tool, promised=frozenset())
    with pytest.raises(CallRefused, match="not yours"):
        arguments.validate({"lang": "en"}, tool, lambda key: key)
    assert "lang" not in tool.tool_schema("en")["properties"]


def test_other_step_becomes_the_second_list() -> None:
    args = {"from_step": 1, "other_step": "2"}

    resolved = arguments.resolve_references(args, manifest("compare_entries"), Steps(TWO, ONE))

    assert len(resolved["entries"]) == 2
    assert len(resolved["other_entries"]) == 1


@pytest.mark.parametrize("raw", [1, 3, "x", True, [2]])
def test_other_step_that_is_no_other_earlier_step_is_refused(raw: Any) -> None:
    with pytest.raises(CallRefused) as refused:
        arguments.resolve_references(
            {"from_step": 1, "other_step": raw}, manifest("compare_entries"), Steps(TWO, ONE)
        )

    assert refused.value.code is ErrorCode.BAD_REFERENCE


def test_other_step_of_a_tool_with_one_list_is_an_unknown_argument() -> None:
    tool = manifest("sort_entries")
    args = {"from_step": 1, "other_step": 2, "by": "name"}

    with pytest.raises(CallRefused) as refused:
        arguments.validate(arguments.resolve_references(args, tool, Steps(TWO, ONE)), tool)

    assert refused.value.code is ErrorCode.INVALID_ARGS
