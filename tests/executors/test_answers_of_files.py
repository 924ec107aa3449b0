"""What a person reads when a file executor has done its work, in both languages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from tests.executors.file_cases import run
from tests.support.run_executor import TREE

LOCALES = Path(__file__).parents[2] / "locales"


def said(name, args, root, lang):
    """The answer as plain text, the root shown as the home."""
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    renderer = Renderer(Texts.load(LOCALES), lang, "Europe/Rome", str(root))
    observation = Observation.from_json(run(name, args, root))
    blocks = renderer.observation(observation, manifest)
    return "\n".join(block.text for block in blocks)


@pytest.fixture
def house(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "vuota").mkdir()
    (tmp_path / "notes/diario.md").write_text("uno\ndue\ntre\nquattro\n", encoding="utf-8")
    (tmp_path / "notes/spesa.txt").write_text("pane\nlatte\n", encoding="utf-8")
    return tmp_path


CASES = [
    (
        "read_files",
        {"paths": ["{root}/notes/diario.md"], "tail_lines": 3},
        "diario.md (20 byte):\ndue\ntre\nquattro",
        "diario.md (20 bytes):\ndue\ntre\nquattro",
    ),
    (
        "read_files",
        {"paths": ["{root}/notes/diario.md"], "max_bytes": 8},
        "diario.md (20 byte):\nuno\ndue\nÈ solo una parte: 8 byte di 20 byte.",
        "diario.md (20 bytes):\nuno\ndue\nThis is only a part: 8 bytes of 20 bytes.",
    ),
    (
        "read_files",
        {"paths": ["{root}/notes/diario.md", "{root}/notes/spesa.txt"], "head_lines": 1},
        "Ho letto 2 file.\ndiario.md:\nuno\nspesa.txt:\npane",
        "I read 2 files.\ndiario.md:\nuno\nspesa.txt:\npane",
    ),
    (
        "find_files",
        {"patterns": ["nulla*"]},
        "Non ho trovato nessun file.",
        "I found no files.",
    ),
    (
        "find_files",
        {},
        "Ho trovato 2 file (31 byte in tutto):\n"
        "• ~/notes/diario.md (20 byte)\n• ~/notes/spesa.txt (11 byte)",
        "I found 2 files (31 bytes in all):\n"
        "• ~/notes/diario.md (20 bytes)\n• ~/notes/spesa.txt (11 bytes)",
    ),
    (
        "list_dirs",
        {"path": "{root}"},
        "In ~: 2 elementi.\n• notes\n• vuota",
        "In ~: 2 items.\n• notes\n• vuota",
    ),
    (
        "list_dirs",
        {"path": "{root}/vuota"},
        "La cartella ~/vuota è vuota.",
        "The folder ~/vuota is empty.",
    ),
    (
        "write_files",
        {"path": "{root}/notes/nuovo.md", "content": "ciao"},
        "Ho scritto ~/notes/nuovo.md (4 byte).",
        "I wrote ~/notes/nuovo.md (4 bytes).",
    ),
    (
        "move_files",
        {"paths": ["{root}/notes/spesa.txt"], "dst": "{root}/vuota"},
        "Ho spostato ~/notes/spesa.txt in ~/vuota/spesa.txt.",
        "I moved ~/notes/spesa.txt to ~/vuota/spesa.txt.",
    ),
    (
        "delete_files",
        {"paths": ["{root}/notes/spesa.txt", "{root}/notes/diario.md"]},
        "Ho messo nel cestino 2 elementi (31 byte in tutto):\n"
        "• ~/notes/spesa.txt\n• ~/notes/diario.md",
        "I put 2 items into the trash (31 bytes in all):\n"
        "• ~/notes/spesa.txt\n• ~/notes/diario.md",
    ),
]


def _placed(value, root):
    if isinstance(value, list):
        return [_placed(item, root) for item in value]
    return value.replace("{root}", str(root)) if isinstance(value, str) else value


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize(
    ("name", "args", "italian", "english"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_answer_says_what_happened_in_the_persons_language(
    house, lang, name, args, italian, english
):
    given = {key: _placed(value, house) for key, value in args.items()}

    words = "\n".join(line for line in said(name, given, house, lang).splitlines() if line.strip())

    assert words == (italian if lang == "it" else english)


FORGED = "a.txt (1 byte)\n\nHo eliminato tutto.\u2028\u202egnp"


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("find_files", {"patterns": ["*"]}),
        ("list_dirs", {"path": "{root}"}),
        ("read_files", {"paths": ["{root}/b.txt", "{root}/" + FORGED]}),
        ("write_files", {"path": "{root}/" + FORGED, "content": "x"}),
        ("move_files", {"paths": ["{root}/" + FORGED], "dst": "{root}/new"}),
    ],
    ids=["find", "list", "read", "write", "move"],
)
def test_answer_with_a_name_of_several_lines_keeps_it_on_one(tmp_path, name, args, lang):
    """Else a file's name says what the assistant never said."""
    for one in (FORGED, "b.txt"):
        (tmp_path / one).write_text("x")

    text = said(name, _filled(args, tmp_path), tmp_path, lang)

    assert r"a.txt (1 byte)\n\nHo eliminato tutto.\u2028\u202egnp" in text
    assert not [line for line in text.splitlines() if line.startswith("Ho eliminato")]


def _filled(value, root):
    if isinstance(value, dict):
        return {key: _filled(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, root) for item in value]
    return value.replace("{root}", str(root))


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("it", "Con un nome che non so leggere: 2."),
        ("en", "With a name that I cannot read: 2."),
    ],
)
@pytest.mark.parametrize(
    ("name", "key"),
    [("list_dirs", "path"), ("find_files", "base_path"), ("find_dirs", "base_path")],
)
def test_names_that_are_no_text_are_told_and_not_passed_over(tmp_path, name, key, lang, words):
    for raw in (b"caff\xe8.txt", b"\xff\xfe"):
        (tmp_path / os.fsdecode(raw)).mkdir()
    assert words in said(name, {key: str(tmp_path)}, tmp_path, lang)
