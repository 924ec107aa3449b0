"""Spreadsheets: what is written is opened again by another library than the one that wrote it."""

from __future__ import annotations

import csv
import datetime as dt
import hashlib
import io
import os
import zipfile
from pathlib import Path

import openpyxl
import pytest
from odfdo import Document
from python_calamine import CalamineWorkbook

from executors._sdk import sheets, tables, xlsx
from executors._sdk.tables import Table, harmless, moment_of
from tests.executors.file_cases import run, run_caged, snapshot, undo_of

KINDS = ("xlsx", "ods", "csv", "tsv")
NOW = "2026-03-18T09:00:00+00:00"
ENTRIES = [
    {
        "ok": True,
        "name": "città.pdf",
        "size": 12,
        "modified": "2026-03-17T22:30:00+00:00",
        "sha256": "ab" * 32,
    },
    {"ok": True, "name": '=HYPERLINK("http://x.example")', "size": 3.5, "modified": "2026-03-01"},
    {"ok": False, "error": {"code": "not_found"}},
    {"ok": True, "name": "a  b\nc", "size": -7, "done": True},
]


def create(root, mode="run", **args):
    if "path" in args:
        args["path"] = str(root / args["path"])
    return run("create_files_spreadsheet", args, root, mode=mode)


def write(root, how="run", **args):
    args["path"] = str(root / args["path"])
    return run("write_files_spreadsheet", args, root, mode=how)


def read(root, *names, **args):
    args["paths"] = [str(root / name) for name in names]
    return run("read_files_spreadsheet", args, root)


def at(*parts):
    """A moment as sheets have it, without a zone."""
    return dt.datetime(*parts)  # noqa: DTZ001


def cells(path, sheet=0):
    """By calamine, which wrote none of them."""
    return CalamineWorkbook.from_path(str(path)).get_sheet_by_index(sheet).to_python()


# -- making ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["xlsx", "ods"])
def test_create_makes_typed_cells_of_the_chosen_fields(tmp_path, kind):
    seen = create(
        tmp_path, path=f"foglio.{kind}", entries=ENTRIES, columns=["Nome", "data", "size", "hash"]
    )

    assert seen["entries"][0] | {"rows": 3, "columns": 4, "created": True} == seen["entries"][0]
    header, *rows = cells(tmp_path / f"foglio.{kind}")
    assert header == ["Nome", "data", "size", "hash"]
    # In the person's zone it was half past eleven at night, so the same day.
    assert rows[0] == ["città.pdf", at(2026, 3, 17, 23, 30), 12, "ab" * 32]
    assert rows[1][:3] == ['=HYPERLINK("http://x.example")', dt.date(2026, 3, 1), 3.5]
    assert rows[2][0] == "a  b\nc"
    assert rows[2][2] == -7


