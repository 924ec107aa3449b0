"""What each failure of a request means for the message."""

from __future__ import annotations

import datetime as dt

import pytest
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

import bot.telegram.client  # noqa: F401  # sets the form in which the library tells waits
from bot.telegram.faults import FaultKind, backoff_s, classify


def caused(error: TelegramError, name: str) -> TelegramError:
    """As the library raises it: with httpx's exception as the cause."""
    error.__cause__ = type(name, (Exception,), {})()
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (Forbidden("bot was blocked by the user"), FaultKind.GONE),
        (BadRequest("Chat not found"), FaultKind.GONE),
        (ChatMigrated(-100), FaultKind.MOVED),
        (BadRequest("Can't parse entities: nested"), FaultKind.REFUSED),
        (BadRequest("Message is too long"), FaultKind.REFUSED),
        (BadRequest("Message is not modified: specified"), FaultKind.UNCHANGED),
        (InvalidToken("Unauthorized"), FaultKind.RETRY),
        (NetworkError("Internal Server Error (500)"), FaultKind.RETRY),
        (NetworkError("Bad Gateway"), FaultKind.RETRY),
        (caused(NetworkError("httpx.ConnectError: "), "ConnectError"), FaultKind.RETRY),
        (caused(TimedOut(), "ConnectTimeout"), FaultKind.RETRY),
        (caused(TimedOut("Pool timeout"), "PoolTimeout"), FaultKind.RETRY),
        (caused(TimedOut(), "ReadTimeout"), FaultKind.UNKNOWN),
        (caused(NetworkError("x"), "ReadError"), FaultKind.UNKNOWN),
        (caused(NetworkError("x"), "RemoteProtocolError"), FaultKind.UNKNOWN),
    ],
    ids=lambda value: str(value)[:40],
)
def test_classify_by_error(error, kind):
    assert classify(error).kind is kind


def test_classify_wait_names_the_seconds():
    fault = classify(RetryAfter(dt.timedelta(seconds=7)))

    assert (fault.kind, fault.after_s) == (FaultKind.WAIT, 7.0)


def test_backoff_doubles_up_to_its_limit():
    assert [backoff_s(n) for n in (0, 1, 2, 3, 30)] == [0.5, 0.5, 1.0, 2.0, 60.0]
