"""Answers of JSON services: asked over HTTP, read with care. What uses this declares
`requires = ["httpx"]`."""

from __future__ import annotations

import json
import math
from urllib.parse import urlencode

from executors._sdk.http import parse_url
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.http import Fetcher


def endpoint(call: Call, service: str, setting: str) -> str:
    """The address of a service without a slash at its end. Raises `Failure` service_off."""
    url = call.services.get(service, "").rstrip("/")
    if not url:
        raise Failure("service_off", f"{service} is off: {setting} turns it on", setting=setting)
    return url


def ask(
    fetcher: Fetcher, url: str, asked: Mapping[str, Any], *, total_timeout_s: float
) -> dict[str, Any]:
    """The JSON object that an address answers with; `asked` are its parameters.

    Raises `Failure` as `Fetcher.get` does, and `bad_answer` for what is no JSON object.
    """
    whole = f"{url}?{urlencode(asked)}"
    return read(fetcher.get(whole, total_timeout_s=total_timeout_s).body, parse_url(url).host)


def read(body: bytes, host: str) -> dict[str, Any]:
    """The JSON object in a body. Raises `Failure` bad_answer for anything else."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise Failure("bad_answer", "the answer is no JSON", host=host) from exc
    if not isinstance(document, dict):
        raise Failure("bad_answer", "the answer is no JSON object", host=host)
    return document


def number(value: Any) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) else None


def text(value: Any, most: int = 300) -> str:
    """Words of strangers on one line; "" for what is no text or number."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    plain = "".join(c if c.isprintable() else " " for c in str(value)[: most * 4])
    return " ".join(plain.split())[:most].strip()