def test_create_leaves_no_formula_in_any_kind(tmp_path):
    evil = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "=" * 50]
    for kind in KINDS:
        assert create(tmp_path, path=f"f.{kind}", rows=[[text] for text in evil])["ok"]

    book = openpyxl.load_workbook(tmp_path / "f.xlsx").active
    assert [book.cell(row=n, column=1).data_type for n in range(1, 7)] == ["s"] * 6
    assert [book.cell(row=n, column=1).value for n in range(1, 7)] == evil
    assert all(book.cell(row=n, column=1).quotePrefix for n in range(1, 7))
    with zipfile.ZipFile(tmp_path / "f.ods") as archive:
        assert b"formula" not in archive.read("content.xml")
    assert Document(tmp_path / "f.ods").body.tables[0].get_value("A1") == "=1+1"
    for kind in ("csv", "tsv"):
        lines = (tmp_path / f"f.{kind}").read_text(encoding="utf-8-sig").splitlines()
        assert all(line.strip('"').startswith("'") for line in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("=1", "'=1"),
        ("-12,50", "-12,50"),
        ("+39 06", "'+39 06"),
        ("+39", "+39"),
        ("-5%", "-5%"),
        ("@anna", "'@anna"),
        ("a=b", "a=b"),
        ("", ""),
        ("\r=1", "'\n=1"),
        ("\n=1", "'\n=1"),
        ("＝1", "'＝1"),
        ("a\r=1", "a\n=1"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_harmless_puts_an_apostrophe_before_what_reads_as_a_formula(text, expected):
    assert harmless(text) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_create_does_what_its_preview_promised(tmp_path, kind):
    before = snapshot(tmp_path)
    args = {"path": f"nuovo/foglio.{kind}", "entries": ENTRIES}

    promised = create(tmp_path, "preview", **args)
    assert snapshot(tmp_path) == before
    seen = create(tmp_path, **args)

    data = (tmp_path / f"nuovo/foglio.{kind}").read_bytes()
    assert promised["after"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert promised["after"][0]["size"] == len(data) == seen["entries"][0]["bytes"]
    assert promised["before"] == [
        {"path": str(tmp_path / f"nuovo/foglio.{kind}"), "exists": False}
    ]
    assert promised["undo"] == undo_of(seen)


@pytest.mark.parametrize(
    ("path", "title", "expected"),
    [
        (None, "", "Foglio.xlsx"),
        (None, "PDF della settimana", "PDF della settimana.xlsx"),
        (None, "a/b: c?", "a b c.xlsx"),
        ("conti", "", "conti.xlsx"),
        ("box", "Spese", "box/Spese.xlsx"),
        ("c'è.xlsx", "", "c'è 2.xlsx"),
        ("dati.CSV", "", "dati.CSV"),
    ],
)
def test_create_finds_a_name_that_is_free(tmp_path, path, title, expected):
    (tmp_path / "box").mkdir()
    (tmp_path / "c'è.xlsx").write_text("vecchio", encoding="utf-8")
    args = {} if path is None else {"path": path}

    seen = create(tmp_path, rows=[["a"]], columns=["x"], title=title, **args)

    assert os.path.relpath(seen["entries"][0]["path"], tmp_path) == expected
    assert (tmp_path / "c'è.xlsx").read_text(encoding="utf-8") == "vecchio"
    assert ("wanted" in seen["entries"][0]) == (path == "c'è.xlsx")


def test_create_of_nothing_makes_nothing(tmp_path):
    for entries in ([], [{"ok": False, "error": {"code": "not_found"}}]):
        assert create(tmp_path, entries=entries)["entries"] == []
        assert create(tmp_path, "preview", entries=entries)["count"] == 0

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"entries": [{"a": 1}], "columns": ["colore"]}, "unknown_field"),
        ({"entries": [{"a": 1}], "path": "f.docx"}, "unsupported_format"),
        ({"rows": [[1, 2, 3]], "columns": ["x"]}, "invalid_args"),
        ({"rows": [list(range(20_000))]}, "too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_create_says_what_cannot_be(tmp_path, args, code):
    assert create(tmp_path, **args)["error"]["code"] == code
    assert create(tmp_path, "preview", **args)["error"]["code"] == code
    assert list(tmp_path.iterdir()) == []


def test_create_puts_every_value_into_some_cell(tmp_path):
    strange = [
        [None, True, 10**20, float("nan"), float("inf"), "\x00\x0b\ud800\uffff", "x" * 40_000],
        [["a", 1], {"k": 1}, {"blob": "AA=="}, "2026-13-45", "0001-01-01", 0.1, "1" * 50],
    ]

    seen = create(tmp_path, path="s.xlsx", rows=strange)

    assert seen["ok"]
    assert seen["metadata"]["cut_cells"] == 1
    first, second = cells(tmp_path / "s.xlsx")
    assert first[:4] == ["", True, "1" + "0" * 20, ""]
    assert first[5].count("\ufffd") == 4
    assert len(first[6]) == 32_767
    assert second == ["a, 1", '{"k": 1}', "", "2026-13-45", "0001-01-01", 0.1, "1" * 50]


def test_create_in_the_cage_is_an_ordinary_package(tmp_path):
    entries = [{"name": f"{n}.pdf", "size": n} for n in range(500)]

    seen = run_caged(
        "create_files_spreadsheet",
        {"path": str(tmp_path / "f.xlsx"), "entries": entries},
        tmp_path,
    )

    assert seen["ok"], seen
    with zipfile.ZipFile(tmp_path / "f.xlsx") as archive:
        assert archive.testzip() is None
    # Row by row, as programs read that believe what the sheet says of its size.
    book = openpyxl.load_workbook(tmp_path / "f.xlsx", read_only=True)
    rows = list(book.active.iter_rows(values_only=True))
    assert (len(rows), rows[0], rows[-1]) == (501, ("name", "size"), ("499.pdf", 499))
    book.close()


def test_the_same_table_is_the_same_bytes_and_another_moment_is_not():
    table = Table(["a"], [["x"], [dt.date(2026, 1, 2)]])
    made = [
        xlsx.made(table, name="F", title="", now=now, told=lambda rows: None)
        for now in (dt.datetime(2026, 3, 18, 9, tzinfo=dt.UTC),) * 2
    ]

    assert made[0] == made[1]


def test_moment_of_takes_only_whole_dates():
    zone = dt.timezone(dt.timedelta(hours=1))
    assert moment_of("2026-03-18", zone) == dt.date(2026, 3, 18)
    assert moment_of("2026-03-18T23:30:00Z", zone) == at(2026, 3, 19, 0, 30)
    assert moment_of("2026-03-18 10:00", zone) == at(2026, 3, 18, 10)
    for text in ("2026-03-18 x", "20260318", "2026-02-30", "1789-07-14", "12", "9999-12-31T24:00"):
        assert moment_of(text, zone) is None


# -- reading --------------------------------------------------------------------------------------


def _book(path, *rows, title="Spese"):
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    book.save(path)


def test_read_gives_a_row_an_entry_with_the_headings_as_fields(tmp_path):
    _book(
        tmp_path / "spese.xlsx",
        ["Spese 2026"],
        ["Data", "Voce", "Importo", "", "Voce", "ok"],
        [at(2026, 3, 1), "pane", 3.5, "x", "y", "z"],
        [None, None, None],
        [at(2026, 3, 2, 8, 30), "latte", 2.0, None, "=1+1", True],
    )

    seen = read(tmp_path, "spese.xlsx")

    first, second = seen["entries"]
    assert first == {
        "ok": True, "Data": "2026-03-01", "Voce": "pane", "Importo": 3.5, "D": "x",
        "Voce (E)": "y", "ok (F)": "z",
    }  # fmt: skip
    assert second["Data"] == "2026-03-02T08:30:00"
    assert second["Importo"] == 2
    assert seen["metadata"]["columns"][:3] == ["Data", "Voce", "Importo"]
    assert (seen["metadata"]["sheet"], seen["metadata"]["available"]) == ("Spese", 2)


def test_read_without_headings_calls_columns_by_their_letters(tmp_path):
    _book(tmp_path / "n.xlsx", [1, 2], [3, 4])

    assert [list(e.items()) for e in read(tmp_path, "n.xlsx")["entries"]] == [
        [("ok", True), ("A", 1), ("B", 2)],
        [("ok", True), ("A", 3), ("B", 4)],
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b\n1,5;x\n", {"a": "1,5", "b": "x"}),
        ("a,b\n1.5,x\n", {"a": "1.5", "b": "x"}),
        ("a\tb\n1\tx\n", {"a": "1", "b": "x"}),
        ("a|b\n1|x\n", {"a": "1", "b": "x"}),
        ('a,b\n"x, ""y""\nz",2\n', {"a": 'x, "y"\nz', "b": "2"}),
        ("a\n1\n", {"a": "1"}),
        ("nome;importo\nRossi, Anna;1.234,56\n", {"nome": "Rossi, Anna", "importo": "1.234,56"}),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_read_csv_finds_its_separator_and_encoding(tmp_path, text, expected, encoding):
    (tmp_path / "d.csv").write_bytes(text.replace("x", "è").encode(encoding))

    entry = read(tmp_path, "d.csv")["entries"][0]

    assert {k: v.replace("è", "x") for k, v in entry.items() if k != "ok"} == expected


def test_read_several_files_tells_them_apart_and_names_what_failed(tmp_path):
    (tmp_path / "a.csv").write_text("n,m\n1,a\n2,b\n", encoding="utf-8")
    _book(tmp_path / "b.xlsx", ["n"], [3])

    seen = read(tmp_path, "a.csv", "b.xlsx", "c.ods")

    assert [(e.get("n"), e.get("file")) for e in seen["entries"]] == [
        ("1", "a.csv"),
        ("2", "a.csv"),
        (3, "b.xlsx"),
        (None, None),
    ]
    assert seen["entries"][3]["error"]["code"] == "not_found"
    assert (seen["metadata"]["available"], seen["metadata"]["truncated"]) == (3, False)


def test_read_a_named_sheet_and_say_which_there_are(tmp_path):
    book = openpyxl.Workbook()
    book.active.title = "Vuoto"
    second = book.create_sheet("Conti")
    second.append(["a", "b"])
    second.append([1, 2])
    book.save(tmp_path / "b.xlsx")

    assert read(tmp_path, "b.xlsx")["metadata"]["sheet"] == "Conti"  # the first holds nothing
    assert read(tmp_path, "b.xlsx", sheet="conti")["entries"][0]["a"] == 1
    assert (
        read(tmp_path, "b.xlsx", sheet="altro")["error"] | {"code": "not_found"}
        == read(tmp_path, "b.xlsx", sheet="altro")["error"]
    )


def _bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * (40 << 20))


def _locked(path):
    path.write_bytes(
        b"\xd0\xcf\x11\xe0" + b"\0" * 600 + "EncryptedPackage".encode("utf-16-le") + b"\0" * 600
    )


def _locked_ods(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<x><manifest:encryption-data/></x>")
        archive.writestr("content.xml", b"\x00\x01")


@pytest.mark.parametrize(
    ("name", "make", "code"),
    [
        ("a.xlsx", lambda path: path.write_bytes(b"ciao"), "damaged"),
        ("a.xlsx", lambda path: path.write_bytes(b"PK\x03\x04 no"), "damaged"),
        ("a.xlsx", _bomb, "too_large"),
        ("a.xlsx", _locked, "password_needed"),
        ("a.ods", _locked_ods, "password_needed"),
        ("a.ods", lambda path: path.write_bytes(b""), "damaged"),
        ("a.csv", lambda path: path.write_bytes(b"\x00\x01\x02"), "not_text"),
        ("a.pdf", lambda path: path.write_bytes(b"x"), "unsupported"),
        ("a", lambda path: path.write_bytes(b"x"), "unsupported"),
        ("a.xlsx", lambda path: path.mkdir(), "is_directory"),
        ("a.xlsx", os.mkfifo, "not_regular"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_read_bad_files_get_a_clear_word(tmp_path, name, make, code):
    make(tmp_path / name)

    assert read(tmp_path, name)["error"]["code"] == code


def test_read_counts_the_rows_it_leaves_out(tmp_path):
    (tmp_path / "n.csv").write_text(
        "n\n" + "".join(f"x{n}\n" for n in range(50)), encoding="utf-8"
    )

    seen = read(tmp_path, "n.csv", max_rows=20)

    assert len(seen["entries"]) == 20
    assert seen["metadata"] | {"used": 20, "available": 50, "truncated": True} == seen["metadata"]


def test_read_a_wide_table_gives_no_more_than_an_answer_holds(tmp_path):
    wide = ",".join(f"c{n}" for n in range(1000))
    body = "".join(",".join(["1"] * 1000) + "\n" for _ in range(400))
    (tmp_path / "w.csv").write_text(f"{wide}\n{body}", encoding="utf-8")

    seen = run_caged("read_files_spreadsheet", {"paths": [str(tmp_path / "w.csv")]}, tmp_path)

    assert seen["ok"], seen
    assert seen["metadata"]["available"] == 400
    assert 0 < seen["metadata"]["used"] < 400


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_created_is_read_again_in_the_cage(tmp_path, kind):
    create(tmp_path, path=f"f.{kind}", entries=[{"nome": "città", "n": 2}, {"nome": "b", "n": 3}])

    seen = run_caged("read_files_spreadsheet", {"paths": [str(tmp_path / f"f.{kind}")]}, tmp_path)

    assert [(e["nome"], str(e["n"])) for e in seen["entries"]] == [("città", "2"), ("b", "3")]


# -- adding ---------------------------------------------------------------------------------------


def _existing(root, kind):
    create(
        root, path=f"conti.{kind}", rows=[["pane", 3.5], ["latte", 1]], columns=["voce", "euro"]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_write_adds_fields_under_their_headings_and_can_be_taken_back(tmp_path, kind):
    _existing(tmp_path, kind)
    old = (tmp_path / f"conti.{kind}").read_bytes()
    args = {"path": f"conti.{kind}", "entries": [{"euro": 7, "voce": "=uva", "altro": 1}]}

    promised = write(tmp_path, "preview", **args)
    assert (tmp_path / f"conti.{kind}").read_bytes() == old
    seen = write(tmp_path, **args)

    data = (tmp_path / f"conti.{kind}").read_bytes()
    entry = seen["entries"][0]
    assert (entry["rows"], entry["first_row"], entry["created"]) == (1, 4, False)
    assert promised["after"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert promised["undo"] == undo_of(seen)
    assert Path(entry["kept"]).read_bytes() == old
    rows = read(tmp_path, f"conti.{kind}")["entries"]
    assert len(rows) == 3
    assert (str(rows[2]["euro"]), rows[2]["voce"].lstrip("'")) == ("7", "=uva")


def test_write_keeps_what_else_a_workbook_holds(tmp_path):
    book = openpyxl.Workbook()
    book.active.append(["voce", "euro"])
    book.active.append(["pane", 3.5])
    book.active["D1"] = "=SUM(B:B)"
    book.active["A2"].font = openpyxl.styles.Font(italic=True)
    book.create_sheet("Altro").append(["resta"])
    book.save(tmp_path / "c.xlsx")

    seen = write(tmp_path, path="c.xlsx", rows=[["latte", 1]])

    assert seen["ok"], seen
    after = openpyxl.load_workbook(tmp_path / "c.xlsx")
    assert [c.value for c in after["Sheet"][3]][:2] == ["latte", 1]
    assert after["Sheet"]["D1"].value == "=SUM(B:B)"
    assert after["Sheet"]["A2"].font.italic
    assert after["Altro"]["A1"].value == "resta"


@pytest.mark.parametrize("kind", KINDS)
def test_write_replaces_the_rows_when_asked(tmp_path, kind):
    _existing(tmp_path, kind)

    write(tmp_path, path=f"conti.{kind}", entries=[{"voce": "uva", "euro": 2}], mode="replace")

    rows = read(tmp_path, f"conti.{kind}")["entries"]
    assert [(r["voce"], str(r["euro"])) for r in rows] == [("uva", "2")]


def test_write_makes_a_file_that_is_not_there(tmp_path):
    seen = write(tmp_path, path="nuovo", entries=[{"a": 1}])

    assert seen["entries"][0]["created"]
    assert cells(tmp_path / "nuovo.xlsx") == [["a"], [1]]


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"path": "conti.csv", "entries": [{"colore": "blu"}]}, "unknown_field"),
        ({"path": "conti.csv", "rows": [[1, 2, 3]]}, "invalid_args"),
        ({"path": "a.txt", "rows": [[1]]}, "unsupported_format"),
        ({"path": "rotto.xlsx", "rows": [[1]]}, "damaged"),
        ({"path": "conti.xlsx", "rows": [[1]], "sheet": "altro"}, "not_found"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_write_says_what_cannot_be_and_changes_nothing(tmp_path, args, code):
    for kind in ("csv", "xlsx"):
        _existing(tmp_path, kind)
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    (tmp_path / "rotto.xlsx").write_text("x", encoding="utf-8")
    before = snapshot(tmp_path)

    for mode in ("preview", "run"):
        assert write(tmp_path, mode, **args)["error"]["code"] == code
    assert snapshot(tmp_path) == before


def test_write_adds_to_a_latin_file_in_its_encoding(tmp_path):
    (tmp_path / "c.csv").write_bytes("città;€\r\nTorino;1,5".encode("cp1252"))

    write(tmp_path, path="c.csv", rows=[["Forlì", 2.5]])

    assert (tmp_path / "c.csv").read_bytes().decode("cp1252") == (
        "città;€\r\nTorino;1,5\r\nForlì;2,5\r\n"
    )


def test_headed_prefers_a_row_of_texts():
    assert sheets.headed([["a", "b"], [1, 2]])[0] == ["a", "b"]
    assert sheets.headed([["12", "b"], [1, 2]])[0] == ["A", "B"]
    assert sheets.headed([])[0] == []
    assert [tables.letters(n) for n in (1, 26, 27, 703)] == ["A", "Z", "AA", "AAA"]


def test_a_large_table_is_written_row_by_row():
    """Its bytes grow with the rows, its time with them: no figure, only that it is possible."""
    table = Table(["n", "t"], [[n, f"testo {n}"] for n in range(20_000)])
    told: list[int] = []

    data = xlsx.made(
        table, name="F", title="", now=dt.datetime(2026, 1, 1, tzinfo=dt.UTC), told=told.append
    )

    assert told == [5000, 10_000, 15_000, 20_000]
    book = CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_index(0)
    assert book.height == 20_001


def test_days_added_to_ods_stay_days_and_look_as_those_above(tmp_path):
    """The library alone writes a day as midnight, in the office suite's own form."""
    rows = [["a", "2026-01-02", "2026-03-17T22:30:00", 1]]
    create(tmp_path, path="f.ods", rows=rows, columns=["n", "d", "m", "k"])
    more = [["b", "2026-04-02", "2026-04-02T10:20:30", "2026-05-05"]]
    assert write(tmp_path, path="f.ods", rows=more)["ok"]

    moment = at(2026, 4, 2, 10, 20, 30)
    assert cells(tmp_path / "f.ods")[2] == ["b", dt.date(2026, 4, 2), moment, dt.date(2026, 5, 5)]
    table = Document(tmp_path / "f.ods").body.get_table(0)
    assert table is not None
    above, added = ([cell.style for cell in table.get_row(n).cells] for n in (1, 2))
    assert added[1:3] == above[1:3]
    assert added[3]  # in a style of a day, where there was none above


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("ext", ["csv", "tsv"])
def test_bare_carriage_return_begins_no_cell_of_its_own(tmp_path, ext, end):
    """Else what follows it is read as a row, and so as a formula."""
    path = tmp_path / f"f.{ext}"
    path.write_bytes(f"nome{end}anna{end}".encode())
    hostile = ["x\r=1+1", "\r=1+1", "\n=1+1", "a\r\n@SUM(A1)"]

    entries = [{"nome": text} for text in hostile]
    run("write_files_spreadsheet", {"entries": entries, "path": str(path)}, tmp_path)
    made = run("create_files_spreadsheet",
               {"entries": entries, "path": str(tmp_path / f"g.{ext}")}, tmp_path)  # fmt: skip

    assert made["ok"]
    for name in (f"f.{ext}", f"g.{ext}"):
        data = (tmp_path / name).read_bytes().decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(data, newline="")))
        cells = [cell for row in rows for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "\n="))], cells
        assert "\r" not in data.replace("\r\n", "\n")
