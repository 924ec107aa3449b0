"""Italian and English are equals: every text stands in both, with the same fields and forms."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from core.config import LANGS
from core.errors import ErrorCode
from core.i18n import Texts

ROOT = Path(__file__).resolve().parent.parent
LOCALES = ROOT / "locales"
TEXTS = Texts.load(LOCALES, strict=True)
FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")

# Italian words that an English text would hardly hold, and the other way round.
FOREIGN = {
    "en": re.compile(r"\b(?:il|gli|della|che|non|per|sono|questo|cartella|riprova)\b", re.I),
    "it": re.compile(r"\b(?:the|this|that|with|cannot|folder|again|please|your)\b", re.I),
}


def keys(lang: str) -> dict[str, tuple[str, ...]]:
    return dict(TEXTS.messages[lang])


def test_languages_are_those_of_the_settings() -> None:
    assert set(TEXTS.langs) == set(LANGS)


def test_every_key_stands_in_every_language() -> None:
    assert set(keys("it")) == set(keys("en"))


def test_texts_have_the_same_fields_and_forms_in_every_language() -> None:
    def shape(lang: str, key: str) -> tuple[set[str], int]:
        forms = TEXTS.messages[lang][key]
        return set(FIELD.findall(" ".join(forms))), len(forms)

    assert [key for key in keys("it") if shape("it", key) != shape("en", key)] == []


@pytest.mark.parametrize("lang", LANGS)
def test_text_is_in_its_own_language(lang: str) -> None:
    def bare(text: str) -> str:
        # Commands, settings and quoted examples keep their own words.
        return re.sub(r"`[^`]*`|«[^»]*»|“[^”]*”|/\w+|[A-Z_]{4,}", "", text)

    mixed = [
        key
        for key, forms in keys(lang).items()
        if any(FOREIGN[lang].search(bare(form)) for form in forms)
    ]

    assert mixed == []


def test_every_error_code_has_its_text() -> None:
    assert [
        (code, lang)
        for code in ErrorCode
        for lang in LANGS
        if not TEXTS.has(f"error.{code.value}", lang)
    ] == []


def test_no_key_stands_twice() -> None:
    for lang in LANGS:
        text = (LOCALES / lang / "messages.po").read_text(encoding="utf-8")
        ids = re.findall(r'^msgid "(.+)"$', text, re.M)
        assert len(ids) == len(set(ids))


def test_po_files_are_read_without_complaint() -> None:
    for lang in LANGS:
        with (LOCALES / lang / "messages.po").open("rb") as file:
            catalog = read_po(file, locale=lang, abort_invalid=True)
        assert not [m for m in catalog if m.id and m.fuzzy]


def test_prompts_stand_in_every_language() -> None:
    names = [{p.name for p in (LOCALES / lang / "prompts").glob("*.j2")} for lang in LANGS]

    assert names[0] == names[1]
    assert names[0]


def said_keys() -> set[str]:
    """Every literal first argument of a `say(...)` in the code."""
    found: set[str] = set()
    for top in ("core", "bot"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in {"say", "_say"}
                    and node.args
                    and isinstance(node.args[0], ast.Constant)
                    and isinstance(node.args[0].value, str)
                    and "." in node.args[0].value
                ):
                    found.add(node.args[0].value)
    return found


def test_every_key_that_the_code_says_has_a_text() -> None:
    said = said_keys()

    assert len(said) > 100
    assert [
        (key, lang) for key in sorted(said) for lang in LANGS if not TEXTS.has(key, lang)
    ] == []
