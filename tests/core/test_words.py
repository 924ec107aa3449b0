"""Cleaning, guessing the language, masking secrets, names in the vocabulary."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from core import logs
from core.language import choose_lang, clean_request, guess_lang
from core.redaction import MASK, for_log, redact
from core.vocabulary import Category, category_of, is_executor_name, is_read_only

TOKEN = "123456789:AAcanaryAAcanaryAAcanaryAAcanary123"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("leggi il file e dimmi le ultime tre righe", "it"),
        ("che ore sono a Tokyo?", "it"),
        ("what time is it in Tokyo?", "en"),
        ("read the last three lines of my diary", "en"),
        ("Tokyo", "it"),
        ("12345", "it"),
        ("", "it"),
    ],
)
def test_guess_lang_by_function_words(text: str, expected: str) -> None:
    assert guess_lang(text, default="it") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  ciao \n", "ciao"),
        ("a\x00b\u202ec\u200bd", "abcd"),
        ("due\nrighe\te una tab", "due\nrighe\te una tab"),
        ("cafe\u0301", "café"),
        ("👩\u200d💻", "👩\u200d💻"),
        ("x\ud800y", "xy"),
    ],
)
def test_clean_request_keeps_what_people_see(text: str, expected: str) -> None:
    assert clean_request(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"url https://api.example/bot{TOKEN}/getMe",
        "la password: hunter2canary",
        "my api_key = canary-canary-canary",
        "Authorization: Bearer canarycanarycanary",
        "chiave sk-canary1234567890canary",
        "la password del wifi di casa è canary",
        "my token for the shop is canary",
        "https://anna:canary@a.example/x",
        "https://a.example/?access_token=canary&x=1",
    ],
)
def test_redact_takes_secrets_out(text: str) -> None:
    assert "canary" not in redact(text)


def test_redact_masks_what_is_known_to_be_secret() -> None:
    assert redact("the word is xyzzy42", ["xyzzy42"]) == "the word is •••"


def test_for_log_cuts_long_texts_and_says_how_long() -> None:
    cut = for_log({"content": "x" * 2000, "items": list(range(100))})

    assert cut["content"].endswith("… [2000]")
    assert len(cut["items"]) == 51


def test_logs_mask_secrets_also_in_tracebacks(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    logs.configure("INFO", file=file, secrets=["xyzzy-canary"])
    try:
        raise RuntimeError(f"failed at https://x.example/bot{TOKEN}/y with xyzzy-canary")
    except RuntimeError:
        logging.getLogger("test").exception("broken", extra={"where": f"bot{TOKEN}"})
    finally:
        root = logging.getLogger()
        for handler in list(root.handlers):
            root.removeHandler(handler)
            handler.close()

    text = file.read_text(encoding="utf-8")
    assert "broken" in text
    assert "canary" not in text
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["get_now", "find_files_hash", "create_files_spreadsheet"])
def test_is_executor_name_takes_the_vocabulary(name: str) -> None:
    assert is_executor_name(name)


@pytest.mark.parametrize(
    "name", ["final_answer", "scratchpad_read", "read", "frob_files", "read_things", "read_fiIes",
             "read_files_", "Read_files", "list_recurring", "read_files_a_b_c", ""],
)  # fmt: skip
def test_is_executor_name_refuses_the_rest(name: str) -> None:
    assert not is_executor_name(name)


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("read_files", Category.PRODUCES),
        ("describe_entries", Category.FORMATS),
        ("delete_files", Category.ACTS),
        ("install_packages", Category.ACTS),
        ("open_sites", Category.PRODUCES),
        ("final_answer", Category.META),
        ("undo_last_turn", Category.META),
        ("frobnicate", Category.META),
    ],
)
def test_category_of_tools(name: str, category: Category) -> None:
    assert category_of(name) is category


def test_is_read_only_by_verb() -> None:
    assert is_read_only("find_files")
    assert not is_read_only("write_files")


def test_redact_leaves_ordinary_sentences_alone() -> None:
    for text in (
        "what is the password policy?",
        "appunta la nota nel file",
        "https://a.example/b",
    ):
        assert redact(text) == text


def test_for_log_masks_by_the_name_of_the_key_and_ends_what_is_deep_or_long() -> None:
    deep: object = "x"
    for _ in range(3000):
        deep = [deep]

    assert for_log({"password": "x", "db_token": 1, "path": "/n"}) == {
        "password": MASK,
        "db_token": MASK,
        "path": "/n",
    }
    assert "…" in str(for_log(deep))
    assert len(for_log({str(n): n for n in range(1000)})) == 51
    assert for_log("my-own-key here", ["my-own-key"]) == f"{MASK} here"


@pytest.mark.parametrize(
    ("named", "text", "expected"),
    [
        (("it", "en"), "what time is it", "it"),
        ((None, "en"), "che ore sono", "en"),
        ((None, "en-GB"), "che ore sono", "en"),
        ((None, "IT"), "what time is it", "it"),
        ((None, "de"), "what time is it", "en"),
        (("xx", "en"), "che ore sono", "en"),
        ((None, None), "what time is it", "en"),
        ((None, None), "42", "it"),
    ],
)
def test_choose_lang_takes_the_person_then_the_channel_then_the_text(
    named: tuple[str | None, ...], text: str, expected: str
) -> None:
    assert choose_lang(*named, known=("en", "it"), text=text, default="it") == expected
