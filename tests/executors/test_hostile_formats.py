"""Tables, documents, pictures and calendars as the world makes them: what they hold is read as it
is, or refused with a word; nothing is left out in silence."""

from __future__ import annotations

import csv
import datetime as dt
import io
from zoneinfo import ZoneInfo

import openpyxl
import pytest
from PIL import Image

from core.execution.cage import wire
from executors._sdk import csv_text, documents, pictures, sheets
from tests.executors.file_cases import run
from tests.executors.test_calendar import at, event, text_of
from tests.support.dav_server import broken_host, dav_host, free_port

ROME = ZoneInfo("Europe/Rome")


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_wide_table_with_lines_and_separators_in_its_cells(tmp_path, separator, end):
    heads = [f"col {n}" for n in range(100)]
    rows = [
        [f"riga {r}\nseconda; {n}, |\tx" if n % 7 == 0 else f'"q{n}",; x' if n % 7 == 1 else f"{n}"
         for n in range(100)] for r in range(20)
    ]  # fmt: skip
    target = io.StringIO()
    csv.writer(target, delimiter=separator, lineterminator=end).writerows([heads, *rows])
    (tmp_path / "largo.csv").write_bytes(target.getvalue().encode())

    seen = run("read_files_spreadsheet", {"paths": [f"{tmp_path}/largo.csv"]}, tmp_path)

    assert seen["metadata"]["available"] == 20
    assert list(seen["entries"][0])[1:] == heads
    assert [entry["col 98"] for entry in seen["entries"]] == [row[98] for row in rows]


def test_rows_added_to_such_a_table_keep_its_separator(tmp_path):
    path = tmp_path / "conti.csv"
    path.write_text('chi;nota\nanna;"a,b\nc,d"\n', encoding="utf-8")
    args = {"path": str(path), "entries": [{"chi": "bruno", "nota": "x;y"}]}
    assert run("write_files_spreadsheet", args, tmp_path)["ok"]
    assert path.read_text(encoding="utf-8").endswith('bruno;"x;y"\n')
    assert csv_text._separator('a;"b,c"\n1;"2,3"\n') == ";"


def test_lengths_of_time_are_told_in_no_language():
    spans = [dt.timedelta(hours=30), dt.timedelta(minutes=5, seconds=7), -dt.timedelta(hours=1)]
    assert [sheets.as_value(span) for span in spans] == ["30:00:00", "0:05:07", "-1:00:00"]


def test_cells_of_a_workbook_that_are_no_plain_values(tmp_path):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["nome", "vero", "durata", "antica"])
    sheet.append(["a", True, dt.timedelta(hours=30), "1850-01-01"])
    sheet.append(["unite", False, dt.timedelta(0), None])
    sheet.merge_cells("A3:A5")
    book.save(tmp_path / "x.xlsx")

    seen = run("read_files_spreadsheet", {"paths": [f"{tmp_path}/x.xlsx"]}, tmp_path)

    first, second = seen["entries"][:2]
    assert (first["vero"], first["durata"], first["antica"]) == (True, "30:00:00", "1850-01-01")
    assert (second["nome"], second["vero"]) == ("unite", False)


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (r"Caff\u232? \u8364?5", "Caffè €5"),
        (r"\u-10179?\u-8704? fine", "😀 fine"),
        (r"\u55357?\u56832?", "😀"),
        (r"\u-10179\'3f\u-8704\'3f", "😀"),
        (r"\uc0\u-10179 \u-8704 x", "😀x"),
        (r"\u232?\u233?", "èé"),
    ],
)
def test_rtf_signs_by_number_are_whole(rtf, text):
    assert documents.text_of(rb"{\rtf1\ansi " + rtf.encode() + b"}", "rtf") == text


@pytest.mark.parametrize(
    ("gps", "place"),
    [
        (("N", (45, 4, 0), "E", (7, 41, 0)), (45.066667, 7.683333)),
        (("S", (45, 0, 0), "W", (7, 30, 0)), (-45.0, -7.5)),
        (("N", (145, 0, 0), "E", (7, 0, 0)), None),
        (("N", (0, 0, 0), "E", (0, 0, 0)), None),
    ],
)
def test_picture_that_lies_about_its_place_has_none(gps, place):
    exif = Image.Exif()
    exif.get_ifd(0x8825).update({1: gps[0], 2: gps[1], 3: gps[2], 4: gps[3]})
    exif[0x0132] = "2026:13:45 99:00:00"
    target = io.BytesIO()
    Image.new("RGB", (2, 2)).save(target, "JPEG", exif=exif)

    facts = pictures.facts_of(target)

    assert (facts.get("lat"), facts.get("lon")) == (place or (None, None))
    assert "taken" not in facts, "there is no such day"


def test_contact_of_forty_numbers_has_them_all(tmp_path):
    numbers = [f"333 10000{n:02d}" for n in range(40)]
    lines = "".join(f"TEL;TYPE=CELL:{number}\n" for number in numbers)
    card = f"BEGIN:VCARD\nVERSION:3.0\nFN:Centralino\n{lines}END:VCARD\n"
    (tmp_path / "Contatti.vcf").write_text(card, encoding="utf-8")

    (found,) = run("find_contacts", {"query": "3331000039"}, tmp_path)["entries"]

    assert found["phones"].split(", ") == numbers


# -- calendars ------------------------------------------------------------------------------------


