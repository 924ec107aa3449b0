"""A broker for tests that are not in the cage: in a thread, behind `socket.create_connection`."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from core.catalog.manifest import Capability
from core.egress.broker import Broker, Connect
from core.egress.connector import connect
from core.egress.resolver import Resolver
from core.egress.rules import Reach
from executors._sdk.net import Asker

WEB = (Capability("network:http", ("arg:urls",)),)
PUBLIC = "93.184.215.14"


def reach_of(*private_hosts: str, rights: Sequence[Capability] = WEB) -> Reach:
    """The reach of a tool for any host of the web."""
    reach = Reach.of(rights, private_hosts)
    assert reach is not None
    return reach


def resolver(*addresses: str) -> Any:
    """A look-up that always gives these addresses and counts how often it is asked."""

    def resolve(host: str, port: Any, family: int = 0, kind: int = 0) -> list[Any]:
        resolve.asked += 1  # type: ignore[attr-defined]
        return [
            (socket.AF_INET6, kind, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, kind, 6, "", (address, port))
            for address in addresses
        ]

    resolve.asked = 0  # type: ignore[attr-defined]
    return resolve


class CountingConnector:
    """Connects nowhere: gives one end of a pair and writes down where to."""

    def __init__(self) -> None:
        self.to: list[tuple[tuple[str, ...], int]] = []

    async def __call__(
        self, addresses: Sequence[str], port: int, *, timeout_s: float
    ) -> socket.socket:
        self.to.append((tuple(addresses), port))
        one, other = socket.socketpair()
        other.close()
        return one


@contextmanager
def line_to(
    reach: Reach,
    *,
    lookup: Callable[..., list[Any]] = socket.getaddrinfo,
    connector: Connect = connect,
) -> Iterator[int]:
    """A descriptor of a broker that runs in a thread; the caller owns it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    broker = Broker(resolver=Resolver(lookup), connector=connector)
    serving = broker.serve_reach(reach)

    async def enter() -> int:
        return os.dup(await serving.__aenter__())

    async def leave() -> None:
        await serving.__aexit__(None, None, None)

    try:
        yield asyncio.run_coroutine_threadsafe(enter(), loop).result(60)
        asyncio.run_coroutine_threadsafe(leave(), loop).result(60)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextmanager
def asker(reach: Reach, **about: Any) -> Iterator[Asker]:
    """What stands in the place of `socket.create_connection` in a child."""
    with line_to(reach, **about) as fd:
        asks = Asker(fd)
        try:
            yield asks
        finally:
            asks.close()
