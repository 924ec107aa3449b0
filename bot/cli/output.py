"""How the command line speaks: texts in the person's language, JSON for programs, and one sentence
for every failure.

Standard output carries what was asked for, standard error everything else.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from bot.cli.lines import alarming, short_path, visible
from core.config import LANGS, Settings, load_settings
from core.errors import (
    AlreadyRunning,
    CatalogError,
    ChannelDeaf,
    ErrorCode,
    MetnosError,
    ModelError,
    ModelPullFailed,
    SettingsInvalid,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    to_error_info,
)
from core.i18n import Texts
from core.redaction import redact

if TYPE_CHECKING:
    from core.catalog.reasons import Rejection

FAULT, BAD_SETTING, DEAF, SECOND_ENGINE, INTERRUPTED = 1, 2, 69, 75, 130
LOG_FILE = "metnos.log"


@dataclass(frozen=True, slots=True)
class Console:
    """Speaks one language to two streams."""

    texts: Texts
    lang: str

    def say(self, key: str, **params: Any) -> str:
        return self.texts.say(key, self.lang, **params)

    def tell(self, key: str, **params: Any) -> None:
        """A line of the answer."""
        self.line(self.say(key, **params))

    def line(self, text: str = "", *, alarm: bool = False) -> None:
        shown = visible(text)
        sys.stdout.write((alarming(shown, sys.stdout) if alarm else shown) + "\n")
        sys.stdout.flush()

    def note(self, key: str, **params: Any) -> None:
        """A line beside the answer, on standard error."""
        self.note_line(self.say(key, **params))

    def note_line(self, text: str) -> None:
        sys.stdout.flush()
        sys.stderr.write(visible(text) + "\n")
        sys.stderr.flush()

    def alarm(self, key: str, **params: Any) -> None:
        """A line on standard error that nobody should overlook."""
        sys.stdout.flush()
        text = visible(f"✗ {self.say(key, **params)}")
        sys.stderr.write(alarming(text, sys.stderr) + "\n")
        sys.stderr.flush()

    def json_line(self, data: Any) -> None:
        """One document on one line."""
        sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
        sys.stdout.flush()

    def json(self, data: Any) -> None:
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
        sys.stdout.flush()

    def size(self, count: float) -> str:
        return self.texts.bytes(count, self.lang)

    def reason(self, rejection: Rejection) -> str:
        """Why an executor is refused, with the file or the number that decided."""
        reason = self.say(rejection.message_key)
        return f"{reason} ({rejection.detail})" if rejection.detail else reason

    def failed(self, exc: MetnosError) -> int:
        """Say a failure in one sentence; returns the exit status that belongs to it."""
        match exc:
            case SettingsInvalid():
                self.note_line(self.setting_sentence(exc))
                return BAD_SETTING
            case AlreadyRunning():
                unknown = self.say("cli.unknown")
                holder = f"metnos {exc.params.get('command') or unknown}"
                self.note(
                    "cli.already_running", holder=holder, pid=str(exc.params.get("pid") or "?")
                )
                return SECOND_ENGINE
            case ChannelDeaf():
                self.note("cli.run.deaf", count=int(exc.params.get("seconds") or 0))
                return DEAF
            case _:
                self.note_line(self.sentence(exc))
                return FAULT

    def sentence(self, exc: MetnosError) -> str:
        """What went wrong, for a person; the detail of the machine stands behind it."""
        match exc:
            case StoreTooNew():
                text = self.say("cli.store_too_new")
            case StoreCorrupt():
                text = self.say("cli.store_corrupt")
            case StoreError(code=ErrorCode.DISK_FULL):
                text = self.say("cli.disk_full")
            case StoreError():
                text = self.say("cli.store_failed", detail=exc.detail)
            case CatalogError():
                reason = f"reject.{exc.params.get('reason', '')}"
                if not self.texts.has(reason, self.lang):
                    return self.say("cli.catalog_failed", detail=exc.detail)
                text = self.say("cli.refused", reason=self.say(reason))
                return f"{text} ({exc.detail})" if exc.detail else text
            case ModelPullFailed() if "needed" in exc.params and "free" in exc.params:
                sizes = {name: self.size(exc.params[name]) for name in ("needed", "free")}
                text = self.say("cli.model.pull_no_room", **sizes)
            case ModelPullFailed():
                text = self.say("cli.model.pull_failed", detail=exc.detail)
            case ModelError():
                text = self.say(f"error.{exc.code.value}", **exc.params)
                return f"{text} ({exc.detail})" if exc.detail else text
            case _:
                info = to_error_info(exc)
                text = self.say(info.message_key, **info.params)
        return text

    def setting_sentence(self, exc: SettingsInvalid) -> str:
        """Which setting is wrong and what is allowed, in the person's language where it has the
        words for that setting; or which file is no text."""
        if "file" in exc.params:
            return self.say("cli.setting_file_unreadable", file=short_path(exc.params["file"]))
        name, found, _ = exc.detail.partition(" is not valid; allowed: ")
        key = f"cli.allowed.{name.lower()}"
        if not found or not self.texts.has(key, self.lang):
            return exc.detail
        return self.say("cli.setting_invalid", name=name, allowed=self.say(key))


class Session:
    """What every command is given: the console and the settings."""

    def __init__(self, console: Console, settings: Settings | SettingsInvalid) -> None:
        self.console = console
        self._settings = settings

    @property
    def settings(self) -> Settings:
        """Raises `SettingsInvalid` when a setting is wrong."""
        if isinstance(self._settings, SettingsInvalid):
            raise self._settings
        return self._settings

    @property
    def home(self) -> Path | None:
        """The home, None while the settings are wrong."""
        return self._settings.metnos_home if isinstance(self._settings, Settings) else None

    def in_language(self, lang: str | None) -> Session:
        """The same session speaking `lang`; None changes nothing."""
        if lang is None or lang == self.console.lang:
            return self
        return Session(Console(self.console.texts, lang), self._settings)


def open_session(texts_root: Path) -> Session:
    """Read settings and texts. Wrong settings are kept until a command asks for them, so that
    the help can always be read."""
    settings: Settings | SettingsInvalid
    try:
        settings = load_settings()
        lang: str = settings.metnos_lang
    except (SettingsInvalid, OSError) as exc:
        # OSError: the current folder has gone.
        settings = exc if isinstance(exc, SettingsInvalid) else SettingsInvalid(f"{exc}.")
        wanted = os.environ.get("METNOS_LANG", "")
        lang = wanted if wanted in LANGS else LANGS[0]
    return Session(Console(Texts.load(texts_root / "locales"), lang), settings)


def is_asked() -> bool:
    """Whether somebody sits at the keyboard."""
    return sys.stdin is not None and sys.stdin.isatty()


def prepare_streams() -> None:
    """Let no letter of any language end the program, whatever the locale can show, nor a stream
    that was closed before it began; and no log line reach the terminal before a command has set
    up where they go."""
    _open_missing()
    logging.getLogger().addHandler(logging.NullHandler())
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "replace")):
        _reconfigure(stream, errors)
    _reconfigure(sys.stderr, "backslashreplace")


def _open_missing() -> None:
    # The lowest free number is taken by what is opened next: without this it would be a database,
    # and whatever a child writes to "standard output" would go into it.
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Stays open as long as the process.
            stream = open(fd, "w" if fd else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _reconfigure(stream: TextIO | Any, errors: str) -> None:
    # Tests and callers may have put another object there.
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=errors)


def report_unexpected(session: Session) -> None:
    """From now on a bug ends in one sentence; its traceback goes to the log of the home."""

    def report(kind: type[BaseException], exc: BaseException, trace: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        place = _keep("".join(traceback.format_exception(kind, exc, trace)), session.home)
        key = "cli.unexpected" if place else "cli.unexpected_unkept"
        session.console.note(key, kind=kind.__name__, file=place or "")

    sys.excepthook = report


def _keep(text: str, home: Path | None) -> str | None:
    """Append a traceback, secrets masked, to the log of the home; where it is, None if nowhere."""
    if home is None or not home.is_dir():
        return None
    path = home / LOG_FILE
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
            file.write(redact(text))
    except OSError:
        return None
    return short_path(path)


def hush() -> None:
    """Keep log lines, tracebacks among them, out of the terminal: the log file has them."""
    for handler in logging.getLogger().handlers:
        if type(handler) is logging.StreamHandler:
            handler.setLevel(logging.CRITICAL + 1)
