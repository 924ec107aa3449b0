"""Logging for the whole process: structlog over the standard library, secrets masked at the root.

Every handler writes through one redacting formatter, so that also libraries (httpx logs the
address with the bot's token) and tracebacks cannot leak.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
from collections.abc import Collection
from pathlib import Path

import structlog

from core.redaction import redact

_QUIET = ("httpx", "httpcore", "telegram", "aiosqlite", "asyncio", "hpack", "charset_normalizer")
MAX_LOG_BYTES = 5 * 1024 * 1024


class _Redacting(logging.Formatter):
    """Another formatter's line with the secrets taken out, tracebacks included."""

    def __init__(self, inner: logging.Formatter, secrets: Collection[str]) -> None:
        super().__init__()
        self._inner, self._secrets = inner, tuple(secrets)

    def format(self, record: logging.LogRecord) -> str:
        return redact(self._inner.format(record), self._secrets)


def configure(
    level: str, *, file: Path | None = None, secrets: Collection[str] = (), quiet: bool = False
) -> None:
    """Set up the root logger, replacing what was there. `secrets` are masked wherever they occur.

    With `file`, lines go there as JSON (rotated, 0600) and only warnings to the terminal; `quiet`
    keeps the terminal to errors, for a conversation that happens in it.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=False),
        structlog.stdlib.ExtraAdder(),
    ]

    def formatter(*renderers: structlog.typing.Processor) -> logging.Formatter:
        inner = structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
        return _Redacting(inner, secrets)

    terminal = logging.StreamHandler(sys.stderr)
    terminal.setFormatter(
        formatter(
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(),
                pad_event_to=0,
                # The pretty one shows the values of local variables, whatever they hold.
                exception_formatter=structlog.dev.plain_traceback,
            )
        )
    )
    handlers: list[logging.Handler] = [terminal]
    if quiet:
        terminal.setLevel(logging.ERROR)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        to_file = logging.handlers.RotatingFileHandler(
            file, maxBytes=MAX_LOG_BYTES, backupCount=3, encoding="utf-8", errors="replace"
        )
        to_file.setFormatter(
            formatter(
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            )
        )
        handlers.append(to_file)
        terminal.setLevel(logging.ERROR if quiet else logging.WARNING)
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
        old.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
