"""PDFs, text documents, pictures and folders: made by one tool and read by another."""

from __future__ import annotations

import hashlib
import io
import os
import statistics
import zipfile

import pytest
from docx import Document
from fpdf import FPDF
from odfdo import Document as OdfDocument
from odfdo import Header, List, Paragraph
from PIL import ExifTags, Image

from tests.executors.file_cases import run, run_caged, snapshot, undo_of

# -- PDFs -----------------------------------------------------------------------------------------


def make_pdf(path, *pages, password=None, title="", user_password=""):
    document = FPDF()
    document.set_font("helvetica", size=12)
    if title:
        document.set_title(title)
    if password:
        document.set_encryption(owner_password=password, user_password=user_password)
    for text in pages:
        document.add_page()
        if text:
            document.multi_cell(w=0, text=text)
    document.output(str(path))


def read_pdf(root, *names, **args):
    return run("read_files_pdf", {"paths": [str(root / name) for name in names], **args}, root)


def test_pdf_gives_its_text_page_by_page(tmp_path):
    make_pdf(tmp_path / "a.pdf", "Prima pagina, città", "Seconda", "Terza", title="Prova")

    whole = read_pdf(tmp_path, "a.pdf")["entries"][0]
    part = read_pdf(tmp_path, "a.pdf", first_page=2, last_page=2)["entries"][0]
    cut = read_pdf(tmp_path, "a.pdf", max_chars=10)

    assert whole["text"] == "Prima pagina, città\n\nSeconda\n\nTerza"
    assert (whole["pages"], whole["title"], whole["truncated"]) == (3, "Prova", False)
    assert (part["text"], part["first_page"], part["last_page"]) == ("Seconda", 2, 2)
    assert cut["entries"][0]["text"] == "Prima pagi"
    assert cut["metadata"]["truncated"]
    assert (cut["entries"][0]["used"], cut["entries"][0]["available"]) == (1, 3)


def test_pdf_that_is_locked_says_so_and_one_against_printing_opens(tmp_path):
    make_pdf(tmp_path / "chiuso.pdf", "segreto", password="x", user_password="y")
    make_pdf(tmp_path / "aperto.pdf", "leggibile", password="x")

    seen = read_pdf(tmp_path, "chiuso.pdf", "aperto.pdf")

    assert seen["entries"][0]["error"]["code"] == "password_needed"
    assert seen["entries"][1]["text"] == "leggibile"


def test_pdf_without_text_is_said_to_be_a_scan(tmp_path):
    make_pdf(tmp_path / "a.pdf", "", "")

    assert read_pdf(tmp_path, "a.pdf")["entries"][0]["scanned"] == 2


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "damaged"),
        (b"ciao", "damaged"),
        (b"%PDF-1.7\n" + b"\x00" * 500, "damaged"),
        (b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 1 0 R>>endobj\ntrailer<</Root 1 0 R>>", None),
    ],
    ids=["empty", "text", "zeros", "circle"],
)
def test_pdf_that_is_broken_gets_a_clear_word(tmp_path, data, code):
    (tmp_path / "a.pdf").write_bytes(data)

    seen = read_pdf(tmp_path, "a.pdf")

    if code is not None:
        assert seen["error"]["code"] == code
    else:
        assert seen["ok"] or seen["error"]["code"] == "damaged"


