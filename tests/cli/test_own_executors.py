"""Writing a program of one's own: made, tried, signed, used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.catalog.loader import CatalogLoader
from core.config import load_settings
from tests.cli.conftest import Cli

pytestmark = pytest.mark.usefixtures("prepared")


@pytest.mark.parametrize("name", ["read_texts_pages", "write_texts_history"])
def test_new_executor_is_made_tried_and_signed(cli: Cli, name: str) -> None:
    assert cli("setup", "--non-interactive").status == 0

    made = cli("executors", "new", name)
    tried = cli("executors", "test", f"./{name}")
    before = CatalogLoader.of(load_settings()).current()
    signed = cli("executors", "sign", f"./{name}")
    after = CatalogLoader.of(load_settings()).current()

    assert made.status == 0
    assert f"executors sign ./{name}" in made.out
    assert sorted(path.name for path in Path(name).iterdir()) == ["main.py", "manifest.toml"]
    assert (tried.status, tried.out.splitlines()[0]) == (0, f"✓ {name} (1/1)")
    assert name not in before.executors
    assert signed.status == 0
    assert name in after.executors
    again = json.loads(cli("executors", "test", name, "--json").out)
    assert (again["ok"], again["examples"]) == (True, 1)
    assert cli("executors", "new", name).status == 2, "it is in the home already"


def test_example_that_does_not_hold_is_told(cli: Cli) -> None:
    cli("setup", "--non-interactive")
    cli("executors", "new", "read_texts_pages")
    code = Path("read_texts_pages/main.py")
    code.write_text(
        code.read_text(encoding="utf-8").replace("len(text.split())", "7"), encoding="utf-8"
    )

    tried = cli("executors", "test", "./read_texts_pages")

    assert tried.status == 1
    assert "✗ read_texts_pages (0/1)" in tried.out
    assert "words is 7, not 3" in tried.out


@pytest.mark.parametrize(
    "name", ["frobnicate", "read_moon", "../evil", "get_inputs", "Read_texts"]
)
def test_name_that_cannot_be_is_refused(cli: Cli, name: str) -> None:
    refused = cli("executors", "new", name)

    assert refused.status == 2
    assert "verb_object" in refused.err
    assert list(Path().iterdir()) == []


def test_folder_that_is_there_is_not_touched(cli: Cli) -> None:
    Path("read_texts_pages").mkdir()
    Path("read_texts_pages/mine.txt").write_text("mine", encoding="utf-8")

    assert cli("executors", "new", "read_texts_pages").status == 2
    assert [p.name for p in Path("read_texts_pages").iterdir()] == ["mine.txt"]


def test_folder_that_is_wrong_is_refused_in_words(cli: Cli) -> None:
    cli("setup", "--non-interactive")
    cli("executors", "new", "read_texts_pages")
    manifest = Path("read_texts_pages/manifest.toml")
    manifest.write_text(
        manifest.read_text(encoding="utf-8").replace('effect = "pure"', 'effect = "magic"'),
        encoding="utf-8",
    )

    for command in ("test", "sign"):
        refused = cli("executors", command, "./read_texts_pages")
        assert refused.status == 1
        assert "magic" in refused.err or "effect" in refused.err
    assert cli("executors", "test", "./nowhere").status == 1
    assert cli("executors", "test", "nowhere").status == 1


def test_refused_name_gets_every_word_that_may_be(cli: Cli) -> None:
    refused = cli("executors", "new", "get_numbers_random")

    assert "get" in refused.err
    assert "numbers" in refused.err
    assert "pages" in refused.err, "a qualifier"


def test_sign_takes_a_folder_by_its_bare_name_and_says_when_there_is_nothing(cli: Cli) -> None:
    cli("setup", "--non-interactive")
    cli("executors", "new", "read_texts_pages")

    signed = cli("executors", "sign", "read_texts_pages")
    nothing = cli("executors", "sign", "./read_numbers")

    assert signed.status == 0
    assert "read_texts_pages" in CatalogLoader.of(load_settings()).current().executors
    assert nothing.status == 1
    assert "./read_numbers" in nothing.err
