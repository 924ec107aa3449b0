"""Which plan serves a request: known numbers, and what votes and time may make of it."""

from __future__ import annotations

import pytest

from core.levels.champions import (
    MARGIN,
    Ranked,
    Status,
    Tally,
    Verdict,
    bare,
    cluster_of,
    crowned,
    form_of,
    in_turn,
    intent_of,
    is_struck,
    score,
    status_of,
    way_of,
    wilson,
)
from core.levels.meaning import meaning_of
from core.levels.reuse import Lesson
from core.levels.tracing import Binding
from core.plan import Plan, Step


@pytest.mark.parametrize(
    ("ok", "fail", "bound"),
    [
        (0, 0, 0.0),
        (0, 1, 0.0),
        (1, 0, 0.2065),
        (1, 1, 0.0945),
        (2, 0, 0.3424),
        (10, 0, 0.7225),
        (8, 2, 0.4902),
        (81, 19, 0.7222),
        (500, 500, 0.4691),
    ],
)
def test_wilson_has_the_published_values(ok: float, fail: float, bound: float):
    assert wilson(ok, fail) == pytest.approx(bound, abs=1e-4)


def test_wilson_refuses_what_cannot_be_counted():
    with pytest.raises(ValueError, match="negative"):
        wilson(-1, 2)


def test_slowness_costs_at_most_a_tenth_and_a_silent_answer_counts_a_quarter():
    assert score(Tally(up=1)) - score(Tally(up=1, latency_ms=20_000)) == pytest.approx(0.1)
    assert score(Tally(up=1, latency_ms=10**9)) == score(Tally(up=1, latency_ms=20_000))
    assert score(Tally(ran=4)) == score(Tally(up=1))


def test_challenger_wins_only_with_the_margin():
    def rows(challenger: Tally) -> list[Ranked]:
        champion = Ranked(1, Status.ACTIVE, Tally(up=10, down=1), is_champion=True)
        return [champion, Ranked(2, Status.ACTIVE, challenger)]

    near, clear = Tally(up=11, down=1), Tally(up=20)
    assert score(Tally(up=10, down=1)) < score(near) < score(Tally(up=10, down=1)) + MARGIN
    assert (crowned(rows(near)), crowned(rows(clear))) == (1, 2)
    assert [row.id for row in in_turn(rows(near))] == [1, 2]
    demoted = Ranked(1, Status.DEMOTED, Tally(up=10), is_champion=True)
    assert crowned([demoted, Ranked(2, Status.ACTIVE, Tally(up=1))]) == 2
    assert crowned([demoted, Ranked(3, Status.SHADOW, Tally(ran=2))]) is None
    assert crowned([]) is None


@pytest.mark.parametrize(
    ("tally", "steps", "struck", "rivals", "status"),
    [
        (Tally(ran=9), 1, False, False, None),
        (Tally(up=1), 1, False, False, Status.ACTIVE),
        (Tally(up=1, down=2), 1, False, True, Status.ACTIVE),
        (Tally(up=5, down=3), 1, True, False, Status.DEMOTED),
        (Tally(ran=1), 4, False, False, None),
        (Tally(ran=2), 4, False, False, Status.SHADOW),
        (Tally(ran=2), 3, False, False, None),
        (Tally(ran=2), 4, False, True, None),
        (Tally(ran=2, down=1), 4, False, False, None),
        (Tally(up=1, ran=2), 4, False, False, Status.ACTIVE),
        (Tally(up=1, broke=1), 1, False, False, Status.DEMOTED),
        (Tally(up=10, broke=1), 1, False, False, Status.ACTIVE),
    ],
)
def test_status_follows_from_what_is_known(
    tally: Tally, steps: int, struck: bool, rivals: bool, status: Status | None
):
    assert status_of(tally, steps=steps, is_struck=struck, has_active=rivals) is status