def test_pdf_cut_off_anywhere_is_read_or_refused(tmp_path):
    make_pdf(tmp_path / "a.pdf", "Prima " * 50, "Seconda " * 50)
    data = (tmp_path / "a.pdf").read_bytes()

    for at in range(0, len(data), max(1, len(data) // 60)):
        (tmp_path / "b.pdf").write_bytes(data[:at] + b"\xff" * 3 + data[at + 3 :])
        seen = read_pdf(tmp_path, "b.pdf")
        assert seen["ok"] or seen["error"]["code"] in {"damaged", "password_needed"}


def test_pdf_page_that_is_not_there_is_said(tmp_path):
    make_pdf(tmp_path / "a.pdf", "uno")

    assert read_pdf(tmp_path, "a.pdf", first_page=7)["error"]["code"] == "not_found"


# -- text documents -------------------------------------------------------------------------------

TEXT = """# Spese

Il *mese* di **marzo**, `x = 1`:

- pane
- latte
  - intero

1. primo

| voce | euro |
|------|------|
| pane | 3,50 |

> citazione <script>alert(1)</script>

[sito](http://a.example/x) ~~via~~
"""


def make_doc(root, how="run", **args):
    if "path" in args:
        args["path"] = str(root / args["path"])
    return run("create_files_doc", args, root, mode=how)


def read_doc(root, *names, **args):
    return run("read_files_doc", {"paths": [str(root / name) for name in names], **args}, root)


def test_docx_that_was_made_is_read_by_its_own_library_and_by_ours(tmp_path):
    promised = make_doc(tmp_path, "preview", path="a.docx", content=TEXT)
    seen = make_doc(tmp_path, path="a.docx", content=TEXT)

    data = (tmp_path / "a.docx").read_bytes()
    assert promised["after"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert promised["undo"] == undo_of(seen)
    document = Document(io.BytesIO(data))
    styles = {p.text: p.style.name for p in document.paragraphs if p.style is not None}
    assert styles["Spese"] == "Heading 1"
    assert styles["pane"] == "List Bullet"
    assert styles["intero"] == "List Bullet 2"
    assert styles["primo"] == "List Number"
    bold = [r.text for p in document.paragraphs for r in p.runs if r.bold]
    assert bold == ["marzo"]
    assert document.tables[0].cell(1, 1).text == "3,50"
    text = read_doc(tmp_path, "a.docx")["entries"][0]["text"]
    for line in (
        "# Spese",
        "- pane",
        "voce | euro",
        "pane | 3,50",
        "sito (http://a.example/x) via",
    ):
        assert line in text.splitlines()
    assert "<script>alert(1)</script>" in text


def test_html_that_is_made_holds_no_foreign_markup(tmp_path):
    make_doc(tmp_path, path="a.html", content=TEXT + "\n[x](javascript:alert(1))", title="A&B")

    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<title>A&amp;B</title>" in page
    assert "<script" not in page
    assert 'href="javascript' not in page


def test_document_of_what_steps_read(tmp_path):
    entries = [
        {"ok": True, "name": "uno.txt", "text": "primo testo"},
        {"ok": False, "error": {"code": "not_found"}},
        {"ok": True, "title": "due", "body": "secondo"},
        {"ok": True, "size": 3},
    ]

    seen = make_doc(tmp_path, entries=entries, title="Raccolta")

    assert os.path.relpath(seen["entries"][0]["path"], tmp_path) == "Raccolta.docx"
    text = read_doc(tmp_path, "Raccolta.docx")["entries"][0]["text"]
    assert text.splitlines()[0] == "# Raccolta"
    assert "## uno.txt" in text
    assert "secondo" in text
    assert make_doc(tmp_path, content="  ")["entries"] == []
    assert make_doc(tmp_path, entries=[{"size": 3}])["error"]["code"] == "missing_input"


def test_odt_of_another_library_is_read(tmp_path):
    document = OdfDocument("text")
    document.body.clear()
    document.body.append(Header(1, "Titolo"))
    document.body.append(Paragraph("Prima  riga con città"))
    items = List()
    items.append_item("voce")
    document.body.append(items)
    document.save(tmp_path / "a.odt")

    entry = read_doc(tmp_path, "a.odt")["entries"][0]

    assert entry["text"].splitlines() == ["# Titolo", "", "Prima  riga con città", "", "- voce"]


def test_rtf_is_read_with_its_accents(tmp_path):
    (tmp_path / "a.rtf").write_bytes(
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}\f0 Citt\'e0 \u8364?5\par\b due}"
    )

    assert read_doc(tmp_path, "a.rtf")["entries"][0]["text"] == "Città €5\ndue"


def _bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * (40 << 20))


def _entities(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "content.xml",
            '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
            '<a xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
            "<text:p>&x;</text:p></a>",
        )


@pytest.mark.parametrize(
    ("name", "make", "code"),
    [
        ("a.docx", lambda path: path.write_bytes(b"ciao"), "damaged"),
        ("a.docx", _bomb, "too_large"),
        ("a.docx", lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 99), "unsupported"),
        ("a.odt", lambda path: path.write_bytes(b"PK\x05\x06" + b"\0" * 18), "damaged"),
        ("a.rtf", lambda path: path.write_bytes(b"ciao"), "damaged"),
        ("a.doc", lambda path: path.write_bytes(b"ciao"), "unsupported"),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_document_that_is_bad_gets_a_clear_word(tmp_path, name, make, code):
    make(tmp_path / name)

    assert read_doc(tmp_path, name)["error"]["code"] == code


def test_odt_reads_no_foreign_entity(tmp_path):
    _entities(tmp_path / "a.odt")

    seen = read_doc(tmp_path, "a.odt")

    assert "root:" not in str(seen)


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("read_files_pdf", {"paths": ["a.pdf"]}),
        ("read_files_doc", {"paths": ["a.docx"]}),
        ("get_files", {"paths": ["a.jpg"]}),
        ("create_files_doc", {"path": "b.docx", "content": TEXT}),
        ("change_files_format", {"paths": ["a.jpg"], "to_format": "png"}),
        ("change_files_format", {"paths": ["a.docx"], "to_format": "md"}),
    ],
    ids=lambda value: value if isinstance(value, str) else getattr(value, "__name__", None),
)
def test_documents_in_the_cage(tmp_path, tool, args):
    make_pdf(tmp_path / "a.pdf", "uno")
    make_doc(tmp_path, path="a.docx", content="ciao")
    _photo(tmp_path / "a.jpg")
    args = {
        key: [str(tmp_path / one) for one in value] if key == "paths" else value
        for key, value in args.items()
    }
    if "path" in args:
        args["path"] = str(tmp_path / args["path"])

    seen = run_caged(tool, args, tmp_path)

    assert seen["ok"], seen


