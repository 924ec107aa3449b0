"""Connecting to one of several checked addresses: the next is tried while the first is slow."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Sequence
from itertools import chain, zip_longest

STAGGER_S = 0.25


async def connect(addresses: Sequence[str], port: int, *, timeout_s: float) -> socket.socket:
    """A connected, non-blocking TCP socket to the first address that answers.

    Addresses of both families take turns, a new attempt starting every quarter of a second or as
    soon as one fails. Raises `TimeoutError`, or the `OSError` of the first attempt.
    """
    attempts: set[asyncio.Task[socket.socket]] = set()
    waiting = _in_turns(addresses)
    first: OSError | None = None
    try:
        async with asyncio.timeout(timeout_s):
            while waiting or attempts:
                if waiting:
                    attempts.add(asyncio.create_task(_attempt(waiting.pop(0), port)))
                done, attempts = await asyncio.wait(
                    attempts,
                    timeout=STAGGER_S if waiting else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                won = [task for task in done if task.exception() is None]
                if won:
                    attempts |= set(won[1:])
                    return won[0].result()
                for task in done:
                    failure = task.exception()
                    if not isinstance(failure, OSError):
                        raise failure or RuntimeError("no result")
                    first = first or failure
    finally:
        await _drop(attempts)
    raise first or OSError(errno.EHOSTUNREACH, "no address")


async def _attempt(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _drop(attempts: set[asyncio.Task[socket.socket]]) -> None:
    for task in attempts:
        task.cancel()
    for ended in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(ended, socket.socket):
            ended.close()


def _in_turns(addresses: Sequence[str]) -> list[str]:
    """The preferred family first, then the other one, by turns."""
    if not addresses:
        return []
    six = ":" in addresses[0]
    one = [a for a in addresses if (":" in a) == six]
    other = [a for a in addresses if (":" in a) != six]
    return [a for a in chain.from_iterable(zip_longest(one, other)) if a is not None]
