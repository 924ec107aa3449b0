"""Looking names up for the broker: off the event loop, one look-up at a time per name.

An answer is kept for a few seconds; the broker checks it anew for every request, because what one
call may reach another may not.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from core.errors import CallRefused, ErrorCode

KEPT_S = 10.0
TIMEOUT_S = 8.0
MOST_AT_ONCE = 16
MOST_KEPT = 512

Lookup = Callable[..., list[Any]]


class Resolver:
    """`lookup` is `socket.getaddrinfo` or a double of it; it runs in a thread of its own, which a
    name server that never answers may keep without holding up the end of the process."""

    def __init__(
        self,
        lookup: Lookup = socket.getaddrinfo,
        *,
        kept_s: float = KEPT_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._lookup, self._kept_s, self._timeout_s = lookup, kept_s, timeout_s
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._asked: dict[str, asyncio.Future[tuple[str, ...]]] = {}
        self._slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    async def addresses(self, name: str) -> tuple[str, ...]:
        """Every address of a name in the order of preference, at least one.

        Raises `CallRefused`: host_not_found, network when no name server can be asked,
        timeout, resource_limit when too many look-ups wait.
        """
        loop = asyncio.get_running_loop()
        kept = self._known.get(name)
        if kept is not None and kept[0] > loop.time():
            return kept[1]
        future = self._asked.get(name)
        if future is None or future.get_loop() is not loop:
            future = self._ask(name, loop)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.shield(future)
        except TimeoutError:
            raise CallRefused(ErrorCode.TIMEOUT, "the name server does not answer") from None

    def _ask(self, name: str, loop: asyncio.AbstractEventLoop) -> asyncio.Future[tuple[str, ...]]:
        if not self._slots.acquire(blocking=False):
            raise CallRefused(ErrorCode.RESOURCE_LIMIT, "too many names are being looked up")
        future: asyncio.Future[tuple[str, ...]] = loop.create_future()
        self._asked[name] = future

        def settle(found: tuple[str, ...] | None, *, nobody_asked: bool = False) -> None:
            self._asked.pop(name, None)
            if found:
                if len(self._known) >= MOST_KEPT:
                    self._known.clear()
                self._known[name] = (loop.time() + self._kept_s, found)
            if future.cancelled():
                return
            if found:
                future.set_result(found)
            else:
                future.set_exception(_unresolved(nobody_asked=nobody_asked))
                future.exception()  # somebody may have stopped waiting

        def work() -> None:
            found, nobody_asked = None, False
            try:
                found = self._look(name)
            except socket.gaierror:
                nobody_asked = True
            finally:
                self._slots.release()
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(partial(settle, found, nobody_asked=nobody_asked))

        threading.Thread(target=work, name="metnos-resolve", daemon=True).start()
        return future

    def _look(self, name: str) -> tuple[str, ...] | None:
        """Raises `gaierror` only when there was nobody to ask."""
        try:
            found = self._lookup(name, None, 0, socket.SOCK_STREAM)
        except socket.gaierror as exc:
            if exc.errno == socket.EAI_AGAIN:
                raise
            return None
        except (OSError, UnicodeError):
            return None
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _unresolved(*, nobody_asked: bool) -> CallRefused:
    if nobody_asked:
        return CallRefused(ErrorCode.NETWORK, "no name server can be asked: there is no network")
    return CallRefused(ErrorCode.HOST_NOT_FOUND, "the name is unknown")
