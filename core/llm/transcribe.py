"""What was said in a recording, by any server that speaks OpenAI's transcription endpoint.

The recording leaves the machine when the server is elsewhere; without a server nothing does. Words
and keys stay out of every error and log line.
"""

from __future__ import annotations

import asyncio
import json
import logging
from urllib.parse import urlsplit

import httpx

from core.config import Settings
from core.errors import ModelReplyInvalid, ModelTimeout, ModelUnreachable
from core.llm import faults
from core.llm.faults import TryAgain
from core.llm.wire import is_this_machine

log = logging.getLogger(__name__)

TOTAL_S = 180.0
_CONNECT_S = 10.0
_TRIES = 2
_MOST_ANSWER_BYTES = 1 << 20
# Whole hours of talk have fewer; what goes on for longer is a model that repeats itself.
MOST_CHARS = 20_000


class Transcriber:
    """Asks the server of the settings; opens no connection before the first recording."""

    def __init__(self, settings: Settings, *, total_s: float = TOTAL_S) -> None:
        self._base = settings.metnos_transcribe_url
        self._model = settings.metnos_transcribe_model
        key = settings.metnos_transcribe_api_key
        self._key = "" if key is None else key.get_secret_value()
        self._total_s = total_s

    @property
    def is_set(self) -> bool:
        """Whether there is a server to ask."""
        return self._base is not None

    async def transcribe(self, recording: bytes, *, name: str, media_type: str, lang: str) -> str:
        """The words of a recording, at most `MOST_CHARS` of them; `name` must end as its format
        does. `lang` is a hint.

        Asks once more when the server cannot be reached or fails by itself. Raises `ModelError`:
        `ModelReplyInvalid` with the detail `empty` when nothing was said.
        """
        if self._base is None:
            raise ModelUnreachable("no server for recordings is set")
        url, host = _url(self._base), urlsplit(self._base).hostname or ""
        outside = not is_this_machine(host)
        try:
            async with (
                asyncio.timeout(self._total_s),
                httpx.AsyncClient(
                    trust_env=outside,
                    verify=outside or url.startswith("https:"),
                    headers={"accept-encoding": "identity", "user-agent": "metnos"},
                    timeout=httpx.Timeout(self._total_s, connect=_CONNECT_S),
                ) as client,
            ):
                text = await self._tries(client, url, host, (name, recording, media_type), lang)
        except TimeoutError as exc:
            raise ModelTimeout(
                f"no words within {self._total_s:g} s", host=host, seconds=self._total_s
            ) from exc
        if not text.strip():
            raise ModelReplyInvalid("empty", host=host)
        return text.strip()[:MOST_CHARS]

    async def _tries(
        self,
        client: httpx.AsyncClient,
        url: str,
        host: str,
        file: tuple[str, bytes, str],
        lang: str,
    ) -> str:
        failed = 0
        while True:
            try:
                return await self._ask(client, url, host, file, lang)
            except TryAgain as again:
                failed += again.counted
                if failed >= _TRIES:
                    raise again.error from again.__cause__
                log.info("recording sent again", extra={"host": host, "why": again.error.detail})
                pause = faults.backoff_s(failed + 1) if again.after_s is None else again.after_s
            await asyncio.sleep(pause)

    async def _ask(
        self,
        client: httpx.AsyncClient,
        url: str,
        host: str,
        file: tuple[str, bytes, str],
        lang: str,
    ) -> str:
        fields = {"model": self._model, "language": lang, "response_format": "json"}
        headers = {"authorization": f"Bearer {self._key}"} if self._key else {}
        body = b""
        try:
            async with client.stream(
                "POST", url, data=fields, files={"file": file}, headers=headers
            ) as response:
                async for block in response.aiter_bytes():
                    body += block
                    if len(body) > _MOST_ANSWER_BYTES:
                        raise ModelReplyInvalid("too_large", host=host)
        except httpx.ReadTimeout as exc:
            raise faults.silent(self._total_s, host=host) from exc
        except httpx.HTTPError as exc:
            raise faults.of_transport(exc, host=host) from exc
        if response.status_code != 200:
            raise faults.of_status(response.status_code, response.headers, body, host=host)
        return _words(body, host)


def _url(base: str) -> str:
    """A bare host gets `/v1`, as people forget it; any other path is taken as it is."""
    base = base.rstrip("/")
    if base.endswith("/transcriptions"):
        return base
    path = "" if urlsplit(base).path.strip("/") else "/v1"
    return f"{base}{path}/audio/transcriptions"


def _words(body: bytes, host: str) -> str:
    try:
        text = json.loads(body)["text"]
    except (ValueError, LookupError, TypeError, RecursionError) as exc:
        raise ModelReplyInvalid("no_text", host=host) from exc
    if not isinstance(text, str):
        raise ModelReplyInvalid("no_text", host=host)
    return text
