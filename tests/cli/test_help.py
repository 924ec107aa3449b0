"""Help and usage errors: whole sentences, in the person's language, for every command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.i18n import Texts
from tests.cli.conftest import Cli

ROOT = Path(__file__).parents[2]

COMMANDS = [
    "",
    "setup",
    "run",
    "chat",
    "pair",
    "doctor",
    "executors",
    "executors list",
    "executors show",
    "executors verify",
    "executors sign",
    "turns",
    "turns list",
    "turns show",
    "actors",
    "actors list",
    "actors set",
    "actors revoke",
    "actors unblock",
    "actors forget",
    "grants",
    "grants add",
    "plans",
    "plans list",
    "plans show",
    "plans approve",
    "plans calibrate",
    "plans delete",
    "plans flush",
    "model",
    "model pull",
    "model serve",
    "model status",
]


@pytest.mark.parametrize("lang", ["it", "en"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_speaks_in_sentences(cli: Cli, command: str, lang: str) -> None:
    cli.env(METNOS_LANG=lang)

    ran = cli(*command.split(), "--help")

    assert ran.status == 0
    assert ran.out.startswith({"it": "Uso: metnos", "en": "Usage: metnos"}[lang])
    assert "cli.help" not in ran.out, "a text is missing"
    assert ran.out.split("\n\n")[1].strip().endswith(".")
    words = {"it": r"\b(the|and|Show|Options)\b", "en": r"\b(che|della|Mostra|Opzioni)\b"}[lang]
    assert re.search(words, ran.out) is None, "a mixed screen"


def test_help_stands_although_a_setting_is_wrong(cli: Cli) -> None:
    cli.env(METNOS_ENGINE="steam")

    assert cli("--help").status == 0


def test_no_command_shows_the_help(cli: Cli) -> None:
    assert cli().out == cli("--help").out


def test_version_names_the_program(cli: Cli) -> None:
    assert cli("--version").out.startswith("metnos")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["dance"], "There is no command dance."),
        (["chat", "--loud"], "There is no option --loud."),
        (["turns", "show"], "TURN is missing."),
        (["turns", "list", "--limit", "many"], "The value of --limit is not right."),
        (["turns", "list", "--limit", "0"], "The value of --limit is not right."),
        (["chat", "--lang", "fr"], "The value of --lang is not right."),
        (["chat", "--once"], "--once wants a value."),
        (["model", "\x1b[31mred"], "See `metnos model --help`."),
    ],
)
def test_wrong_words_get_a_sentence_and_status_2(
    cli: Cli, arguments: list[str], says: str
) -> None:
    ran = cli(*arguments)

    assert ran.status == 2
    assert says in ran.err
    assert ran.out == ""
    assert "\x1b" not in ran.err


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("METNOS_LANG", "fr", "METNOS_LANG non va bene: può essere it o en."),
        ("METNOS_TZ", "Mars/Base", "METNOS_TZ non va bene"),
        ("METNOS_ENGINE", "steam", "METNOS_ENGINE non va bene"),
        ("METNOS_JUDGE_THRESHOLD", "2", "METNOS_JUDGE_THRESHOLD non va bene"),
        ("TELEGRAM_BASE_URL", "telegram", "TELEGRAM_BASE_URL non va bene"),
    ],
)
def test_bad_setting_is_named_with_what_is_allowed_and_status_2(
    cli: Cli, name: str, value: str, says: str
) -> None:
    cli.env(METNOS_LANG="it")
    cli.env(**{name: value})

    ran = cli("chat", "--once", "ciao")

    assert ran.status == 2
    assert says in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_every_key_that_the_command_line_says_has_a_text() -> None:
    texts = Texts.load(ROOT / "locales")
    sources = [*(ROOT / "bot" / "cli").glob("*.py"), ROOT / "bot" / "terminal.py"]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    said = set(re.findall(r'(?<!f)"(cli\.[a-z_.]+)"', code))
    finds = r'\b(?:good|info|fault)\(\s*"[a-z]+",\s*"([a-z_]+)"'
    said |= {f"cli.doctor.{key}" for key in re.findall(finds, code)}

    missing = [key for key in sorted(said) if not texts.has(key, "it")]

    assert len(said) > 100
    assert missing == []


def test_folder_that_is_gone_gets_a_sentence(cli: Cli) -> None:
    cli.folder.rmdir()

    ran = cli("turns", "list")

    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
