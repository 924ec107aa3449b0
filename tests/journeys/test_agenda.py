"""Flow 15: free hours are offered, one is chosen by its button, the event is made on a real
calendar server, and taken back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tests.journeys.stage import HOST, Stage, open_stage, ways
from tests.support.dav_server import PASSWORD, USER, DavHost, dav_host
from tests.support.scripted_model import Ask, Rule

ROME = ZoneInfo("Europe/Rome")
REQUEST = {
    "it": "trova un'ora libera domani e segna {}",
    "en": "find a free hour tomorrow and put in {}",
}
PROMPT = {"it": "Quando?", "en": "When?"}
UNDO = {"it": "annulla", "en": "undo"}
MADE = {"it": "Creato: {}", "en": "Created: {}"}
UNDONE = {"it": "Eliminato, perché prima non c'era", "en": "[Dd]eleted"}
CANCEL = {"it": "lascia stare", "en": "never mind"}
DROPPED = {"it": "lascio stare", "en": "leave it"}
WISH = "(un'ora libera|free hour)"


def _lang(ask: Ask) -> str:
    return "it" if "libera" in ask.user else "en"


RULES = [
    Rule(
        user=WISH,
        after=0,
        calls=lambda ask: [
            (
                "find_events_empty",
                {
                    "time_window": {"it": "domani", "en": "tomorrow"}[_lang(ask)],
                    "duration_minutes": 60,
                },
            )
        ],
    ),
    Rule(
        user=WISH,
        after=1,
        calls=lambda ask: [
            ("request_disambiguation_from_user", {"prompt": PROMPT[_lang(ask)], "from_step": 1})
        ],
    ),
    Rule(
        user=WISH,
        after=2,
        calls=lambda ask: [
            (
                "create_events",
                {"summary": ask.user.split()[-1], "start": "{{step2.choice}}"},
            )
        ],
    ),
    Rule(user=WISH, after=3, text="Ok."),
]


@pytest.fixture(scope="module")
def calendar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavHost]:
    with dav_host(tmp_path_factory.mktemp("dav")) as host:
        host.make("casa", title="Casa")
        yield host


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, calendar: DavHost) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("flow15"), RULES) as stage:
        subprocess.run(
            [sys.executable, "-m", "bot", "accounts", "add", "calendar", "Casa", "--secret-stdin",
             "--set", f"url={calendar.url}", "--set", f"user={USER}"],
            env={**stage.env, **stage.telegram.bot_env()}, cwd=stage.tmp, input=PASSWORD,
            text=True, check=True, timeout=120, capture_output=True,
        )  # fmt: skip
        yield stage


@pytest.fixture(autouse=True)
def busy(calendar: DavHost) -> Iterator[None]:
    """From 10 to 11 of tomorrow something stands in the calendar; afterwards nothing does."""
    day = (datetime.now(ROME) + timedelta(days=1)).strftime("%Y%m%d")
    calendar.put(
        "casa/busy.ics",
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//T//T//EN\r\nBEGIN:VEVENT\r\nUID:busy\r\n"
        f"DTSTAMP:20260101T000000Z\r\nDTSTART;TZID=Europe/Rome:{day}T100000\r\n"
        f"DTEND;TZID=Europe/Rome:{day}T110000\r\nSUMMARY:Dentista\r\nEND:VEVENT\r\n"
        "END:VCALENDAR\r\n",
    )
    yield
    for name in calendar.names("casa"):
        calendar.ask("DELETE", f"{USER}/casa/{name}")


@ways("it quiet", "en killed")
def test_free_hour_is_offered_chosen_by_button_made_and_undone(
    stage: Stage, calendar: DavHost, lang: str, killed: bool
) -> None:
    stage.speak(lang)
    title = f"palestra{lang}{killed}"
    request = REQUEST[lang].format(title)
    stage.ask(HOST, request, PROMPT[lang], buttons=["08:00–10:00", "11:00–20:00"])
    assert calendar.names("casa") == ["busy.ics"], "nothing is made before the choice"
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "11:00–20:00")

    stage.hear(HOST, MADE[lang].format(title))
    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["awaiting", "answer"]
    assert stage.effects_of(lines[0]["turn_id"]) == [("create_events", "done")]
    [made] = [name for name in calendar.names("casa") if name != "busy.ics"]
    text = calendar.read(f"casa/{made}") or ""
    assert f"SUMMARY:{title}" in text
    assert "T110000" in text
    assert PASSWORD not in str(stage.log_lines())

    stage.ask(HOST, UNDO[lang], UNDONE[lang])

    assert calendar.names("casa") == ["busy.ics"]


@ways("it killed", "en quiet")
def test_free_hour_that_nobody_wants_makes_nothing(
    stage: Stage, calendar: DavHost, lang: str, killed: bool
) -> None:
    stage.speak(lang)
    request = REQUEST[lang].format(f"no{lang}{killed}")
    stage.ask(HOST, request, PROMPT[lang], buttons=["08:00–10:00"])
    if killed:
        stage.crash()

    stage.ask(HOST, CANCEL[lang], DROPPED[lang])

    lines = stage.ended(request, 2)
    assert stage.effects_of(lines[0]["turn_id"]) == []
    assert calendar.names("casa") == ["busy.ics"]
