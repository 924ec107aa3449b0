"""Named lists of a person, in the files where they can also be read and edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.catalog.manifest import parse_manifest
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from executors._sdk import lists
from executors._sdk.result import Failure
from tests.executors.file_cases import run, snapshot, undo_of
from tests.support.run_executor import TREE

TEXTS = Texts.load(TREE.parent / "locales")


def said(name: str, args: dict[str, Any], root: Path, lang: str) -> str:
    manifest = parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)
    seen = Observation.from_json(run(name, args, root, lang=lang))
    blocks = Renderer(TEXTS, lang, "Europe/Rome", str(root)).observation(seen, manifest)
    return "\n".join(block.text for block in blocks)


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("spesa", "spesa"),
        ("la lista della spesa", "spesa"),
        ("Lista dell'orto", "orto"),
        ("lista", "lista"),
        ("my shopping list", "shopping"),
        ("the list of films", "films"),
        ("../../etc", "etc"),
        ("cose da fare", "cose da fare"),
    ],
)
def test_name_is_what_is_left_of_what_people_say(name: str, plain: str) -> None:
    assert lists.plain_name(name) == plain


@pytest.mark.parametrize("name", ["", " / ", "..."])
def test_list_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(Failure):
        lists.plain_name(name)


def test_list_is_made_read_and_taken_from(tmp_path: Path) -> None:
    run("write_lists", {"name": "spesa", "items": ["latte", "pane"]}, tmp_path, lang="it")
    run("write_lists", {"name": "Spesa", "items": ["uova"]}, tmp_path, lang="en")
    run("delete_lists", {"name": "lista della spesa", "items": ["pane"]}, tmp_path)

    found = run("read_lists", {"name": "spesa"}, tmp_path)

    assert [entry["text"] for entry in found["entries"]] == ["latte", "uova"]
    assert (tmp_path / "Liste/spesa/spesa.md").read_text(encoding="utf-8") == "- latte\n- uova\n"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("write_lists", {"name": "spesa", "items": ["sale"]}),
        ("delete_lists", {"name": "spesa", "items": ["latte"]}),
        ("delete_lists", {"name": "spesa", "all": True}),
    ],
)
def test_preview_promises_what_is_then_there_and_changes_nothing(
    tmp_path: Path, name: str, args: dict[str, Any]
) -> None:
    path = tmp_path / "Liste/spesa/spesa.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Sabato\n- latte\n- pane\n", encoding="utf-8")
    before = snapshot(tmp_path)

    foreseen = run(name, args, tmp_path, mode="preview")
    assert snapshot(tmp_path) == before
    made = run(name, args, tmp_path)

    assert foreseen["after"][0]["size"] == path.stat().st_size
    assert undo_of(made) == foreseen["undo"]


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a receipt"])
def test_whole_list_goes_into_the_trash_with_its_folder_or_alone(
    tmp_path: Path, beside: bool
) -> None:
    path = tmp_path / "Liste/spesa/spesa.md"
    path.parent.mkdir(parents=True)
    path.write_text("- latte\n", encoding="utf-8")
    if beside:
        (path.parent / "scontrino.txt").write_text("12", encoding="utf-8")
    args = {"name": "la lista della spesa", "whole": True}
    before = snapshot(tmp_path)

    foreseen = run("delete_lists", args, tmp_path, mode="preview")
    assert snapshot(tmp_path) == before
    made = run("delete_lists", args, tmp_path)

    (way_back,) = foreseen["undo"]
    assert made["entries"][0]["trash"] == way_back["from"]
    assert Path(way_back["from"]).exists()
    assert way_back["to"] == str(path if beside else path.parent)
    assert path.parent.exists() is beside
    assert run("read_lists", {}, tmp_path)["entries"] == []


def test_whoever_was_given_one_list_does_not_throw_it_away(tmp_path: Path) -> None:
    run("write_lists", {"name": "spesa", "items": ["latte"]}, tmp_path, lang="it")
    args = {"name": "spesa", "whole": True}

    made = run("delete_lists", args, tmp_path / "Liste/spesa")

    assert made["error"]["code"] == "not_authorized"
    assert (tmp_path / "Liste/spesa/spesa.md").exists()


def test_own_words_in_the_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "Lists/shopping/shopping.md"
    path.parent.mkdir(parents=True)
    path.write_text("# Saturday\n\n* milk\nask Ann\n", encoding="utf-8")

    run("write_lists", {"name": "shopping", "items": ["eggs"]}, tmp_path)

    text = path.read_text(encoding="utf-8")
    assert text == "# Saturday\n\n* milk\nask Ann\n- eggs\n"


def test_what_is_there_already_writes_nothing(tmp_path: Path) -> None:
    run("write_lists", {"name": "spesa", "items": ["latte"]}, tmp_path, lang="it")
    before = snapshot(tmp_path)

    assert (
        run("write_lists", {"name": "spesa", "items": ["LATTE"]}, tmp_path, mode="preview")[
            "count"
        ]
        == 0
    )
    again = run("write_lists", {"name": "spesa", "items": ["LATTE"]}, tmp_path)

    assert again["entries"][0]["already"] == "LATTE"
    assert snapshot(tmp_path) == before


def test_folder_of_one_list_opened_by_itself_holds_that_list(tmp_path: Path) -> None:
    run("write_lists", {"name": "spesa", "items": ["latte"]}, tmp_path, lang="it")
    run("write_lists", {"name": "regali", "items": ["libro"]}, tmp_path, lang="it")
    own = tmp_path / "altro"
    own.mkdir()
    opened = (own, tmp_path / "Liste/spesa")

    found = run("read_lists", {}, *opened)
    run("write_lists", {"name": "spesa", "items": ["pane"]}, *opened)

    assert [entry["text"] for entry in found["entries"]] == ["spesa"]
    text = (tmp_path / "Liste/spesa/spesa.md").read_text(encoding="utf-8")
    assert text == "- latte\n- pane\n"


def test_link_in_place_of_a_list_is_none(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("- x\n", encoding="utf-8")
    root = tmp_path / "root"
    (root / "Liste/spesa").mkdir(parents=True)
    (root / "Liste/spesa/spesa.md").symlink_to(secret)

    assert run("read_lists", {"name": "spesa"}, root)["error"]["code"] == "not_found"
    assert not run("write_lists", {"name": "spesa", "items": ["y"]}, root, lang="it")["ok"]
    assert secret.read_text(encoding="utf-8") == "- x\n"


@pytest.mark.parametrize(
    ("name", "args", "italian", "english"),
    [
        (
            "write_lists",
            {"name": "spesa", "items": ["sale", "latte"]},
            "Lista spesa: ho aggiunto sale. C'era già: latte. In tutto 3.",
            "List spesa: I added sale. There already: latte. 3 in all.",
        ),
        ("read_lists", {"name": "spesa"}, "spesa:\n• latte\n✓ uova", "spesa:\n• latte\n✓ uova"),
        ("read_lists", {}, "spesa", "spesa"),
        (
            "delete_lists",
            {"name": "spesa", "items": ["latte", "riso"]},
            "Lista spesa: ho tolto latte. Non c'era: riso. Voci rimaste: 1.",
            "List spesa: I took out latte. Not there: riso. Items left: 1.",
        ),
        (
            "delete_lists",
            {"name": "spesa", "whole": True},
            "Ho messo nel cestino la lista spesa (voci: 2).",
            "I put the list spesa into the trash (items: 2).",
        ),
    ],
)
def test_answers_in_both_languages(
    tmp_path: Path, name: str, args: dict[str, Any], italian: str, english: str
) -> None:
    for lang, words in (("it", italian), ("en", english)):
        root = tmp_path / lang
        (root / "Liste/spesa").mkdir(parents=True)
        (root / "Liste/spesa/spesa.md").write_text("- [x] uova\n- latte\n", encoding="utf-8")
        assert said(name, args, root, lang).replace("*", "") == words
