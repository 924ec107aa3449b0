"""What a failed request to Telegram means for the message: wait, try again, give up, or unknown.

Pure, so that the table of Telegram's faults can be tested without Telegram.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from enum import StrEnum

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
)


class FaultKind(StrEnum):
    WAIT = "wait"
    """Telegram names the seconds to wait in this chat."""
    RETRY = "retry"
    """Nothing was sent; the same again a little later is right."""
    UNKNOWN = "unknown"
    """The request left and no answer came: it may have been carried out."""
    UNCHANGED = "unchanged"
    """An edit that had been made already."""
    REFUSED = "refused"
    """Telegram does not take this content; plain text may do."""
    MOVED = "moved"
    """The group has another id, under which the same can be sent."""
    NO_TOPIC = "no_topic"
    """The topic is closed or deleted; its group can still be reached."""
    GONE = "gone"
    """Nobody can be reached there any more."""
    UNSAYABLE = "unsayable"
    """This message cannot be said; others can."""


@dataclass(frozen=True, slots=True)
class Fault:
    kind: FaultKind
    after_s: float = 0.0
    detail: str = ""
    moved_to: str = ""


# Failures of httpx before anything has left; the others may have come after the effect. Names,
# since httpx has its own room and python-telegram-bot keeps the cause.
_BEFORE_SENDING = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}
)
_GONE = ("chat not found", "user is deactivated", "peer_id_invalid", "group chat was deactivated")


_NO_TOPIC = ("message thread not found", "topic_closed", "topic_deleted", "topic_id_invalid")


class EditAgain(Exception):
    """An edit that did not come through or may not have: it is made again, whichever it was."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        kind = FaultKind.RETRY if fault.kind is FaultKind.UNKNOWN else fault.kind
        self.fault = replace(fault, kind=kind)


def classify(error: TelegramError) -> Fault:
    """What to do after this error of a send, an edit or a delete."""
    detail = f"{type(error).__name__}: {error.message}"[:300]
    match error:
        case RetryAfter():
            return Fault(FaultKind.WAIT, retry_after_s(error), detail)
        case ChatMigrated():
            return Fault(FaultKind.MOVED, detail=detail, moved_to=str(error.new_chat_id))
        case Forbidden():
            return Fault(FaultKind.GONE, detail=detail)
        case InvalidToken() | Conflict():
            return Fault(FaultKind.RETRY, 30.0, detail)
        case BadRequest():
            return Fault(_refusal(error.message.lower()), detail=detail)
        case NetworkError() if "entity too large" in error.message.lower():
            return Fault(FaultKind.REFUSED, detail=detail)
        case NetworkError() if error.__cause__ is not None:
            before = type(error.__cause__).__name__ in _BEFORE_SENDING
            return Fault(FaultKind.RETRY if before else FaultKind.UNKNOWN, detail=detail)
        case _:
            return Fault(FaultKind.RETRY, detail=detail)


def _refusal(message: str) -> FaultKind:
    if "message is not modified" in message:
        return FaultKind.UNCHANGED
    if any(word in message for word in _NO_TOPIC):
        return FaultKind.NO_TOPIC
    return FaultKind.GONE if any(word in message for word in _GONE) else FaultKind.REFUSED


def retry_after_s(error: RetryAfter) -> float:
    """The wait that Telegram names, in seconds, in either form of the library."""
    after = error.retry_after
    return after.total_seconds() if isinstance(after, dt.timedelta) else float(after)


def backoff_s(attempts: int, *, first_s: float = 0.5, most_s: float = 60.0) -> float:
    """How long to wait after the given number of failures: 0.5 s, 1 s, 2 s, … 60 s."""
    return float(min(most_s, first_s * 2 ** min(max(attempts - 1, 0), 20)))
