"""Look-ups: once per name, kept shortly, never in the way."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from core.egress import resolver as resolver_module
from core.egress.resolver import Resolver
from core.errors import CallRefused, ErrorCode
from tests.support.broker import PUBLIC
from tests.support.broker import resolver as lookup_of


async def test_name_asked_by_many_is_looked_up_once_and_kept():
    lookup = lookup_of(PUBLIC, PUBLIC, "2606:4700::1111")
    resolver = Resolver(lookup)

    found = await asyncio.gather(*(resolver.addresses("a.example") for _ in range(50)))
    again = await resolver.addresses("a.example")

    assert set(found) == {again} == {(PUBLIC, "2606:4700::1111")}
    assert lookup.asked == 1


async def test_answer_is_forgotten_after_its_time():
    lookup = lookup_of(PUBLIC)
    resolver = Resolver(lookup, kept_s=0)

    for _ in range(3):
        await resolver.addresses("a.example")

    assert lookup.asked == 3


@pytest.mark.parametrize(
    "fault", [socket.gaierror(-2, "unknown"), UnicodeError("idna"), OSError("odd"), None]
)
async def test_name_without_addresses_is_not_found_and_asked_again(fault: Exception | None):
    asked = 0

    def lookup(*args: Any) -> list[Any]:
        nonlocal asked
        asked += 1
        if fault is not None:
            raise fault
        return []

    resolver = Resolver(lookup)
    for _ in range(2):
        with pytest.raises(CallRefused) as caught:
            await resolver.addresses("nobody.example")
        assert caught.value.code is ErrorCode.HOST_NOT_FOUND
    assert asked == 2


async def test_silent_name_servers_are_timeouts_and_limited_in_number():
    release = threading.Event()

    def lookup(*args: Any) -> list[Any]:
        release.wait(60)
        return []

    resolver = Resolver(lookup, timeout_s=0.3)
    names = [f"{n}.example" for n in range(resolver_module.MOST_AT_ONCE + 3)]
    codes = []
    for ended in await asyncio.gather(
        *(resolver.addresses(name) for name in names), return_exceptions=True
    ):
        assert isinstance(ended, CallRefused)
        codes.append(ended.code)
    release.set()

    assert codes.count(ErrorCode.TIMEOUT) == resolver_module.MOST_AT_ONCE
    assert codes.count(ErrorCode.RESOURCE_LIMIT) == 3


async def test_caller_that_stops_waiting_does_not_stop_the_others():
    release = threading.Event()

    def lookup(host: str, *args: Any) -> list[Any]:
        release.wait(60)
        return list(lookup_of(PUBLIC)(host, None))

    resolver = Resolver(lookup)
    one = asyncio.create_task(resolver.addresses("a.example"))
    other = asyncio.create_task(resolver.addresses("a.example"))
    await asyncio.sleep(0.01)
    one.cancel()
    release.set()

    assert await other == (PUBLIC,)
