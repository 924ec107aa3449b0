"""The two ways to a server, as streams of the protocol's messages: the pipes of a program that is
started here, and HTTP. Both are bounded, and both say when they have ended.

A room of the protocol's library, which is imported when a server is first needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from core.foreign import keeper
from core.redaction import mask_values, redact

log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
# What may come between two requests, in all.
MAX_FLOOD_BYTES = 16 * 1024 * 1024
_MOST_NONSENSE = 100
_MOST_ERRORS = 200
_MOST_ERROR = 500
GRACE_S = 2.0


class Meter:
    """What a connection has brought since the last request, why it ended, and the last line that
    the program wrote beside its answers."""

    def __init__(self) -> None:
        self.left = MAX_FLOOD_BYTES
        self.ended = ""
        self.flooded = False
        self.said = ""

    def refill(self) -> None:
        self.left = MAX_FLOOD_BYTES

    def take(self, count: int) -> bool:
        """Whether so much more may come."""
        self.left -= count
        if self.left < 0:
            self.flooded = True
        return self.left >= 0


@asynccontextmanager
async def over_pipes(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    meter: Meter,
    on_start: Callable[[int], None],
    on_end: Callable[[], None],
) -> AsyncIterator[Any]:
    """Start a program in a process group of its own, with this environment and no more, and speak
    with it by lines. When this ends nothing of the group is left. `on_start` gets the group.
    Raises `OSError` when it cannot be started."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    kept = [sys.executable, "-I", "-S", keeper.__file__, str(os.getpid()), *argv]
    process = await asyncio.create_subprocess_exec(
        *kept,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=folder,
        start_new_session=True,
        limit=MAX_MESSAGE_BYTES,
    )
    on_start(process.pid)
    to_session, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, from_session = anyio.create_memory_object_stream[Any](0)

    async def read() -> None:
        assert process.stdout is not None  # noqa: S101
        nonsense = 0
        try:
            async with to_session:
                while line := await process.stdout.readline():
                    if not meter.take(len(line)):
                        break
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValueError:
                        nonsense += 1
                        if nonsense > _MOST_NONSENSE:
                            meter.ended = "it does not speak the protocol"
                            break
                        continue
                    await to_session.send(SessionMessage(message))
        except ValueError:
            # A line longer than the limit.
            meter.flooded = True
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            pass
        finally:
            on_end()

    async def write() -> None:
        assert process.stdin is not None  # noqa: S101
        try:
            async with from_session:
                async for item in from_session:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    process.stdin.write(f"{text}\n".encode())
                    await process.stdin.drain()
        except (anyio.ClosedResourceError, OSError):
            on_end()

    secrets = tuple(environment.values())
    tasks = [
        asyncio.create_task(read()),
        asyncio.create_task(write()),
        asyncio.create_task(_log_errors(process.stderr, argv[0], secrets, meter)),
    ]
    try:
        yield incoming, outgoing
    finally:
        await asyncio.shield(_end(process, tasks))


async def _end(process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]]) -> None:
    """Ask by closing its input, then end the whole group."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            await process.wait()
    # What it left behind is of its group.
    end_group(process.pid)
    await process.wait()
    # The last of them reads what it still had to say.
    await asyncio.wait(tasks[-1:], timeout=1)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    # Pipes that were not read to their end stay open otherwise, for asyncio waits for the rest.
    if (transport := getattr(process, "_transport", None)) is not None:
        transport.close()


def end_group(group: int) -> None:
    """End a program and all that it started. Twice is fine."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


async def _log_errors(
    stream: asyncio.StreamReader | None, name: str, secrets: Collection[str], meter: Meter
) -> None:
    """What the program says beside its answers, bounded and without secrets."""
    assert stream is not None  # noqa: S101
    told = 0
    while data := await stream.read(4096):
        told += 1
        if told <= _MOST_ERRORS:
            text = mask_values(data.decode("utf-8", "replace"), [s for s in secrets if s])
            text = redact(text)
            meter.said = (text.strip().splitlines() or [meter.said])[-1][:_MOST_ERROR]
            log.info(
                "server wrote errors",
                extra={"server": Path(name).name, "errors": text[:_MOST_ERROR]},
            )


@asynccontextmanager
async def over_http(
    url: str, headers: Mapping[str, str], meter: Meter, on_end: Callable[[], None]
) -> AsyncIterator[Any]:
    """Speak with a server over HTTP, at its own host alone: the library follows redirects within
    it and no other. Settings of the environment (proxies) do not count."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await super().handle_async_request(request)
            response.stream = Counted(response.stream)
            return response

    class Counted(httpx2.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self._stream:
                if not meter.take(len(piece)):
                    raise httpx2.ReadError("more than a connection may bring")
                yield piece

        async def aclose(self) -> None:
            await self._stream.aclose()

    timeout = httpx2.Timeout(30.0, read=120.0)
    try:
        async with (
            httpx2.AsyncClient(
                transport=Bounded(), headers=dict(headers), timeout=timeout, trust_env=False
            ) as client,
            streamable_http_client(
                url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES
            ) as streams,
        ):
            yield streams
    finally:
        on_end()