# -- pictures and facts ---------------------------------------------------------------------------


def _photo(path, size=(40, 30)):
    exif = Image.Exif()
    exif[271], exif[272] = "Leica", "Leica Q3"
    exif[274] = 6  # lies on its side
    exif.get_ifd(ExifTags.IFD.Exif)[36867] = "2026:03:17 10:20:30"
    place = exif.get_ifd(ExifTags.IFD.GPSInfo)
    place[1], place[2] = "N", (45.0, 4.0, 12.0)
    place[3], place[4] = "E", (7.0, 41.0, 24.0)
    Image.new("RGB", size, "red").save(path, exif=exif)


def facts(root, *names):
    return run("get_files", {"paths": [str(root / name) for name in names]}, root)


def test_photo_says_when_where_and_with_what(tmp_path):
    _photo(tmp_path / "a.jpg")

    entry = facts(tmp_path, "a.jpg")["entries"][0]

    assert (entry["width"], entry["height"], entry["camera"]) == (40, 30, "Leica Q3")
    assert entry["taken"] == "2026-03-17T10:20:30"
    assert (entry["lat"], entry["lon"]) == (45.07, 7.69)
    assert entry["media_type"] == "image/jpeg"


@pytest.mark.parametrize(
    "data", [b"", b"ciao", b"\xff\xd8\xff\xe1\x00\x10Exif\x00\x00" + b"\xff" * 40, b"GIF89a"]
)
def test_picture_that_is_broken_is_a_file_all_the_same(tmp_path, data):
    (tmp_path / "a.jpg").write_bytes(data)

    entry = facts(tmp_path, "a.jpg")["entries"][0]

    assert entry["ok"]
    assert entry["size"] == len(data)


def test_facts_of_folders_links_and_what_is_not_there(tmp_path):
    (tmp_path / "box/sub").mkdir(parents=True)
    (tmp_path / "box/sub/a.txt").write_text("ciao", encoding="utf-8")
    (tmp_path / "vuota").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")

    box, empty, link, gone = facts(tmp_path, "box", "vuota", "link", "via")["entries"]

    assert (box["kind"], box["items"], box["size"]) == ("dir", 1, 4)
    assert (empty["items"], empty["size"]) == (0, 0)
    assert (link["kind"], "media_type" in link) == ("link", False)
    assert gone["error"]["code"] == "not_found"


def convert(root, to, *names, how="run", **args):
    paths = [str(root / name) for name in names]
    if "dest" in args:
        args["dest"] = str(root / args["dest"])
    return run("change_files_format", {"paths": paths, "to_format": to, **args}, root, mode=how)


@pytest.mark.parametrize("to", ["png", "webp", "gif", "bmp", "tiff"])
def test_picture_becomes_another_upright_and_without_its_place(tmp_path, to):
    _photo(tmp_path / "a.jpg")

    assert convert(tmp_path, to, "a.jpg")["ok"]

    with Image.open(tmp_path / f"a.{to}") as made:
        assert made.size == (30, 40)
        assert not made.getexif().get_ifd(ExifTags.IFD.GPSInfo)


