"""One connection to one server: opened, asked, closed. Knows no database and no policy.

The protocol's library opens and closes in one task of its own, since its scopes may not be left
from another; calls come from anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from core.catalog.foreign import MOST_TOOLS, SeenTool, seen_tool
from core.catalog.foreign_schema import ForeignRefused
from core.foreign.transport import Meter, end_group, over_http, over_pipes

log = logging.getLogger(__name__)

OPEN_S = 20.0
_MOST_PAGES = 20


class LinkFailed(Exception):
    """The server cannot be spoken with; the text says why, in English and without a secret.
    `flooded`: it said more than it may. `said`: the last a program wrote beside its answers, which
    is a stranger's text, for the person at the terminal alone."""

    def __init__(self, detail: str, *, flooded: bool = False) -> None:
        super().__init__(detail)
        self.flooded = flooded
        self.said = ""


class ServerSaidNo(Exception):
    """The server answered with an error of the protocol."""


class Link:
    """A connection that stays open until it is closed or ends by itself (`alive`)."""

    def __init__(
        self,
        *,
        argv: tuple[str, ...] = (),
        url: str = "",
        secrets: Mapping[str, str],
        folder: Path,
    ) -> None:
        self._argv, self._url, self._secrets, self._folder = argv, url, secrets, folder
        self._meter = Meter()
        self._closing = asyncio.Event()
        self._ended = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: Any = None
        self._group: int | None = None
        self.changed = False
        """The server said that its list of tools is another one."""

    @property
    def alive(self) -> bool:
        return self._client is not None and not self._ended.is_set()

    async def open(self) -> None:
        """Start the program or reach the host, and agree on the protocol. Raises `LinkFailed`."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready))
        try:
            async with asyncio.timeout(OPEN_S):
                await self._before_end(ready)
        except TimeoutError:
            await self.close(now=True)
            raise LinkFailed(f"no answer in {OPEN_S:g} s") from None
        except LinkFailed as exc:
            await self.close(now=True)
            exc.said = self._meter.said
            raise
        except BaseException:
            await self.close(now=True)
            raise

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            # A second or two, and some 60 MB: only who has servers pays, and never the event loop.
            await asyncio.to_thread(_load)
            from mcp.client.client import Client

            async with AsyncExitStack() as stack:
                client = Client(self._transport(), cache=None, message_handler=self._heard)
                self._client = await stack.enter_async_context(client)
                if not ready.done():
                    ready.set_result(None)
                await self._closing.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as exc:
            # Only the kind: the text may hold anything that the server said.
            log.info("connection to a server ended", extra={"why": _kind(exc)})
            if not ready.done():
                ready.set_exception(LinkFailed(_why(exc)))
            if not isinstance(exc, Exception):
                raise
        finally:
            self._group = None
            self._ended.set()

    def _transport(self) -> Any:
        if self._url:
            return over_http(self._url, self._secrets, self._meter, self._ended.set)
        return over_pipes(
            self._argv,
            self._secrets,
            self._folder,
            self._meter,
            self._started,
            self._ended.set,
        )

    def _started(self, group: int) -> None:
        self._group = group

    async def _heard(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.changed = True

    async def tools(self) -> list[SeenTool]:
        """What the server lists now, without what cannot be kept at all. Raises `LinkFailed` and
        `ServerSaidNo`."""
        self.changed = False
        found: dict[str, SeenTool] = {}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._ask(self._client.list_tools(cursor=cursor))
            for tool in page.tools:
                try:
                    one = seen_tool(tool.name, tool.description or "", tool.input_schema)
                except ForeignRefused as exc:
                    log.info("tool of a server left out", extra={"why": exc.reason})
                    continue
                found[one.tool] = one
            cursor = page.next_cursor
            if cursor is None or len(found) >= MOST_TOOLS:
                break
        return list(found.values())[:MOST_TOOLS]

    async def call(
        self, tool: str, args: Mapping[str, Any], on_progress: Callable[..., None] | None
    ) -> Mapping[str, Any]:
        """The JSON of what the tool answered. Raises `LinkFailed` and `ServerSaidNo`."""

        async def progress(done: float, total: float | None, _: str | None) -> None:
            if on_progress is not None:
                on_progress(int(done), None if total is None else int(total))

        answer = await self._ask(
            self._client.call_tool(tool, dict(args), progress_callback=progress)
        )
        data: Mapping[str, Any] = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        return data

    async def _ask(self, asked: Any) -> Any:
        from mcp.shared.exceptions import MCPError

        self._meter.refill()
        try:
            return await self._before_end(asyncio.ensure_future(asked))
        except MCPError as exc:
            if self._ended.is_set() or self._meter.flooded:
                raise self._failed() from None
            raise ServerSaidNo(str(exc.message)[:500]) from None
        except (ValueError, RuntimeError, OSError) as exc:
            raise LinkFailed(_why(exc)) from None

    async def _before_end(self, asked: asyncio.Future[Any]) -> Any:
        """The result, unless the connection ends before it comes."""
        ended = asyncio.create_task(self._ended.wait())
        try:
            await asyncio.wait({asked, ended}, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            raise self._failed()
        finally:
            ended.cancel()
            if not asked.done():
                asked.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await asyncio.wait({asked}, timeout=1)

    def _failed(self) -> LinkFailed:
        if self._meter.flooded:
            return LinkFailed("it said more than it may", flooded=True)
        return LinkFailed(self._meter.ended or "the connection ended")

    async def close(self, *, now: bool = False) -> None:
        """End the connection and the program; `now`: without asking it first. Twice is fine."""
        if now and self._group is not None:
            end_group(self._group)
        self._closing.set()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=10)
            if not done:
                self._task.cancel()
                await asyncio.wait({self._task}, timeout=5)
            if self._task.done() and not self._task.cancelled():
                self._task.exception()
        if self._group is not None:
            end_group(self._group)


def _load() -> None:
    import mcp.client.client  # noqa: F401


def _kind(exc: BaseException) -> str:
    while isinstance(exc, BaseExceptionGroup) and exc.exceptions:
        exc = exc.exceptions[0]
    return type(exc).__name__


def _why(exc: BaseException) -> str:
    while isinstance(exc, BaseExceptionGroup) and exc.exceptions:
        exc = exc.exceptions[0]
    if isinstance(exc, FileNotFoundError):
        return "the program is not there"
    return f"it cannot be reached ({type(exc).__name__})"
