"""Other names of arguments."""

from __future__ import annotations

import pytest

from core.catalog.manifest import Manifest, parse_manifest
from core.errors import CatalogError
from core.execution.aliases import called_by_name, with_aliases
from core.levels.mending import mended
from core.plan import Plan, Step
from tests.support.executors import REPO, manifest_toml

SEND = "send_messages"


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    data = (REPO / "executors" / SEND / "manifest.toml").read_bytes()
    return parse_manifest(data, folder=SEND)


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (
            {"messages": [{"to": ["a@x.example"], "body": "hi"}]},
            {"to": ["a@x.example"], "body": "hi"},
        ),
        (
            {"messages": {"to": ["a@x.example"]}, "account": "work"},
            {"to": ["a@x.example"], "account": "work"},
        ),
        ({"to": ["a@x.example"]}, {"to": ["a@x.example"]}),
        # Not one call of it, or said twice: left for validation to refuse.
        (
            {"messages": [{"to": ["a"]}, {"to": ["b"]}]},
            {"messages": [{"to": ["a"]}, {"to": ["b"]}]},
        ),
        ({"messages": [{"to": ["a"], "cc": "b"}]}, {"messages": [{"to": ["a"], "cc": "b"}]}),
        ({"messages": [{"to": ["a"]}], "to": ["b"]}, {"messages": [{"to": ["a"]}], "to": ["b"]}),
        ({"messages": "{{step1.content}}"}, {"messages": "{{step1.content}}"}),
        ({"messages": []}, {"messages": []}),
    ],
)
def test_call_by_another_name_is_that_of_the_manifest(manifest, said, read):
    assert called_by_name(Step(SEND, said), manifest).args == read
    # A second time changes nothing.
    assert called_by_name(Step(SEND, read), manifest).args == read


def test_a_plan_by_another_name_is_mended_and_may_be_scored_by_either(manifest):
    plan = Plan((Step(SEND, {"messages": [{"to": ["a@x.example"], "body": "hi"}]}),))

    args = mended(plan, {SEND: manifest}).steps[0].args

    assert args == {"to": ["a@x.example"], "body": "hi"}
    assert with_aliases(args, manifest)["messages"] == [{"to": ["a@x.example"], "body": "hi"}]


def _with(aliases: str) -> bytes:
    return manifest_toml("get_now").replace("[files]", f"[aliases]\n{aliases}\n\n[files]").encode()


@pytest.mark.parametrize(
    "aliases",
    ['zone = ["nowhere"]', "zone = []", 'from_step = ["timezone"]', 'zone = "timezone"'],
)
def test_alias_of_nothing_is_refused(aliases):
    with pytest.raises(CatalogError):
        parse_manifest(_with(aliases), folder="get_now")


def test_words_of_a_search_by_their_other_name():
    data = (REPO / "executors" / "find_urls" / "manifest.toml").read_bytes()
    find = parse_manifest(data, folder="find_urls")

    assert called_by_name(Step("find_urls", {"search_query": "x"}), find).args == {"query": "x"}
