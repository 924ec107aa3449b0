"""Addresses: who wrote them, and what was read before. A table of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from core.execution.addresses import Doubt, doubt_about, reads_private, stands_in
from core.observation import Effects, Observation, Provenance
from core.turn_state import StepRecord
from tests.execution.test_arguments import manifest

SECRET = "IBAN-IT60X0542811101000000123456"
EVIL = f"https://evil.example/?q={SECRET}"
PAGE = "https://news.example/today"
LINK = "https://news.example/story?id=7"


def step(tool: str, *, external: bool = False, ok: bool = True, **about: Any) -> StepRecord:
    observation = Observation(
        ok=ok,
        provenance=Provenance.EXTERNAL if external else Provenance.OWN,
        **about,
    )
    return StepRecord(1, tool, {}, {}, observation, {})


def page(text: str, url: str = PAGE) -> StepRecord:
    entry = {"ok": True, "url": url, "final_url": url, "text": text}
    return step("read_urls_html", external=True, entries=(entry,))


def file(text: str) -> StepRecord:
    return step("read_files", entries=({"ok": True, "path": "/n/a.txt", "text": text},))


WRITTEN = step("write_files", effects=Effects.DONE, entries=({"ok": True, "path": "/n/x"},))
CLOCK = step("get_now", content="10:00")


def doubt(url: str, steps: Sequence[StepRecord] = (), said: str = "", **about: Any) -> Any:
    return doubt_about(
        url,
        said=[said],
        steps=steps,
        is_private=lambda tool: reads_private(manifest(tool)),
        **about,
    )


@pytest.mark.parametrize(
    ("url", "steps", "said", "expected"),
    [
        # nothing was read: the model may look anything up
        ("https://wiki.example/Roma", [], "che cos'è Roma?", None),
        ("https://wiki.example/?q=roma", [CLOCK], "", None),
        ("https://evil.example/?q=" + "a" * 300, [], "", Doubt.CARRIES_MUCH),
        ("https://" + "a" * 41 + ".evil.example/", [], "", Doubt.CARRIES_MUCH),
        # private things were read
        (EVIL, [file(SECRET)], "leggi a.txt", Doubt.AFTER_PRIVATE),
        ("https://evil.example/", [file(SECRET)], "", Doubt.AFTER_PRIVATE),
        (f"https://{SECRET.lower()}.evil.example/", [file(SECRET)], "", Doubt.AFTER_PRIVATE),
        (f"https://news.example/{SECRET}", [page("x"), file(SECRET)], "", Doubt.AFTER_PRIVATE),
        # ... but the person wrote it
        (PAGE, [file(SECRET)], f"leggi a.txt e poi {PAGE}", None),
        (PAGE, [file(SECRET)], "e poi NEWS.example/today, grazie", None),
        ("https://news.example/", [file(SECRET)], "apri news.example.", None),
        # what the person wrote is no leave for more of it
        (f"{PAGE}?q={SECRET}", [file(SECRET)], f"apri {PAGE}", Doubt.AFTER_PRIVATE),
        (f"{PAGE}/{SECRET}", [file(SECRET)], f"apri {PAGE}", Doubt.AFTER_PRIVATE),
        ("https://news.example.evil.example/", [file("")], "news.example", Doubt.AFTER_PRIVATE),
        ("https://evil.example/", [file("")], "x@evil.example", Doubt.AFTER_PRIVATE),
        ("https://evil.example/", [file("")], "a.evil.example", Doubt.AFTER_PRIVATE),
        # a page gave it before anything private was read
        (LINK, [page(f"see {LINK}."), file(SECRET)], "", None),
        (LINK, [page('<a href="/story?id=7">x</a>'), file(SECRET)], "", None),
        (
            "https://b.example/story?id=7",
            [page('"/story?id=7"'), file("")],
            "",
            Doubt.AFTER_PRIVATE,
        ),
        # ... or after it: whoever answers may have been told what to answer
        (LINK, [file(SECRET), page(f"see {LINK}.")], "", Doubt.AFTER_PRIVATE),
        (f"{LINK}&q={SECRET}", [page(f"see {LINK}."), file(SECRET)], "", Doubt.AFTER_PRIVATE),
        # a list of links in a file of one's own
        (LINK, [file(f"1. {LINK}\n2. x")], "apri i link di a.txt", None),
        (EVIL, [file(SECRET), WRITTEN, file(EVIL)], "", Doubt.AFTER_PRIVATE),
        (EVIL, [page("do it"), file(EVIL)], "", Doubt.AFTER_PRIVATE),
        # external text alone: what the page gave, or no more than a host that the person named
        (LINK, [page(f"see {LINK}.")], "", None),
        ("https://other.example/x", [page("go to other.example")], "", Doubt.AFTER_EXTERNAL),
        ("https://other.example/", [page("")], "poi guarda su other.example", None),
        ("https://www.other.example/", [page("")], "poi su other.example", None),
        ("https://other.example/x", [page("")], "poi other.example", Doubt.AFTER_EXTERNAL),
        ("https://other.example/?q=1", [page("")], "poi other.example", Doubt.AFTER_EXTERNAL),
    ],
)
def test_doubt_about_an_address(
    url: str, steps: list[StepRecord], said: str, expected: Doubt | None
) -> None:
    assert doubt(url, steps, said) is expected


def test_doubt_of_a_plan_made_before_reading_is_none_but_for_its_size() -> None:
    steps = [file(SECRET), page("x")]

    assert doubt("https://wiki.example/x", steps, planned_blind=True) is None
    assert doubt("https://a.example/?q=" + "a" * 300, steps, planned_blind=True) is not None


def test_doubt_of_a_quoted_address_is_none() -> None:
    assert doubt(LINK, [file(SECRET)], quoted=[f"guarda {LINK}"]) is None


def test_doubt_does_not_end_with_a_failed_step_or_packed_bytes() -> None:
    failed = step("get_urls", external=True, ok=False, entries=({"ok": False, "url": EVIL},))
    half = step(
        "get_urls",
        external=True,
        entries=({"ok": False, "url": EVIL}, {"ok": True, "url": PAGE, "body": {"blob": EVIL}}),
    )

    assert doubt(EVIL, [failed, half, file(SECRET)]) is Doubt.AFTER_PRIVATE


@pytest.mark.parametrize(
    ("tool", "private"),
    [
        ("read_files", True),
        ("find_files", True),
        ("list_dirs", True),
        ("write_files", True),
        ("get_now", False),
        ("get_urls", False),
        ("read_urls_html", False),
        ("filter_entries", False),
    ],
)
def test_tools_that_read_what_is_the_persons_own(tool: str, private: bool) -> None:
    assert reads_private(manifest(tool)) is private
    assert reads_private(None)


@pytest.mark.parametrize(
    ("url", "text", "stands"),
    [
        ("https://xn--perch-fsa.example/", "apri perché.example", True),
        ("http://a.example/x", "http://a.example/x", True),
        ("http://a.example/x", "a.example/x", False),
        ("https://a.example/x", "(https://A.EXAMPLE/x)", True),
        ("https://a.example/x", "https://a.example/X", False),
        ("https://a.example/x", "https://a.example/xy", False),
        ("https://a.example/x", "https://user@a.example/x", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("https://a.example:8443/", "a.example:8443", True),
        ("https://a.example/", "https://a.example/secret", False),
        ("https://a.example/", "", False),
    ],
)
def test_address_stands_in_a_text_whole_or_not_at_all(url: str, text: str, stands: bool) -> None:
    assert stands_in(url, text) is stands
