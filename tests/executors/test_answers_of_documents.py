"""What a person reads when a document, archive or folder executor has done its work."""

from __future__ import annotations

import os
import zipfile

import pytest
from PIL import Image

from tests.executors.test_answers_of_files import said


@pytest.fixture
def house(tmp_path):
    for name, text in {
        "a.txt": "uno",
        "copia.txt": "uno",
        "spese.csv": "voce;euro\npane;3,50\nlatte;1,20\n",
        "una.csv": "voce;euro\npane;3,50\n",
        "nota.md": "# Ciao\n",
        "nota.rtf": r"{\rtf1 Ciao mondo}",
        "box/b.txt": "due",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (1_773_000_000 + len(name),) * 2)
    (tmp_path / "vuota").mkdir()
    Image.new("RGB", (40, 30)).save(tmp_path / "foto.png")
    os.utime(tmp_path / "foto.png", (1_773_000_000,) * 2)
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.writestr("c.txt", "tre")
        archive.writestr("../d.txt", "quattro")
    return tmp_path


HASH = "bf0ec3694e122e067d9964a38ec7d8415781df4b24f442ad767b4621fb98f8c5"
CASES = [
    (
        "find_files_hash",
        {"base_path": "{root}"},
        "Un file ha lo stesso contenuto di un altro:\n~/copia.txt = ~/a.txt (3 byte)",
        "One file has the same content as another:\n~/copia.txt = ~/a.txt (3 bytes)",
    ),
    (
        "find_files_hash",
        {"base_path": "{root}/box"},
        "Non ho trovato file con lo stesso contenuto (ne ho confrontati 1).",
        "I found no files with equal content (of 1 compared).",
    ),
    (
        "create_files_spreadsheet",
        {"path": "{root}/f.xlsx", "rows": [["a", 1]], "columns": ["x", "y"]},
        "Ho creato ~/f.xlsx (righe: 1, colonne: 2).",
        "I made ~/f.xlsx (rows: 1, columns: 2).",
    ),
    (
        "create_files_spreadsheet",
        {"path": "{root}/spese.csv", "rows": [["a"]]},
        "Ho creato ~/spese 2.csv (righe: 1, colonne: 0). Il nome ~/spese.csv era già preso.",
        "I made ~/spese 2.csv (rows: 1, columns: 0). The name ~/spese.csv was taken.",
    ),
    (
        "create_files_spreadsheet",
        {"entries": []},
        "Non c'era niente da mettere nel foglio, quindi non l'ho creato.",
        "There was nothing to put into the spreadsheet, so I made none.",
    ),
    (
        "read_files_spreadsheet",
        {"paths": ["{root}/spese.csv"]},
        "Ho letto 2 righe di spese.csv (colonne: voce, euro):\npane, 3,50\nlatte, 1,20",
        "I read 2 rows of spese.csv (columns: voce, euro):\npane, 3,50\nlatte, 1,20",
    ),
    (
        "read_files_spreadsheet",
        {"paths": ["{root}/una.csv"]},
        "Il foglio una.csv ha una riga:\npane, 3,50",
        "The spreadsheet una.csv has one row:\npane, 3,50",
    ),
    (
        "write_files_spreadsheet",
        {"path": "{root}/spese.csv", "rows": [["uva", 2]]},
        "Ho scritto in ~/spese.csv, dalla riga 4 (righe: 1).",
        "I wrote into ~/spese.csv from row 4 on (rows: 1).",
    ),
    (
        "create_dirs",
        {"paths": ["{root}/x/y"]},
        "Cartella ~/x/y: pronta.",
        "Folder ~/x/y: ready.",
    ),
    (
        "delete_dirs",
        {"paths": ["{root}/box"]},
        "Ho messo nel cestino la cartella ~/box (3 byte; elementi: 1).",
        "I put the folder ~/box into the trash (3 bytes; items: 1).",
    ),
    (
        "find_dirs",
        {"patterns": ["vuota"]},
        "Ho trovato una cartella: ~/vuota (elementi: 0).",
        "I found one folder: ~/vuota (items: 0).",
    ),
    (
        "compress_files",
        {"paths": ["{root}/a.txt"], "format": "tar"},
        "Ho creato ~/a.tar (10.240 byte; file: 1, prima 3 byte).",
        "I made ~/a.tar (10,240 bytes; files: 1, 3 bytes before).",
    ),
    (
        "extract_files",
        {"paths": ["{root}/z.zip"]},
        "Ho estratto in ~/z (file: 1, 3 byte). Lasciati fuori perché non sicuri: 1, per esempio "
        "«../d.txt».",
        "I unpacked into ~/z (files: 1, 3 bytes). Left out as unsafe: 1, for example «../d.txt».",
    ),
    (
        "read_files_doc",
        {"paths": ["{root}/nota.rtf"]},
        "nota.rtf (parole: 2):\nCiao mondo",
        "nota.rtf (words: 2):\nCiao mondo",
    ),
    (
        "create_files_doc",
        {"path": "{root}/d.html", "content": "ciao a tutti"},
        "Ho creato ~/d.html (parole: 3).",
        "I made ~/d.html (words: 3).",
    ),
    (
        "change_files_format",
        {"paths": ["{root}/nota.md"], "to_format": "txt"},
        "Ho convertito ~/nota.md in ~/nota.txt (7 byte).",
        "I converted ~/nota.md to ~/nota.txt (7 bytes).",
    ),
    (
        "filter_texts_lines",
        {"content": "uno\ndue\nuno due", "contains": "uno"},
        "2 righe su 3:\n1: uno\n3: uno due",
        "2 lines of 3:\n1: uno\n3: uno due",
    ),
    (
        "describe_numbers",
        {"values": [1, 2, 3]},
        "valori 3, somma 6, media 2, mediana 2, da 1 a 3, deviazione standard 1.",
        "values 3, sum 6, mean 2, median 2, from 1 to 3, standard deviation 1.",
    ),
    (
        "read_files_pdf",
        {"paths": ["{root}/nessuno.pdf"]},
        "Non esiste (~/nessuno.pdf).",
        "It does not exist (~/nessuno.pdf).",
    ),
]


def within(args, root):
    def put(value):
        if isinstance(value, str):
            return value.replace("{root}", str(root))
        return [put(one) for one in value] if isinstance(value, list) else value

    return {key: put(value) for key, value in args.items()}


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {len(str(case[1]))}")
def test_answer_says_what_was_done_in_the_persons_language(house, case, lang):
    name, args, italian, english = case

    text = said(name, within(args, house), house, lang)

    assert text == (italian if lang == "it" else english)


@pytest.mark.parametrize("lang", ["it", "en"])
def test_answer_about_a_picture_names_its_measures(house, lang):
    text = said("get_files", {"paths": [str(house / "foto.png")]}, house, lang)

    assert "40 × 30" in text
    assert text.startswith("~/foto.png")


@pytest.mark.parametrize("lang", ["it", "en"])
def test_answer_about_a_hash_shows_it_whole(house, lang):
    text = said("compute_signatures", {"paths": [str(house / "a.txt")]}, house, lang)

    assert text.splitlines()[1] == HASH