def test_transparent_picture_becomes_jpg_on_white(tmp_path):
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(tmp_path / "a.png")

    assert convert(tmp_path, "jpg", "a.png")["ok"]

    with Image.open(tmp_path / "a.jpg") as made:
        assert made.getpixel((1, 1)) == (255, 255, 255)


@pytest.mark.parametrize("to", ["xlsx", "ods", "csv"])
def test_spreadsheet_becomes_another_and_its_numbers_stay_numbers(tmp_path, to):
    (tmp_path / "a.csv").write_text(
        "voce;euro;tel;giorno\npane;3,50;0111234;2026-03-01\n", encoding="utf-8"
    )
    source = "a.csv"
    if to == "csv":
        convert(tmp_path, "xlsx", "a.csv")
        source = "a.xlsx"

    seen = convert(tmp_path, to, source)

    made = os.path.relpath(seen["entries"][0]["path"], tmp_path)
    assert made == ("a 2.csv" if to == "csv" else f"a.{to}")
    row = run("read_files_spreadsheet", {"paths": [str(tmp_path / made)]}, tmp_path)["entries"][0]
    expected = "3,5" if to == "csv" else 3.5
    assert (row["voce"], row["euro"], row["tel"]) == ("pane", expected, "0111234")
    assert row["giorno"] == "2026-03-01"


