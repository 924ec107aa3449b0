"""`metnos setup`, asked and not asked."""

from __future__ import annotations

import getpass
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.cli import env_file
from core.config import load_settings
from tests.cli.conftest import Cli
from tests.support.executors import SHIPPED
from tests.support.harness import Harness


@pytest.fixture
def telegram(cli: Cli, tmp_path: Path) -> Iterator[Harness]:
    """A Bot API server, whose addresses are set; its token is not."""
    with Harness("true", log=str(tmp_path / "bot.log"), username="casa_bot") as harness:
        cli.env(
            TELEGRAM_BASE_URL=harness.tg.base_url, TELEGRAM_BASE_FILE_URL=harness.tg.base_file_url
        )
        yield harness


def answers(cli: Cli, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    """A person at the terminal who types these lines, tokens too, and then nothing."""
    waiting = iter(lines)

    def typed(_: str = "") -> str:
        line = next(waiting, None)
        if line is None:
            raise EOFError
        return line

    monkeypatch.setattr("builtins.input", typed)
    monkeypatch.setattr(getpass, "getpass", typed)
    monkeypatch.setattr("bot.cli.setup.is_asked", lambda: True)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_setup_makes_a_private_home_with_key_executors_and_database(cli: Cli) -> None:
    ran = cli("setup", "--non-interactive")

    assert ran.status == 0
    assert mode_of(cli.home) == mode_of(cli.home / "private") == 0o700
    assert mode_of(cli.home / "private" / "keys" / "owner.key") == 0o600
    assert mode_of(cli.home / "private" / "metnos.db") == 0o600
    assert (cli.home / "executors" / "get_now" / "manifest.sig").is_file()
    assert f"{len(SHIPPED)} signed now" in ran.out


def test_setup_twice_changes_nothing_and_says_so_in_one_line(cli: Cli) -> None:
    cli("setup", "--non-interactive")
    before = {p: p.stat().st_mtime_ns for p in (cli.home / "executors").rglob("*")}

    ran = cli("setup", "--non-interactive")

    assert ran.status == 0
    assert ran.out == f"The home {cli.home} is ready already.\n"
    assert before == {p: p.stat().st_mtime_ns for p in (cli.home / "executors").rglob("*")}


def test_setup_without_a_terminal_asks_nothing(cli: Cli) -> None:
    assert cli("setup", stdin="").status == 0


def test_setup_puts_a_tampered_executor_right(cli: Cli) -> None:
    cli("setup")
    code = cli.home / "executors" / "get_now" / "main.py"
    code.write_text("def run(call): return {}\n", encoding="utf-8")
    assert cli("executors", "verify").status == 1

    ran = cli("setup")

    assert "1 signed now" in ran.out
    assert cli("executors", "verify").status == 0


def test_setup_asks_and_keeps_language_folders_and_token(
    cli: Cli, telegram: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = cli.folder / "le mie note"
    notes.mkdir()
    monkeypatch.delenv("METNOS_LANG")
    answers(cli, monkeypatch, "English", str(notes), "/not/there", "", telegram.tg.token)

    ran = cli("setup")

    assert ran.status == 0
    assert "Good: it is the token of @casa_bot." in ran.out
    assert "/not/there is no folder that I can see" in ran.out
    assert "https://t.me/casa_bot?start=" in ran.out
    assert telegram.tg.token not in ran.out + ran.err
    assert mode_of(cli.home / ".env") == 0o600
    settings = load_settings()
    assert settings.metnos_lang == "en"
    assert settings.metnos_files_roots == (notes,)
    assert settings.telegram_bot_token is not None
    assert settings.telegram_bot_token.get_secret_value() == telegram.tg.token


def test_setup_refuses_a_wrong_token_and_asks_again(
    cli: Cli, telegram: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(cli, monkeypatch, "", "", "hello", "123456:" + "x" * 35, telegram.tg.token)

    ran = cli("setup")

    assert "This is no token" in ran.out
    assert "Telegram does not know this token" in ran.out
    assert "@casa_bot" in ran.out


def test_setup_keeps_a_token_untried_when_telegram_is_away(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.env(TELEGRAM_BASE_URL="http://127.0.0.1:9/bot")
    answers(cli, monkeypatch, "", "", "123456:" + "x" * 35)

    ran = cli("setup")

    assert "I keep it untried" in ran.out
    assert load_settings().telegram_bot_token is not None


def test_setup_broken_off_keeps_what_was_answered(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("METNOS_LANG")
    answers(cli, monkeypatch, "en")

    ran = cli("setup")

    assert ran.status == 0
    assert load_settings().metnos_lang == "en"


def test_env_file_keeps_comments_and_other_lines(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# mine\nexport METNOS_LANG=it\nOTHER=1\n", encoding="utf-8")

    env_file.update(path, {"METNOS_LANG": "en", "METNOS_FILES_ROOTS": "/a b/it's"})

    assert path.read_text(encoding="utf-8") == (
        "# mine\nMETNOS_LANG=en\nOTHER=1\nMETNOS_FILES_ROOTS='/a b/it\\'s'\n"
    )
    assert mode_of(path) == 0o600


def test_env_file_value_is_read_back_as_it_was(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = cli.folder / 'it\'s a "b" $HOME #1 \\x'
    odd.mkdir()
    cli.home.mkdir()

    env_file.update(cli.home / ".env", {"METNOS_FILES_ROOTS": str(odd)})

    assert load_settings().metnos_files_roots == (odd,)


def test_full_disk_at_setup_is_a_sentence(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(cli.home / ".env"))

    answers(cli, monkeypatch, "en")
    monkeypatch.setattr(env_file, "update", full)

    ran = cli("setup")

    assert ran.status == 1
    assert "No space left on device" in ran.err
    assert "Traceback" not in ran.err


def test_home_that_cannot_be_made_is_a_sentence(cli: Cli) -> None:
    (cli.folder / "file").write_text("", encoding="utf-8")
    cli.env(METNOS_HOME=str(cli.folder / "file" / "home"))

    ran = cli("setup")

    assert ran.status == 1
    assert len(ran.err.splitlines()) == 1
    assert ran.out == ""


def test_bug_ends_in_a_sentence_and_its_traceback_in_the_log(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli("setup")

    try:
        raise ZeroDivisionError("with token 12345678:" + "a" * 35)
    except ZeroDivisionError as exc:
        sys.excepthook(type(exc), exc, exc.__traceback__)

    err = capsys.readouterr().err
    log = (cli.home / "metnos.log").read_text(encoding="utf-8")
    assert "ZeroDivisionError" in err
    assert "Traceback" not in err
    assert "Traceback" in log
    assert "a" * 35 not in log
