"""What may be seen of an answer that is still written: whole sentences of prose, nothing else."""

from __future__ import annotations

import pytest

from core.levels.early_words import LEAST_CHARS, seen_early

LONG = "Il gatto è un felino domestico che dorme molte ore al giorno, soprattutto di notte."


def test_only_whole_sentences_are_seen() -> None:
    assert seen_early(f"{LONG} Mangia quello che", lang="it") == LONG
    assert seen_early(LONG[:-1], lang="it") == ""


def test_short_beginnings_wait() -> None:
    assert len("Cerco i file.") < LEAST_CHARS
    assert seen_early("Cerco i file. Poi", lang="it") == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "find_files", "args": {}}' + LONG + " x",
        '```json\n{"tool": 1}\n```\n' + LONG + " x",
        "<tool_call>" + LONG + " x",
        "[TOOL_CALLS] " + LONG + " x",
        "<think>" + LONG + " " + LONG + " x",
        "\n <|channel|>" + LONG + " x",
    ],
)
def test_calls_and_thoughts_are_never_seen(text: str) -> None:
    for end in range(len(text) + 1):
        assert seen_early(text[:end], lang="it") == ""


def test_what_follows_prose_and_may_be_a_call_is_cut_off() -> None:
    for tail in (
        '\n{"tool": "x"} a. b',
        "\n<tool_call>{}</tool_call> a. b",
        " {{step1.path}} a. b",
    ):
        assert seen_early(f"{LONG}{tail}", lang="it") == LONG


def test_thinking_before_the_prose_is_taken_off() -> None:
    assert seen_early(f"<think>hm. hm.</think>\n{LONG} E", lang="it") == LONG


@pytest.mark.parametrize("claim", ["Ho eliminato il file.", "Ti ricorderò domani di farlo."])
def test_claims_without_a_step_are_never_seen(claim: str) -> None:
    assert seen_early(f"{LONG} {claim} E poi", lang="it") == LONG


def test_handles_of_secrets_are_never_seen() -> None:
    assert "secret:" not in seen_early(f"{LONG} La chiave è secret:{'0a' * 16}. E", lang="it")