def test_one_person_alone_takes_away_only_what_they_taught():
    assert is_struck({"anna": 3}, "anna")
    assert not is_struck({"luca": 9}, "anna")
    assert is_struck({"luca": 2, "eva": 1}, "anna")
    assert not is_struck({"anna": 2}, "anna")


def test_tally_moves_with_a_vote_and_never_below_zero():
    ran = Tally().moved(None, Verdict.RAN)
    assert ran.moved(Verdict.RAN, Verdict.UP) == Tally(up=1)
    assert ran.moved(Verdict.RAN, Verdict.UP).moved(Verdict.UP, Verdict.DOWN) == Tally(down=1)
    assert Tally().moved(Verdict.UP, None) == Tally()
    assert ran.moved(Verdict.RAN, Verdict.ANEW) == Tally()
    assert Tally().moved(Verdict.ANEW, Verdict.UP) == Tally(up=1)
    assert Tally(ran=1).timed(100).latency_ms == 100
    assert Tally(ran=2, latency_ms=100).timed(200).latency_ms == 150


@pytest.mark.parametrize(
    ("one", "other", "same_intent", "same_cluster"),
    [
        ("che ore sono?", "what time is it?", True, True),
        ("trova i file grandi", "find the big files", True, True),
        ("trova i file grandi", "trova i file piccoli", True, False),
        ("elimina i file duplicati", "trova i file duplicati", False, False),
        ("sposta i file grandi", "copia i file grandi", False, False),
    ],
)
def test_intent_is_verbs_and_object_and_cluster_all_that_tells_apart(
    one: str, other: str, same_intent: bool, same_cluster: bool
):
    intents = [intent_of(meaning_of(text)) for text in (one, other)]
    assert intents[0] is not None
    assert intents[1] is not None
    clusters = [cluster_of(meaning_of(text)) for text in (one, other)]
    assert all(clusters)
    assert (intents[0].key == intents[1].key) is same_intent
    assert (clusters[0] == clusters[1]) is same_cluster


@pytest.mark.parametrize("text", ["cancella a.txt", "la posta di oggi", "ciao"])
def test_values_moving_times_and_small_talk_have_no_cluster(text: str):
    assert cluster_of(meaning_of(text)) == ""


def test_another_word_list_makes_other_clusters(monkeypatch: pytest.MonkeyPatch):
    """What an earlier list held for the same is not known to be so any more."""
    before = cluster_of(meaning_of("che ore sono?"))
    monkeypatch.setattr("core.levels.champions.words_edition", lambda: "another")
    assert cluster_of(meaning_of("che ore sono?")) not in {"", before}


def test_form_forgets_values_and_closing_words_and_nothing_else():
    def plan(path: str, tool: str = "read_files", **more: object) -> Plan:
        closing = Step("final_answer", {"text": path})
        return Plan((Step(tool, {"paths": [path], **more}), closing))

    bound = [Binding(0, ("paths", 0), 0)]
    kinds = ["<path .md>"]
    assert form_of(plan("a.md"), bound, kinds) == form_of(plan("b.md"), bound, kinds)
    assert form_of(plan("a.md")) != form_of(plan("b.md"))
    assert form_of(plan("a.md"), bound, kinds) != form_of(
        plan("a.md", "delete_files"), bound, kinds
    )
    assert form_of(plan("a.md", mode="x")) != form_of(plan("a.md", mode="y"))
    assert way_of(plan("a.md")) == "read_files"


def test_what_is_kept_of_a_bound_plan_holds_none_of_its_values():
    steps = (
        Step("find_files", {"paths": ["segreto"], "deep": True}),
        Step("read_files", {"from_step": 1, "text": "{{step1.path}}", "tail": 3}),
    )
    lesson = Lesson(
        "x", Plan(steps), (), (("name", "segreto"),), "e", "s", "w", "", "t", "f", False
    )

    assert bare(lesson).to_json()["steps"] == [
        {"tool": "find_files", "args": {"paths": ["…"], "deep": True}},
        {"tool": "read_files", "args": {"from_step": 1, "text": "{{step1.path}}", "tail": "…"}},
    ]