@pytest.mark.parametrize("to", ["docx", "html", "txt"])
def test_text_becomes_a_document_beside_it_and_back(tmp_path, to):
    (tmp_path / "n.md").write_text("# Ciao\n\n- uno\n", encoding="utf-8")
    before = snapshot(tmp_path)

    promised = convert(tmp_path, to, "n.md", how="preview")
    assert snapshot(tmp_path) == before
    seen = convert(tmp_path, to, "n.md")

    data = (tmp_path / f"n.{to}").read_bytes()
    assert promised["after"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert promised["undo"] == undo_of({"entries": [
        {k: v for k, v in seen["entries"][0].items() if k != "source"}
    ]})  # fmt: skip
    if to == "docx":
        convert(tmp_path, "md", "n.docx")
        assert (tmp_path / "n 2.md").read_text(encoding="utf-8") == "# Ciao\n\n- uno\n"


@pytest.mark.parametrize(
    ("name", "data", "to", "code"),
    [
        ("a.jpg", b"ciao", "png", "damaged"),
        ("a.csv", b"a,b\n", "docx", "unsupported_format"),
        ("a.md", b"x", "md", "same_format"),
        ("a.exe", b"x", "txt", "unsupported"),
        ("a.xlsx", b"x", "csv", "damaged"),
    ],
)
def test_conversion_that_cannot_be_is_said_and_leaves_nothing(tmp_path, name, data, to, code):
    (tmp_path / name).write_bytes(data)

    for how in ("preview", "run"):
        assert convert(tmp_path, to, name, how=how)["error"]["code"] == code
    assert [path.name for path in tmp_path.iterdir()] == [name]


# -- folders --------------------------------------------------------------------------------------


def dirs(tool, root, *names, how="run"):
    return run(tool, {"paths": [str(root / name) for name in names]}, root, mode=how)


def test_folders_are_made_with_those_above_them_and_the_preview_says_which(tmp_path):
    (tmp_path / "a").mkdir()

    promised = dirs("create_dirs", tmp_path, "a", "a/b/c", "a/b/d", "e", how="preview")
    seen = dirs("create_dirs", tmp_path, "a", "a/b/c", "a/b/d", "e")

    made = [str(tmp_path / name) for name in ("a/b", "a/b/c", "a/b/d", "e")]
    assert promised["targets"] == made
    assert [one["path"] for one in promised["undo"]] == [made[0], made[3]]
    assert [entry["created"] for entry in seen["entries"]] == [False, True, True, True]
    assert (seen["metadata"]["made"], seen["metadata"]["there"]) == (4, 1)
    again = dirs("create_dirs", tmp_path, "a/b/c", how="preview")
    assert (again["count"], again["undo"]) == (0, [])


@pytest.mark.parametrize(
    ("name", "code"),
    [("file", "already_exists"), ("link", "out_of_scope"), ("file/x", "not_directory")],
)
def test_folder_is_not_made_where_something_else_is(tmp_path, name, code):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("/tmp")

    for how in ("preview", "run"):
        assert dirs("create_dirs", tmp_path, name, how=how)["error"]["code"] == code


def test_folders_are_deleted_into_the_trash_and_files_are_refused(tmp_path):
    (tmp_path / "box").mkdir()
    (tmp_path / "box/a.txt").write_text("uno", encoding="utf-8")
    (tmp_path / "b.txt").write_text("due", encoding="utf-8")

    promised = dirs("delete_dirs", tmp_path, "box", "b.txt", how="preview")
    seen = dirs("delete_dirs", tmp_path, "box", "b.txt")

    assert promised["targets"] == [str(tmp_path / "box")]
    assert promised["undo"] == undo_of(seen)
    by_path = {os.path.basename(e["path"]): e for e in seen["entries"]}  # noqa: PTH119
    assert by_path["b.txt"]["error"]["code"] == "not_directory"
    assert (tmp_path / "b.txt").exists()
    assert not (tmp_path / "box").exists()


def test_folders_are_found_by_name_and_by_emptiness(tmp_path):
    for name in ("foto/2025", "foto/vuota", ".nascosta/foto", "Documenti"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "foto/2025/a.jpg").write_text("x", encoding="utf-8")
    (tmp_path / "foto/.metnos-trash/t/foto").mkdir(parents=True)

    def found(**args):
        seen = run("find_dirs", {"base_path": str(tmp_path), **args}, tmp_path)
        return [os.path.relpath(entry["path"], tmp_path) for entry in seen["entries"]]

    assert found(patterns=["*foto*"]) == ["foto"]
    assert found(patterns=["FOTO"]) == ["foto"]
    assert sorted(found(empty=True)) == ["Documenti", "foto/vuota"]
    assert len(found(max_results=1)) == 1


# -- lines and numbers ----------------------------------------------------------------------------


def test_lines_are_kept_with_their_number_and_their_file():
    entries = [
        {"ok": True, "name": "a.log", "path": "/r/a.log", "text": "ok\nERRORE uno\n\nerrore due"},
        {"ok": False, "error": {"code": "not_found"}},
        {"ok": True, "name": "b.log", "text": "tutto bene"},
    ]

    seen = run("filter_texts_lines", {"entries": entries, "contains": "errore"})

    assert [(e["line"], e["text"], e["name"]) for e in seen["entries"]] == [
        (2, "ERRORE uno", "a.log"),
        (4, "errore due", "a.log"),
    ]
    assert seen["metadata"]["lines"] == 5
    few = run("filter_texts_lines", {"entries": entries, "regex": ".", "max_results": 1})
    assert (few["metadata"]["available"], few["metadata"]["truncated"]) == (4, True)


@pytest.mark.parametrize("args", [{}, {"contains": "a", "regex": "b"}, {"regex": "x" * 300}])
def test_lines_by_nothing_or_by_two_things_are_refused(args):
    assert run("filter_texts_lines", {"content": "a", **args})["error"]["code"] == "invalid_args"


def test_numbers_are_described_as_the_standard_library_does():
    numbers = [3, 1, 4, 1, 5, 9, 2, 6]

    entry = run("describe_numbers", {"values": [*numbers, "x", None]})["entries"][0]

    assert entry["n"] == 8
    assert entry["mean"] == statistics.mean(numbers)
    assert entry["median"] == statistics.median(numbers)
    assert entry["stdev"] == pytest.approx(statistics.stdev(numbers))
    assert [entry["q1"], entry["q3"]] == statistics.quantiles(numbers, n=4, method="inclusive")[
        ::2
    ]
    assert entry["skipped"] == 2


def test_numbers_of_entries_are_found_by_themselves():
    entries = [
        {"voce": "pane", "euro": "1.234,50 €", "n": 1, "data": "2026-03-01"},
        {"voce": "latte", "euro": "0,50 €", "n": 2, "data": "2026-03-02"},
    ]

    seen = run("describe_numbers", {"entries": entries})

    assert [(e["field"], e["sum"]) for e in seen["entries"]] == [("euro", 1235), ("n", 3)]
    one = run("describe_numbers", {"entries": entries[:1], "fields": ["n"]})["entries"][0]
    assert (one["median"], "stdev" in one) == (1, False)
    assert run("describe_numbers", {"entries": []})["entries"] == []
    unknown = run("describe_numbers", {"entries": entries, "fields": ["colore"]})
    assert unknown["error"]["code"] == "unknown_field"
