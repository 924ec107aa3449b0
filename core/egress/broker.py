"""The only way out to the network: checks a request, connects, and hands the socket over.

A call with a right to the network is given one end of a pair of sockets. It sends one datagram a
request, JSON `{"id", "host", "port", "timeout_s"}`, and gets one back: `{"id", "ok": true}` with
the connected socket (SCM_RIGHTS), or `{"id", "error": {code, detail, errno?}}`. The name is looked
up once, every address must be allowed, and the connection goes to one of those very addresses.
Which bytes then travel is the child's affair: TLS is verified there, with the name asked for.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from core.egress.connector import connect
from core.egress.resolver import Resolver
from core.egress.rules import Reach, Right, check_addresses, is_address
from core.errors import CallRefused, ErrorCode

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 1024
MOST_AT_ONCE = 8
MOST_REQUESTS = 500
MOST_ADDRESSES = 16
TIMEOUT_S = 10.0
MAX_TIMEOUT_S = 30.0


class Connect(Protocol):
    """`core.egress.connector.connect` or a double of it."""

    def __call__(
        self, addresses: Sequence[str], port: int, *, timeout_s: float
    ) -> Awaitable[socket.socket]: ...


class Rights(Protocol):
    """The part of a manifest that says how far a program reaches."""

    @property
    def capabilities(self) -> Sequence[Right]: ...


class Program(Protocol):
    @property
    def manifest(self) -> Rights: ...


class Broker:
    """Serves any number of calls at once; keeps nothing of any call."""

    def __init__(self, *, resolver: Resolver | None = None, connector: Connect = connect) -> None:
        self._resolver = resolver or Resolver()
        self._connect = connector

    def serve(self, program: Program, call: Mapping[str, Any]) -> AbstractAsyncContextManager[int]:
        """Answer the requests of one call as far as its manifest and its actor's grants reach
        (`private_hosts`, `services` and `account_hosts` of the call document); see
        `serve_reach`."""
        reach = Reach.of(
            program.manifest.capabilities,
            call.get("private_hosts") or (),
            call.get("services") or {},
            call.get("account_hosts") or {},
        )
        return self.serve_reach(reach or Reach())

    @asynccontextmanager
    async def serve_reach(self, reach: Reach) -> AsyncIterator[int]:
        """Answer the requests of one call while the block runs; the descriptor is the child's end.

        It stays ours: pass a copy to the child. When the block ends both ends are closed and what
        is being connected is dropped. Raises `OSError` when there are no descriptors left.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        session = _Session(self, reach, ours)
        try:
            session.resume()
            yield theirs.fileno()
        finally:
            theirs.close()
            await session.close()

    async def open(self, reach: Reach, host: object, port: object, *, timeout_s: float) -> Any:
        """A connected socket for one request, or `CallRefused`/`OSError` (`TimeoutError`)."""
        target = reach.target(host, port)
        async with asyncio.timeout(timeout_s):
            if is_address(target.name):
                addresses: tuple[str, ...] = (target.name,)
            else:
                addresses = await self._resolver.addresses(target.name)
            check_addresses(target, addresses)
            return await self._connect(
                addresses[:MOST_ADDRESSES], target.port, timeout_s=timeout_s
            )


@dataclass(frozen=True, slots=True)
class _Request:
    id: int
    host: object
    port: object
    timeout_s: float


class _Session:
    """One call's end of the conversation."""

    def __init__(self, broker: Broker, reach: Reach, ours: socket.socket) -> None:
        self._broker, self._reach, self._ours = broker, reach, ours
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._served = 0
        self._reading = self._over = False

    def resume(self) -> None:
        if not self._reading and not self._over:
            self._reading = True
            self._loop.add_reader(self._ours, self._readable)

    def _pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._ours)

    async def close(self) -> None:
        self._over = True
        self._pause()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._ours.close()

    def _readable(self) -> None:
        """Take what is there, as many requests as may be served at once."""
        while len(self._tasks) < MOST_AT_ONCE:
            try:
                # No room for descriptors: the kernel closes any that the child sends along.
                data = self._ours.recv(MAX_REQUEST_BYTES + 1)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            request = read_request(data)
            if request is None or self._served >= MOST_REQUESTS:
                # It hung up, talks nonsense or does not come to an end: no more is heard of it.
                self._over = True
                self._pause()
                if data:
                    log.warning("a call asked the broker for too much or in no form")
                    self._answer(0, _error(ErrorCode.RESOURCE_LIMIT, "no more connections"))
                    self._ours.shutdown(socket.SHUT_RDWR)
                return
            self._served += 1
            task = self._loop.create_task(self._serve(request))
            self._tasks.add(task)
            task.add_done_callback(self._done)
        self._pause()

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.resume()
        if not task.cancelled() and task.exception() is not None:
            log.error("the broker failed", exc_info=task.exception())

    async def _serve(self, request: _Request) -> None:
        connection: socket.socket | None = None
        try:
            connection = await self._broker.open(
                self._reach, request.host, request.port, timeout_s=request.timeout_s
            )
            self._answer(request.id, {"ok": True}, connection)
        except CallRefused as exc:
            self._answer(request.id, _error(exc.code, exc.detail))
        except TimeoutError:
            self._answer(request.id, _error(ErrorCode.TIMEOUT, "no connection in time"))
        except OSError as exc:
            number = exc.errno or errno.EIO
            detail = os.strerror(number) if number > 0 else "no connection"
            self._answer(request.id, _error(ErrorCode.NETWORK, detail, number))
        finally:
            if connection is not None:
                connection.close()

    def _answer(
        self, id: int, answer: dict[str, Any], connection: socket.socket | None = None
    ) -> None:
        data = json.dumps({"id": id, **answer}).encode()
        fds = [] if connection is None else [connection.fileno()]
        # A child that reads no answers, or is gone, gets none.
        with suppress(OSError):
            socket.send_fds(self._ours, [data], fds)


def read_request(data: bytes) -> _Request | None:
    """What a child asks for; None for what has not the form of a request."""
    if not data or len(data) > MAX_REQUEST_BYTES:
        return None
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or not {"id", "host", "port"} <= document.keys():
        return None
    id, seconds = document["id"], document.get("timeout_s", TIMEOUT_S)
    if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id < 2**31:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    # `min` first: NaN then stands for the longest time.
    wait = max(0.05, min(MAX_TIMEOUT_S, seconds))
    return _Request(id, document["host"], document["port"], wait)


def _error(code: ErrorCode, detail: str, number: int | None = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code.value, "detail": detail[:200]}
    if number is not None:
        error["errno"] = number
    return {"error": error}
