"""Calendars: against a real CalDAV server (Radicale), bad servers, and files of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executors._sdk import ics
from executors._sdk.call import Call
from executors._sdk.dav import Dav
from executors._sdk.dav_parts import CALENDARS
from executors._sdk.moments import read_moment
from executors._sdk.result import Failure
from executors._sdk.windows import NoWindow
from executors.change_events import main as change_events
from executors.delete_events import main as delete_events
from tests.executors.file_cases import run, run_caged
from tests.support.dav_server import DavHost, broken_host, dav_host, free_port, pointing_to
from tests.support.run_executor import call_document

ROME = ZoneInfo("Europe/Rome")
NOW = datetime(2026, 3, 18, 9, tzinfo=UTC)
FRIDAY = "2026-03-20T"


def event(*lines: str, uid: str = "e1") -> str:
    return "\r\n".join(["BEGIN:VEVENT", f"UID:{uid}", "DTSTAMP:20260101T000000Z", *lines,
                        "END:VEVENT", ""])  # fmt: skip


def text_of(*events: str) -> str:
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//T//T//EN", ""]
    return "\r\n".join(lines) + "".join(events) + "END:VCALENDAR\r\n"


def at(hour: str, to: str, day: str = "20260320", zone: str = "Europe/Rome") -> tuple[str, str]:
    return f"DTSTART;TZID={zone}:{day}T{hour}00", f"DTEND;TZID={zone}:{day}T{to}00"


WEEKLY = event(
    *at("1800", "1900", "20260305"),
    "RRULE:FREQ=WEEKLY;COUNT=8",
    "EXDATE;TZID=Europe/Rome:20260312T180000",
    "SUMMARY:Yoga",
    uid="yoga",
)
MOVED = event(
    *at("0900", "1000", "20260327"),
    "RECURRENCE-ID;TZID=Europe/Rome:20260326T180000",
    "SUMMARY:Yoga di mattina",
    uid="yoga",
)
DENTIST = event(*at("1000", "1100"), "SUMMARY:Dentista", uid="d1")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavHost]:
    with dav_host(tmp_path_factory.mktemp("dav")) as host:
        yield host


@pytest.fixture
def host(server: DavHost) -> Iterator[DavHost]:
    server.make("casa", title="Casa mia")
    yield server
    server.ask("DELETE", "ada/casa/")


def call(host, name, args, *, mode="run", **about):
    return run(name, args, mode=mode, accounts=about.pop("accounts", [host.account()]), **about)


def told(seen):
    return [(entry["summary"], entry["start"]) for entry in seen["entries"]]


# -- reading --------------------------------------------------------------------------------------


def test_recurring_events_are_read_one_by_one_with_exceptions_and_summer_time(host):
    host.put("casa/yoga.ics", text_of(WEEKLY, MOVED))
    host.put("casa/d1.ics", text_of(DENTIST))

    seen = call(host, "read_events", {"time_window": "2026-03-01/2026-04-05"})

    assert told(seen) == [
        ("Yoga", "2026-03-05T18:00:00+01:00"),
        ("Yoga", "2026-03-19T18:00:00+01:00"),
        ("Dentista", "2026-03-20T10:00:00+01:00"),
        ("Yoga di mattina", "2026-03-27T09:00:00+01:00"),
        ("Yoga", "2026-04-02T18:00:00+02:00"),
    ]
    assert [entry["recurring"] for entry in seen["entries"]] == [True, True, False, True, True]
    assert {entry["calendar"] for entry in seen["entries"]} == {"Casa mia"}


@pytest.mark.parametrize(
    ("tz", "start", "day"),
    [("Asia/Tokyo", "2026-03-20T18:00:00+09:00", "2026-03-21"),
     ("America/New_York", "2026-03-20T05:00:00-04:00", "2026-03-21")],
)  # fmt: skip
def test_hours_are_the_persons_and_whole_days_stay_days(host, tz, start, day):
    host.put("casa/d1.ics", text_of(DENTIST))
    host.put("casa/f.ics", text_of(event("DTSTART;VALUE=DATE:20260321", "SUMMARY:Festa", uid="f")))

    seen = call(host, "read_events", {"time_window": "2026-03-19/2026-03-22"}, tz=tz)

    assert told(seen) == [("Dentista", start), ("Festa", day)]
    assert seen["entries"][1]["day"] == day
    assert "begins" not in seen["entries"][1]


def test_only_what_falls_in_the_window_is_read_and_words_narrow_it(host):
    host.put("casa/a.ics", text_of(event(*at("1000", "1100"), "SUMMARY:Mattina", uid="a")))
    host.put("casa/b.ics", text_of(event(*at("1500", "1600"), "SUMMARY:Città d'arte", uid="b")))

    assert told(call(host, "read_events", {"time_window": "venerdì pomeriggio"})) == [
        ("Città d'arte", FRIDAY + "15:00:00+01:00")
    ]
    assert len(call(host, "read_events", {"time_window": "friday"})["entries"]) == 2
    assert len(call(host, "read_events", {})["entries"]) == 2
    assert call(host, "read_events", {"time_window": "domani"})["entries"] == []
    assert len(call(host, "read_events", {"query": "CITTÀ"})["entries"]) == 1


def test_several_calendars_and_accounts_are_one_and_one_that_is_down_is_named(host):
    host.make("altro", title="Lavoro")
    host.put("casa/a.ics", text_of(DENTIST))
    host.put("altro/b.ics", text_of(event(*at("0900", "0930"), "SUMMARY:Riunione", uid="b")))
    away = host.account(name="Ufficio", url=f"http://127.0.0.1:{free_port()}/")

    both = call(host, "read_events", {"time_window": "venerdì"}, accounts=[host.account(), away])
    one = call(host, "read_events", {"time_window": "venerdì"},
               accounts=[host.account(url=f"{host.url}ada/altro/")])  # fmt: skip
    free = call(host, "find_events_empty", {"time_window": "venerdì"},
                accounts=[host.account(), away])  # fmt: skip
    host.ask("DELETE", "ada/altro/")

    assert [name for name, _ in told(both)] == ["Riunione", "Dentista"]
    assert both["metadata"]["unreached"] == "Ufficio"
    assert [name for name, _ in told(one)] == ["Riunione"], "the address of one calendar is it"
    assert free["error"]["code"] == "network", "what cannot be seen is not free"


# -- making, changing, deleting -------------------------------------------------------------------


def test_event_is_made_once_and_deleted_by_its_id(host):
    args = {"summary": "Cena da Paolo", "start": "sabato alle 20", "location": "via Mazzini 3"}

    promised = call(host, "create_events", args, mode="preview")
    assert host.names("casa") == [], "a preview makes nothing"
    made = call(host, "create_events", args)
    again = call(host, "create_events", args)

    assert promised["targets"] == ["Cena da Paolo"]
    assert promised["undo"] == [{"do": "delete_by_id"}]
    [entry] = made["entries"]
    assert (entry["start"], entry["end"]) == ("2026-03-21T20:00:00+01:00",
                                              "2026-03-21T21:00:00+01:00")  # fmt: skip
    assert len(host.names("casa")) == 1
    assert again["entries"][0]["already"] is True
    assert again["entries"][0]["id"] == entry["id"]
    assert (entry["account"], entry["name"]) == ("Casa", "Cena da Paolo")
    look = call(host, "delete_events", {"event_ids": [entry["id"]]}, mode="preview")
    [state] = look["before"]
    assert (state["id"], state["exists"], state["version"]) == (
        entry["id"],
        True,
        entry["version"],
    )
    [read] = call(host, "read_events", {"time_window": "sabato"})["entries"]
    assert (read["id"], read["version"]) == (entry["id"], entry["version"])
    assert read["location"] == "via Mazzini 3"

    gone = call(host, "delete_events", {"event_ids": [entry["id"]]})
    twice = call(host, "delete_events", {"event_ids": [entry["id"]]})

    assert host.names("casa") == []
    assert gone["entries"][0]["summary"] == "Cena da Paolo"
    assert twice["entries"][0]["gone"] is True


def test_conflicts_are_told_and_what_is_free_or_cancelled_is_none(host):
    host.put("casa/d1.ics", text_of(DENTIST))
    host.put("casa/x.ics", text_of(event(*at("1000", "1100"), "SUMMARY:X", "STATUS:CANCELLED",
                                         uid="x")))  # fmt: skip
    host.put("casa/t.ics", text_of(event(*at("1000", "1100"), "SUMMARY:T", "TRANSP:TRANSPARENT",
                                         uid="t")))  # fmt: skip

    clash = call(host, "create_events", {"summary": "Call", "start": FRIDAY + "10:30"})
    after = call(host, "create_events", {"summary": "Pranzo", "start": FRIDAY + "13:00"})

    assert clash["entries"][0]["conflicts"] == "Dentista"
    assert "conflicts" not in after["entries"][0]


@pytest.mark.parametrize(
    ("args", "start", "end"),
    [
        ({"start": "2026-03-20"}, "2026-03-20", "2026-03-21"),
        ({"start": "2026-03-20", "end": "2026-03-22"}, "2026-03-20", "2026-03-22"),
        ({"start": "venerdì alle 9", "end": "alle 11"}, FRIDAY + "09:00:00+01:00",
         FRIDAY + "11:00:00+01:00"),
        ({"start": "friday at 3 pm", "duration_minutes": 30}, FRIDAY + "15:00:00+01:00",
         FRIDAY + "15:30:00+01:00"),
        # Across the change of clocks an hour is an hour.
        ({"start": "2026-03-29T01:30", "duration_minutes": 60}, "2026-03-29T01:30:00+01:00",
         "2026-03-29T03:30:00+02:00"),
    ],
)  # fmt: skip
def test_times_of_a_new_event(host, args, start, end):
    [entry] = call(host, "create_events", {"summary": "X", **args})["entries"]
    assert (entry["start"], entry["end"]) == (start, end)


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"summary": "X", "start": "2026-03-20T10:00", "end": "2026-03-20T09:00"}, "invalid_args"),
        ({"summary": "X", "start": "boh"}, "invalid_args"),
        ({"summary": "X", "start": "venerdì sera"}, "invalid_args"),
        ({"summary": "X", "entries": [{"start": ""}]}, None),
        ({"summary": "X"}, "missing_input"),
        ({"entries": [{"summary": "X"}]}, "missing_input"),
    ],
)
def test_what_is_no_time_makes_nothing(host, args, code):
    for mode in ("preview", "run"):
        seen = call(host, "create_events", args, mode=mode)
        assert seen.get("error", {}).get("code") == code
    assert host.names("casa") == []


def test_event_of_each_entry_and_one_of_free_times(host):
    free = call(host, "find_events_empty", {"time_window": "venerdì", "duration_minutes": 30})
    one = call(host, "create_events", {"summary": "Palestra", "entries": free["entries"]})
    two = call(
        host,
        "create_events",
        {
            "entries": [
                {"summary": "A", "start": "2026-03-23T10:00"},
                {"summary": "B", "start": "2026-03-24"},
            ]
        },
    )

    assert told(one) == [("Palestra", FRIDAY + "08:00:00+01:00")]
    assert one["entries"][0]["end"] == FRIDAY + "08:30:00+01:00"
    assert told(two) == [("A", "2026-03-23T10:00:00+01:00"), ("B", "2026-03-24")]


def test_one_time_of_a_series_goes_or_the_series(host):
    host.put("casa/yoga.ics", text_of(WEEKLY, MOVED))
    window = {"time_window": "2026-03-01/2026-04-05"}
    ids = [entry["id"] for entry in call(host, "read_events", window)["entries"]]

    look = call(host, "delete_events", {"event_ids": ids[1:3]}, mode="preview")
    gone = call(host, "delete_events", {"event_ids": ids[1:3]})
    twice = call(host, "delete_events", {"event_ids": ids[1:3]})

    assert look["targets"] == ["Yoga (2026-03-19 18:00)", "Yoga di mattina (2026-03-27 09:00)"]
    assert [e["scope_text"] for e in gone["entries"]] == ["solo quella volta"] * 2
    assert [e.get("gone") for e in twice["entries"]] == [True, True]
    assert [day for _, day in told(call(host, "read_events", window))] == [
        "2026-03-05T18:00:00+01:00", "2026-04-02T18:00:00+02:00"]  # fmt: skip

    whole = call(host, "delete_events", {"event_ids": ids[:1], "series": True}, lang="en")

    assert whole["entries"][0]["scope_text"] == "the whole series"
    assert host.names("casa") == []


def test_one_time_of_a_series_changes_or_the_series(host):
    host.put("casa/yoga.ics", text_of(WEEKLY, MOVED))
    window = {"time_window": "2026-03-01/2026-04-05"}
    ids = [entry["id"] for entry in call(host, "read_events", window)["entries"]]

    one = call(host, "change_events", {"event_ids": [ids[1]], "start": "alle 20",
                                       "location": "Sala B"})  # fmt: skip
    assert one["entries"][0]["scope"] == "occurrence"
    all_ = call(host, "change_events", {"event_ids": [ids[3]], "start": "alle 17", "series": True})
    day = call(host, "change_events", {"event_ids": [ids[3]], "start": "2026-04-03",
                                       "series": True})  # fmt: skip

    assert all_["entries"][0]["scope_text"] == "tutta la serie"
    assert day["error"]["code"] == "series_stays", "a series stays on its day"
    assert told(call(host, "read_events", window)) == [
        ("Yoga", "2026-03-05T17:00:00+01:00"),
        ("Yoga", "2026-03-19T20:00:00+01:00"),
        ("Yoga di mattina", "2026-03-27T09:00:00+01:00"),
        ("Yoga", "2026-04-02T17:00:00+02:00"),
    ]


@pytest.mark.parametrize(
    ("args", "start", "end", "title"),
    [
        ({"start": "alle 15"}, "15:00", "16:00", "Dentista"),
        ({"start": "2026-03-20T09:30"}, "09:30", "10:30", "Dentista"),
        ({"end": "alle 12"}, "10:00", "12:00", "Dentista"),
        ({"summary": "Igiene"}, "10:00", "11:00", "Igiene"),
    ],
)
def test_event_changes_in_what_is_said_and_nothing_else(host, args, start, end, title):
    host.put("casa/d1.ics", text_of(DENTIST.replace("SUMMARY", "X-COLOR:red\r\nSUMMARY")))
    [entry] = call(host, "read_events", {"time_window": "venerdì"})["entries"]

    call(host, "change_events", {"event_ids": [entry["id"]], **args})

    [now] = call(host, "read_events", {"time_window": "venerdì"})["entries"]
    assert (now["summary"], now["start"][11:16], now["end"][11:16]) == (title, start, end)
    assert "X-COLOR:red" in (host.read("casa/d1.ics") or "")
    assert now["version"] != entry["version"]


def put_back(host, entry, text, *roots, tool=change_events):
    """What taking the change of this entry back does."""
    accounts = [host.account()] if host else []
    document = call_document("change_events", {"event_ids": [entry["id"]]},
                             roots=[str(root) for root in roots], accounts=accounts)  # fmt: skip
    former = {"id": entry["id"], "version": entry.get("version"), "text": text}
    return tool.run(Call({**document, "put_back": [former]}))


def test_change_is_put_back_to_the_text_that_was_there(host):
    host.put("casa/yoga.ics", text_of(WEEKLY, MOVED))
    before = host.read("casa/yoga.ics")
    ids = [e["id"] for e in call(host, "read_events", {"time_window": "2026-03-01/2026-04-05"})[
        "entries"]]  # fmt: skip
    args = {"event_ids": [ids[1]], "start": "alle 20"}
    look = call(host, "change_events", args, mode="preview")
    [changed] = call(host, "change_events", args)["entries"]
    [state] = look["before"]

    back = put_back(host, changed, state["text"])
    again = put_back(host, changed, state["text"])
    [other] = call(host, "change_events", {"event_ids": [ids[1]], "summary": "X"})["entries"]
    late = put_back(host, changed, state["text"])

    assert look["undo"] == [{"do": "put_back_by_id"}]
    assert back["entries"][0]["ok"] is True
    assert again["entries"][0]["already"] is True
    assert other["summary"] == "X"
    assert late["entries"][0]["error"]["code"] == "changed_since"
    assert put_back(host, other, state["text"])["ok"] is True
    assert ics.blocks_of(host.read("casa/yoga.ics") or "") == ics.blocks_of(before or "")
    host.ask("DELETE", "ada/casa/yoga.ics")
    assert put_back(host, other, state["text"])["error"]["code"] == "changed_since"


@pytest.mark.parametrize("key", ["", "20260319T170000Z"], ids=["series", "one time"])
def test_deletion_is_put_back_to_the_text_that_was_there(host, key):
    host.put("casa/yoga.ics", text_of(WEEKLY, MOVED))
    before = ics.blocks_of(host.read("casa/yoga.ics") or "")
    args = {"event_ids": [f"Casa|/ada/casa/yoga.ics|{key}"]}
    look = call(host, "delete_events", args, mode="preview")
    [gone] = call(host, "delete_events", args)["entries"]
    [text] = [state["text"] for state in look["before"]]
    assert ics.blocks_of(host.read("casa/yoga.ics") or "") != before

    back = put_back(host, gone, text, tool=delete_events)
    again = put_back(host, gone, text, tool=delete_events)

    assert look["undo"] == [{"do": "put_back_by_id"}]
    assert back["entries"][0]["ok"] is True
    assert again["entries"][0]["already"] is True
    assert ics.blocks_of(host.read("casa/yoga.ics") or "") == before
    host.put("casa/yoga.ics", text_of(WEEKLY.replace("Yoga", "Altro")))
    assert put_back(host, gone, text, tool=delete_events)["error"]["code"] == "changed_since"


def test_deletion_in_a_file_is_put_back(tmp_path):
    file = tmp_path / "Calendario.ics"
    file.write_bytes(text_of(DENTIST, WEEKLY).encode())
    args = {"event_ids": ["|d1|"]}
    [state] = run("delete_events", args, tmp_path, mode="preview")["before"]
    [gone] = run("delete_events", args, tmp_path)["entries"]
    assert "d1" not in ics.Text(file.read_bytes().decode()).groups

    put_back(None, gone, state["text"], tmp_path, tool=delete_events)

    assert ics.Text(file.read_bytes().decode()).groups == ics.Text(text_of(DENTIST, WEEKLY)).groups


def test_change_that_others_were_told_of_is_not_promised_back(host):
    host.put(
        "casa/d1.ics",
        text_of(
            DENTIST.replace(
                "SUMMARY", "ORGANIZER:mailto:a@b.example\r\nATTENDEE:mailto:c@d.example\r\nSUMMARY"
            )
        ),
    )
    [entry] = call(host, "read_events", {"time_window": "venerdì"})["entries"]

    look = call(host, "change_events", {"event_ids": [entry["id"]], "start": "alle 15"},
                mode="preview")  # fmt: skip

    assert look["undo"] == []
    assert "text" not in look["before"][0]


def test_change_in_a_file_is_put_back_and_leaves_the_rest(tmp_path):
    file = tmp_path / "Calendario.ics"
    file.write_bytes(text_of(DENTIST, WEEKLY).encode())
    [entry] = run("read_events", {"time_window": "venerdì"}, tmp_path)["entries"]
    args = {"event_ids": [entry["id"]], "start": "alle 15"}
    [state] = run("change_events", args, tmp_path, mode="preview")["before"]
    [changed] = run("change_events", args, tmp_path)["entries"]
    moved = ics.Text(file.read_bytes().decode())

    back = put_back(None, changed, state["text"], tmp_path)

    now = ics.Text(file.read_bytes().decode())
    assert back["entries"][0]["ok"] is True
    assert sorted(now.groups) == sorted(moved.groups)
    assert now.groups != moved.groups
    assert now.groups == ics.Text(text_of(DENTIST, WEEKLY)).groups


def test_what_changed_meanwhile_is_not_overwritten(host, monkeypatch):
    from executors._sdk.dav import Dav

    host.put("casa/d1.ics", text_of(DENTIST))
    [entry] = call(host, "read_events", {"time_window": "venerdì"})["entries"]
    real = Dav.get

    titles = iter(("Dentista Rossi", "Dentista Bianchi"))

    def late(self, href):
        found = real(self, href)
        host.put("casa/d1.ics", text_of(DENTIST.replace("Dentista", next(titles))))
        return found

    monkeypatch.setattr(Dav, "get", late)
    changed = call(host, "change_events", {"event_ids": [entry["id"]], "summary": "Mio"})
    deleted = call(host, "delete_events", {"event_ids": [entry["id"]]})

    assert changed["error"]["code"] == "changed_since"
    assert deleted["error"]["code"] == "changed_since"
    assert "Dentista Bianchi" in (host.read("casa/d1.ics") or "")


# -- free times -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "free"),
    [
        ({"time_window": "venerdì", "duration_minutes": 60}, ["08:00–10:00", "12:30–20:00"]),
        ({"time_window": "friday", "duration_minutes": 30},
         ["08:00–10:00", "11:00–11:30", "12:30–20:00"]),
        ({"time_window": "venerdì mattina", "duration_minutes": 120}, ["05:00–10:00"]),
        ({"time_window": "venerdì sera", "duration_minutes": 120}, ["18:00–00:00"]),
        ({"time_window": "venerdì", "duration_minutes": 600}, []),
        ({"time_window": "oggi", "duration_minutes": 60}, ["10:00–20:00"]),
        ({"time_window": "weekend", "duration_minutes": 120}, ["08:00–20:00", "08:00–20:00"]),
    ],
)  # fmt: skip
def test_free_times(host, args, free):
    busy = [("1000", "1100", "a"), ("1030", "1045", "b"), ("1130", "1230", "c")]
    for start, end, uid in busy:
        host.put(f"casa/{uid}.ics", text_of(event(*at(start, end), "SUMMARY:X", uid=uid)))
    host.put("casa/f.ics", text_of(event("DTSTART;VALUE=DATE:20260320", "SUMMARY:Festa", uid="f")))

    seen = call(host, "find_events_empty", args)

    assert [entry["name"].split(", ")[1] for entry in seen["entries"]] == free


# -- bad servers, bad calendars -------------------------------------------------------------------


def test_wrong_password_is_told_with_the_accounts_name(host):
    for name, args in (
        ("read_events", {}),
        ("create_events", {"summary": "X", "start": "domani"}),
    ):
        seen = call(host, name, args, accounts=[host.account(password="falsa")])
        assert seen["error"]["code"] == "wrong_credentials"
        assert seen["error"]["params"] == {"name": "Casa"}


def test_digest_login_is_answered():
    challenge = {"WWW-Authenticate": 'Digest realm="x", nonce="n", qop="auth", algorithm=MD5'}
    with broken_host(PROPFIND=(401, challenge, b"")) as (account, seen):
        failed = run("read_events", {}, accounts=[account])
    assert failed["error"]["code"] == "wrong_credentials"
    assert (seen[-1][1] or "").startswith("Digest ")


def test_server_that_hangs_in_the_middle_times_out(monkeypatch):
    monkeypatch.setattr("executors._sdk.dav.SILENCE_TIMEOUT_S", 0.3)
    with broken_host(hangs=True, PROPFIND=(207, {}, b"<?xml")) as (account, _):
        assert run("read_events", {}, accounts=[account])["error"]["code"] == "timeout"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ((207, {}, b"no xml"), "bad_answer"),
        ((207, {}, b'<!DOCTYPE x [<!ENTITY a "b">]><multistatus/>'), "bad_answer"),
        ((200, {}, b"<html>"), "http_status"),
        ((500, {}, b""), "http_status"),
        ((403, {}, b""), "permission_denied"),
        ((302, {"Location": "http://evil.example/dav"}, b""), "other_server"),
        ((302, {"Location": "ftp://evil.example/dav"}, b""), "host_denied"),
        ((302, {"Location": "/again"}, b""), "http_status"),
        ((404, {}, b""), "not_found"),
        ((207, {"Content-Encoding": "br"}, b"x"), "unsupported"),
    ],
)
def test_answers_that_are_none(answer, code):
    with broken_host(PROPFIND=answer) as (account, seen):
        assert run("read_events", {}, accounts=[account])["error"]["code"] == code
    assert len(seen) <= 20


def test_login_goes_to_another_server_only_when_it_was_allowed(host):
    """As with providers whose calendars lie on a numbered host of their own."""
    with broken_host() as (other, seen), broken_host(**pointing_to(other["url"])) as (front, _):
        refused = run("read_events", {}, accounts=[front])
        made = run("create_events", {"summary": "X", "start": "domani"}, accounts=[front])
    with broken_host(**pointing_to(host.url + "ada/")) as (front, _):
        account = {**front, "home": host.url}
        [made_at] = call(host, "create_events", {"summary": "Yoga", "start": "domani alle 9"},
                         accounts=[account])["entries"]  # fmt: skip
        read = call(host, "read_events", {"time_window": "domani"}, accounts=[account])
        args = {"event_ids": [made_at["id"]]}
        moved = call(host, "change_events", {**args, "start": "alle 10"}, accounts=[account])
        gone = call(host, "delete_events", args, accounts=[account])

    assert refused["error"]["code"] == made["error"]["code"] == "other_server"
    assert refused["error"]["params"] == {
        "name": "Casa", "host": other["url"][7:-1], "home": other["url"],
    }  # fmt: skip
    assert seen == [], "nobody was asked anything who was not allowed"
    assert made_at["id"].startswith(f"Casa|{host.url}ada/casa/")
    assert [entry["id"] for entry in read["entries"]] == [made_at["id"]]
    assert moved["entries"][0]["start"] == "2026-03-19T10:00:00+01:00"
    assert (gone["ok"], host.names("casa")) == (True, [])


def test_login_in_https_is_told_nothing_in_the_open_and_an_id_opens_no_server(host):
    with broken_host() as (other, seen):
        place = {"event_ids": [f"Casa|{other['url']}x.ics|"]}
        strange = call(host, "delete_events", place)
        account = {**host.account(), "url": "https://dav.example/", "home": ""}
        with Dav(Call({}), account, CALENDARS) as dav, pytest.raises(Failure) as down:
            dav._own_path("http://dav.example/me/", "/", looks=True)

    assert strange["error"]["code"] == down.value.code == "host_denied"
    assert seen == []


def test_no_network_and_no_tls(host):
    away = host.account(url=f"http://127.0.0.1:{free_port()}/")
    plain = host.account(url=host.url.replace("http:", "https:"))
    assert call(host, "read_events", {}, accounts=[away])["error"]["code"] == "network"
    assert call(host, "read_events", {}, accounts=[plain])["error"]["code"] == "tls_failed"


def test_broken_calendars_are_read_as_far_as_they_go(tmp_path):
    (tmp_path / "Calendario.ics").write_text(
        text_of(
            "BEGIN:VTIMEZONE\r\nTZID:Broken/Zone\r\nBEGIN:STANDARD\r\nDTSTART:never\r\n"
            "END:STANDARD\r\nEND:VTIMEZONE\r\n",
            event(*at("1000", "1100", zone="Broken/Zone"), "SUMMARY:Zona rotta", uid="z"),
            event(*at("1100", "1200", zone="Nowhere/Else"), "SUMMARY:Zona ignota", uid="n"),
            event(*at("1200", "1300", zone="W. Europe Standard Time"), "SUMMARY:Windows", uid="w"),
            event("DTSTART:notadate", "SUMMARY:Senza data", uid="b"),
            event(*at("1300", "1400"), "RRULE:FREQ=SOMETIMES", "SUMMARY:Regola", uid="r"),
            event(*at("1400", "1500"), "RRULE:FREQ=DAILY;INTERVAL=0", "SUMMARY:Zero", uid="i"),
            event(*at("1500", "1600"), "RRULE:FREQ=SECONDLY", "SUMMARY:Secondi", uid="s"),
            event(*at("1600", "1500"), "SUMMARY:Finisce prima", uid="e"),
            event(*at("1700", "1800"), "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", "SUMMARY:Mai",
                  uid="m"),
            "BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20260320\r\nSUMMARY:Senza UID\r\nEND:VEVENT\r\n",
            "BEGIN:VEVENT\r\nUID:cut\r\nDTSTART:2026",
        )
    )  # fmt: skip

    seen = run("read_events", {"time_window": "venerdì"}, tmp_path)

    assert [(name, start[11:16]) for name, start in told(seen)] == [
        ("Senza UID", ""), ("Zona rotta", "10:00"), ("Zona ignota", "11:00"), ("Windows", "12:00"),
        ("Regola", "13:00"), ("Zero", "14:00"), ("Secondi", "15:00"), ("Finisce prima", "16:00"),
        ("Mai", "17:00"),
    ]  # fmt: skip
    assert seen["metadata"]["unreadable"] == 1


def test_huge_calendar_is_bounded(tmp_path):
    old = "".join(event(*at("1000", "1100", "20200101"), uid=f"o{n}") for n in range(20_000))
    new = "".join(event(*at("1000", "1100"), f"SUMMARY:{n}", uid=f"n{n}") for n in range(300))
    (tmp_path / "calendar.ics").write_text(text_of(old, new))

    seen = run("read_events", {"time_window": "venerdì"}, tmp_path)

    assert (len(seen["entries"]), seen["metadata"]["available"]) == (200, 300)
    assert seen["metadata"]["truncated"] is True


# -- a file of one's own --------------------------------------------------------------------------


@pytest.mark.parametrize(("lang", "name"), [("it", "Calendario.ics"), ("en", "Calendar.ics")])
def test_without_an_account_there_is_a_file(tmp_path, lang, name):
    other = tmp_path / "other"
    other.mkdir()
    folder = tmp_path / "first"
    folder.mkdir()

    made = run("create_events", {"summary": "È tardi; sì, così", "start": "2026-03-20T10:00"},
               folder, other, lang=lang)  # fmt: skip
    again = run("create_events", {"summary": "È tardi; sì, così", "start": "2026-03-20T10:00"},
                folder, other, lang=lang)  # fmt: skip
    run("create_events", {"summary": "Due", "start": "2026-03-21"}, folder, other, lang=lang)
    seen = run("read_events", {"time_window": "2026-03-19/2026-03-25"}, folder, other)
    entry = made["entries"][0]
    look = run("delete_events", {"event_ids": [entry["id"]]}, folder, other, mode="preview")
    whole = (folder / name).read_text()
    run("delete_events", {"event_ids": [entry["id"]]}, folder, other)

    assert [summary for summary, _ in told(seen)] == ["È tardi; sì, così", "Due"]
    assert again["entries"][0]["already"] is True
    assert look["before"][0]["version"] == entry["version"]
    assert whole.count("BEGIN:VEVENT") == 2
    assert whole.count("BEGIN:VTIMEZONE") == 1
    left = run("read_events", {"time_window": "2026-03-19/2026-03-25"}, folder, other)
    assert [summary for summary, _ in told(left)] == ["Due"]
    assert list(other.iterdir()) == []


def test_neither_account_nor_folder_needs_credentials():
    assert run("read_events", {})["error"]["code"] == "needs_credentials"


def test_in_the_cage_over_the_brokers_sockets(host):
    hosts = [f"127.0.0.1:{host.port}"]
    about = {"accounts": [host.account()], "account_hosts": {"calendar": hosts},
             "private_hosts": hosts}  # fmt: skip

    made = run_caged("create_events", {"summary": "X", "start": "domani alle 9"}, **about)
    seen = run_caged("read_events", {"time_window": "domani"}, **about)

    assert made["effects"] == "done"
    assert told(seen) == [("X", "2026-03-19T09:00:00+01:00")]
    assert seen["provenance"] == "external", "others can write into a calendar"
    denied = run_caged("read_events", {}, accounts=[host.account()])
    assert denied["error"]["code"] == "host_denied"


# -- words and shapes of strangers ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("giovedì 26 marzo alle 16:30", "2026-03-26T16:30"),
        ("sabato alle 20", "2026-03-21T20:00"),
        ("domani alle 9 di sera", "2026-03-19T21:00"),
        ("stasera alle 8", "2026-03-18T20:00"),
        ("friday at 5 pm", "2026-03-20T17:00"),
        ("march 26th at 4:30pm", "2026-03-26T16:30"),
        ("Thursday, March 26 at noon", "2026-03-26T12:00"),
        ("alle 8", "2026-03-19T08:00"),
        ("tra due ore", "2026-03-18T12:00"),
        ("26 marzo ore 9 e mezza", "2026-03-26T09:30"),
        ("2026-03-26T16:30:00Z", "2026-03-26T17:30"),
        ("domani", "2026-03-19"),
        ("26/03", "2026-03-26"),
    ],
)
def test_moments_as_people_say_them(said, wanted):
    found = read_moment(said, NOW, ROME)
    assert found.isoformat()[: len(wanted)] == wanted
    assert isinstance(found, datetime) == ("T" in wanted)


@pytest.mark.parametrize("said", ["", "boh", "alle 25", "venerdì sera", "13 pm", "31 febbraio"])
def test_what_is_no_moment_is_refused(said):
    with pytest.raises(NoWindow):
        read_moment(said, NOW, ROME)


_LINES = st.lists(
    st.one_of(
        st.sampled_from([
            "BEGIN:VEVENT", "END:VEVENT", "BEGIN:VTIMEZONE", "END:VTIMEZONE", "TZID:X/Y", "UID:a",
            "DTSTART:20260320T100000", "DTSTART;TZID=X/Y:20260320T100000", "DTEND:20260320",
            "DTSTART;VALUE=DATE:20260320", "RRULE:FREQ=DAILY;COUNT=3", "RRULE:FREQ=WEEKLY;BYDAY=X",
            "RRULE:FREQ=YEARLY;UNTIL=1", "EXDATE:20260321T100000", "RECURRENCE-ID:20260321T100000",
            "DURATION:PT1H", "DURATION:-P9999999999D", "SUMMARY:x", " folded", "RDATE:20260322",
        ]),
        st.text(max_size=30),
    ),
    max_size=25,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(_LINES)
def test_no_calendar_breaks_the_reading(lines):
    start, end = datetime(2026, 3, 1, tzinfo=ROME), datetime(2026, 5, 1, tzinfo=ROME)
    body = "\r\n".join(lines)
    text = ics.Text(
        f"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n{body}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
    found, unreadable = text.between(start, end, ROME)
    assert unreadable >= 0
    assert all(one.span(ROME)[0] <= one.span(ROME)[1] for one in found)


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=40))
def test_no_words_break_the_reading_of_moments(said):
    with suppress(NoWindow):
        read_moment(said, NOW, ROME)