def _day(tmp_path, *lines: str, name: str = "read_events") -> list[tuple[str, str]]:
    first = event(*lines, "SUMMARY:serie", uid="s")
    (tmp_path / "Calendario.ics").write_text(text_of(first), encoding="utf-8")
    seen = run(name, {"time_window": "domani"}, tmp_path)
    return [(entry["start"][11:16], entry["end"][11:16]) for entry in seen["entries"]]


FOUR_A_DAY = [(f"{h:02d}:00", f"{h:02d}:15") for h in (8, 12, 16, 20)]


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ("RRULE:FREQ=DAILY;BYHOUR=8,12,16,20;BYMINUTE=0;BYSECOND=0", 4),
        ("RRULE:FREQ=HOURLY;INTERVAL=4", 6),
        ("RRULE:FREQ=HOURLY;BYHOUR=8,12,16,20", 4),
        ("RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=8,20", 2),
        ("RRULE:FREQ=MINUTELY;INTERVAL=240", 6),
    ],
)
def test_series_of_several_times_a_day_has_them_all(tmp_path, rule, count):
    start = ("DTSTART;TZID=Europe/Rome:20260302T080000", "DTEND;TZID=Europe/Rome:20260302T081500")
    if "BYSECOND" in rule:
        rule = rule.replace(";BYSECOND=0", "")

    told = _day(tmp_path, *start, rule)
    free = _day(tmp_path, *start, rule, name="find_events_empty")

    assert len(told) == count
    assert ("08:00", "08:15") in told
    assert free[0][0] == "08:15", "what is taken is not offered as free"


def test_rule_that_would_take_for_ever_is_one_event(tmp_path):
    start = ("DTSTART;TZID=Europe/Rome:19000319T080000", "DTEND;TZID=Europe/Rome:19000319T081500")
    assert _day(tmp_path, *start, "RRULE:FREQ=MINUTELY") == []


def test_exception_that_cannot_be_read_hides_no_series(tmp_path):
    start = ("DTSTART;TZID=Europe/Rome:20260302T080000", "DTEND;TZID=Europe/Rome:20260302T081500")
    assert _day(tmp_path, *start, "RRULE:FREQ=DAILY", "EXDATE:garbage") == [("08:00", "08:15")]


def test_event_without_a_length_can_be_changed(tmp_path):
    (tmp_path / "Calendario.ics").write_text(
        text_of(event("DTSTART:20260320T100000Z", "SUMMARY:Punto", uid="p")), encoding="utf-8"
    )
    seen = run("change_events", {"event_ids": ["|p|"], "location": "Casa"}, tmp_path)
    assert seen["ok"], seen
    moved = run("change_events", {"event_ids": ["|p|"], "start": "2026-03-20T15:00"}, tmp_path)
    assert moved["entries"][0]["end"] == "2026-03-20T15:00:00+01:00"
    back = {"event_ids": ["|p|"], "end": "2026-03-20T14:00"}
    assert run("change_events", back, tmp_path)["error"]["code"] == "invalid_args"


def test_two_calendars_of_one_name_are_both_read(tmp_path):
    with dav_host(tmp_path) as host:
        for name in ("uno", "due"):
            host.make(name, title="Casa")
            host.put(f"{name}/{name}.ics",
                     text_of(event(*at("1000", "1100"), f"SUMMARY:{name}", uid=name)))  # fmt: skip
        args = {"time_window": "venerdì"}
        seen = run("read_events", args, accounts=[host.account()])
        assert sorted(entry["summary"] for entry in seen["entries"]) == ["due", "uno"]
        ids = {entry["summary"]: entry["id"] for entry in seen["entries"]}
        run("delete_events", {"event_ids": [ids["due"]]}, accounts=[host.account()])
        left = run("read_events", args, accounts=[host.account()])
    assert [entry["summary"] for entry in left["entries"]] == ["uno"]


MULTISTATUS = (
    b'<D:multistatus xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"><D:response>'
    b"<D:href>/c/</D:href><D:propstat><D:prop><D:resourcetype><D:collection/><C:calendar/>"
    b"</D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    b"</D:multistatus>"
)
EMPTY = b'<D:multistatus xmlns:D="DAV:"/>'


@pytest.mark.parametrize(
    ("answer", "hangs", "code", "effects"),
    [
        ((502, {}, b""), False, "http_status", "unknown"),
        ((403, {}, b""), False, "permission_denied", "none"),
        ((507, {}, b""), False, "disk_full", "none"),
    ],
)
def test_server_that_falls_over_while_told_leaves_it_unknown(answer, hangs, code, effects):
    found = {"PROPFIND": (207, {}, MULTISTATUS), "REPORT": (207, {}, EMPTY), "PUT": answer}
    with broken_host(hangs=hangs, **found) as (account, _):
        args = {"summary": "Cena", "start": "2026-04-01T20:00"}
        seen = run("create_events", args, accounts=[account])

    told = wire.to_observation(seen, mutating=True, external=False)
    assert seen["error"]["code"] == code, seen
    assert told.effects.value == effects


def test_server_that_is_not_there_changed_nothing_for_sure():
    account = {"name": "Casa", "kind": "calendar", "user": "a", "password": "b",
               "url": f"http://127.0.0.1:{free_port()}/"}  # fmt: skip
    args = {"summary": "Cena", "start": "2026-04-01T20:00"}
    seen = run("create_events", args, accounts=[account])
    assert seen["error"]["code"] == "network"
    assert wire.to_observation(seen, mutating=True, external=False).effects.value == "none"
