"""What a failed attempt means: whether another may work, and the error it ends in.

Pure. Shows of a provider's own words only its short error code: the sentence beside it may quote
the key or the prompt.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any

import httpx

from core.errors import ModelError, ModelRefused, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from core.llm.stream import BrokenStream

LOADING_POLL_S = 0.5

_BACKOFF_S = (0.0, 0.4, 1.0, 2.0, 4.0, 8.0)
_CODE = re.compile(r"[A-Za-z][\w.-]{0,60}")
_REFUSING_EVENTS = re.compile(r"invalid_request|authentication|permission|not_found|context|quota")


class TryAgain(Exception):
    """This attempt failed with `error`; another may work, after `after_s` if the server said so.

    `counted` False: the server is merely loading, which uses up time but no attempt.
    """

    def __init__(
        self, error: ModelError, *, after_s: float | None = None, counted: bool = True
    ) -> None:
        super().__init__(error.detail)
        self.error, self.after_s, self.counted = error, after_s, counted


def backoff_s(failed: int) -> float:
    """Seconds before the next attempt, after `failed` ones, with jitter.

    The first pause is none: most often a kept-alive connection had died.
    """
    base = _BACKOFF_S[min(failed - 1, len(_BACKOFF_S) - 1)]
    return base * random.uniform(0.75, 1.25)  # noqa: S311  jitter, no secret


def of_status(
    status: int, headers: Mapping[str, str], body: bytes, *, host: str
) -> TryAgain | ModelError:
    """What an answer with a status other than 200 means."""
    code, message = read_error(body)
    word = f"HTTP {status}" + (f" ({code})" if code else "")
    if status == 503 and "loading" in message.lower():
        loading = ModelUnreachable("the model is still loading", host=host)
        return TryAgain(loading, after_s=LOADING_POLL_S, counted=False)
    if status == 429:
        refused = ModelRefused(word, host=host, status=status)
        if "quota" in code:
            return refused
        refused.retryable = True
        return TryAgain(refused, after_s=_retry_after(headers))
    if status >= 500 or status == 408:
        unreachable = ModelUnreachable(word, host=host, status=status)
        return TryAgain(unreachable, after_s=_retry_after(headers))
    if 300 <= status < 400:
        word += ": the address redirects; use the one it points to"
    return ModelRefused(word, host=host, status=status)


def of_event(error: Any, *, host: str) -> TryAgain | ModelError:
    """What an error inside a stream that began well means."""
    code, _ = _read(error)
    if _REFUSING_EVENTS.search(code):
        return ModelRefused(code, host=host)
    return TryAgain(ModelUnreachable(f"the server broke off ({code or 'error'})", host=host))


def of_broken(exc: BrokenStream, *, host: str) -> TryAgain | ModelError:
    invalid = ModelReplyInvalid(exc.reason, host=host)
    return TryAgain(invalid) if exc.reason == "half_json" else invalid


def of_transport(exc: httpx.HTTPError, *, host: str) -> TryAgain:
    match exc:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            word = "no connection"
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError():
            word = "the connection broke off"
        case _:
            word = type(exc).__name__
    return TryAgain(ModelUnreachable(word, host=host))


def broken_off(*, host: str) -> TryAgain:
    return TryAgain(ModelUnreachable("the reply broke off", host=host))


def silent(seconds: float, *, host: str) -> ModelTimeout:
    return ModelTimeout(f"silent for {seconds:g} s", host=host, seconds=seconds)


def read_error(body: bytes) -> tuple[str, str]:
    """The provider's own error code, safe to show, and its sentence, never to be shown."""
    try:
        return _read(json.loads(body).get("error"))
    except (ValueError, AttributeError, RecursionError):
        return "", body[:2000].decode("utf-8", "replace")


def _read(error: Any) -> tuple[str, str]:
    if not isinstance(error, Mapping):
        return "", str(error)
    words = (error.get("code"), error.get("type"))
    code = next((w for w in words if isinstance(w, str) and _CODE.fullmatch(w)), "")
    return code, str(error.get("message") or "")


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait; None when it does not say (a date is not read)."""
    try:
        return min(max(float(headers.get("retry-after", "")), 0.0), 3600.0)
    except ValueError:
        return None
