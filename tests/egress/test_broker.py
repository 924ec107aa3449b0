"""The broker at the child's end of the line: what is let through, what is not, under stress."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from core.egress import broker as broker_module
from core.egress import connector as connector_module
from core.egress import rules
from core.egress.broker import MOST_AT_ONCE, Broker, read_request
from core.egress.connector import connect
from core.egress.resolver import Resolver
from core.errors import CallRefused
from executors._sdk.net import Asker, HostDenied
from tests.egress.corpus import SEED, hostile
from tests.support.broker import (
    PUBLIC,
    CountingConnector,
    asker,
    line_to,
    reach_of,
    resolver,
)


@contextmanager
def listening(host: str = "127.0.0.1", *, greet: bool = True) -> Iterator[int]:
    """A server on loopback that greets who connects."""
    with socket.create_server((host, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    if greet:
                        connection.sendall(b"hello")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def descriptors_when(wanted: int) -> int:
    """How many are open, as soon as it is this number or after long enough."""
    end = time.monotonic() + 45
    while descriptors() != wanted and time.monotonic() < end:
        time.sleep(0.01)
    return descriptors()


class Answers:
    """A name server that gives what it was told to for the next question."""

    def __init__(self) -> None:
        self.next: tuple[str, ...] = ()
        self.asked = 0

    def __call__(self, host: str, port: Any, family: int = 0, kind: int = 0) -> list[Any]:
        self.asked += 1
        return list(resolver(*self.next)(host, port, family, kind))


async def reached(reach: rules.Reach | None = None) -> tuple[int, int, list[str]]:
    """The whole corpus at the broker: requests made, connections made, and what got through."""
    names, counting, through = Answers(), CountingConnector(), []
    broker = Broker(resolver=Resolver(names, kept_s=0), connector=counting)
    tried = 0
    for kind, host, answer in hostile():
        for port in (80, 443):
            names.next = answer
            tried += 1
            try:
                made = await broker.open(reach or reach_of(), host, port, timeout_s=5)
            except (CallRefused, OSError):
                continue
            made.close()
            through.append(f"{kind}: {host!r}")
    return tried, len(counting.to), through


async def test_hostile_hosts_are_all_denied_without_a_connection():
    """S3. The corpus is made by code; its seed is printed."""
    tried, connections, through = await reached()

    print(f"S3: {tried} hostile requests, seed {SEED}: 0 allowed, {connections} connections")
    assert tried >= 1500
    assert through == []
    assert connections == 0


@pytest.mark.parametrize(
    ("name", "mutant"),
    [
        ("no check of the answers", {"check_addresses": lambda *_: None}),
        ("no inner ranges", {"_PRIVATE": {4: [], 16: []}}),
        ("no forbidden ranges", {"_NEVER": {4: [], 16: []}}),
        ("v6 is all public", {"_PUBLIC_V6": [(0, 128)]}),
        ("any form is a name", {"clean_host": lambda host: str(host)}),
    ],
)
async def test_hostile_hosts_get_through_a_broker_without_one_of_its_checks(
    monkeypatch: pytest.MonkeyPatch, name: str, mutant: dict[str, Any]
):
    """The corpus can tell: each check taken away lets something through."""
    for attribute, value in mutant.items():
        monkeypatch.setattr(rules, attribute, value)
        if hasattr(broker_module, attribute):
            monkeypatch.setattr(broker_module, attribute, value)

    _, connections, through = await reached()

    assert through
    assert connections == len(through)


@pytest.mark.parametrize("host", ["example.com", "EXAMPLE.com.", "8.8.8.8", "perché.example"])
def test_public_host_is_looked_up_once_and_connected_to(host: str):
    lookup, counting = resolver(PUBLIC, "2606:4700::1111"), CountingConnector()

    with asker(reach_of(), lookup=lookup, connector=counting) as asks:
        asks.create_connection((host, 443), 5).close()

    wanted = ("8.8.8.8",) if host == "8.8.8.8" else (PUBLIC, "2606:4700::1111")
    assert counting.to == [(wanted, 443)]
    assert lookup.asked == (0 if host == "8.8.8.8" else 1)


def test_alternating_name_server_gets_at_most_the_public_address():
    """Rebinding: every other answer is loopback. What was checked is what is connected to."""
    counting = CountingConnector()
    asked = 0

    def lookup(host: str, port: Any, family: int = 0, kind: int = 0) -> list[Any]:
        nonlocal asked
        asked += 1
        return list(resolver(PUBLIC if asked % 2 else "127.0.0.1")(host, port))

    reach = reach_of()

    async def ask_often() -> list[str]:
        broker = Broker(resolver=Resolver(lookup, kept_s=0), connector=counting)
        seen = []
        for _ in range(20):
            try:
                (await broker.open(reach, "rebind.example", 80, timeout_s=5)).close()
                seen.append("connected")
            except CallRefused:
                seen.append("denied")
        return seen

    assert asyncio.run(ask_often()) == ["connected", "denied"] * 10
    assert set(counting.to) == {((PUBLIC,), 80)}


def test_connection_is_the_one_that_was_made():
    with (
        listening() as port,
        asker(reach_of(f"nas.example:{port}"), lookup=resolver("127.0.0.1")) as a,
    ):
        with a.create_connection(("nas.example", port), timeout=45) as connection:
            assert connection.gettimeout() == 45
            assert connection.getpeername() == ("127.0.0.1", port)
            assert connection.recv(10) == b"hello"
        with a.create_connection(("nas.example", port)) as connection:
            assert connection.gettimeout() is None
            assert connection.recv(10) == b"hello"


def test_next_address_is_tried_and_the_first_error_kept():
    with listening() as port:
        found = resolver("127.0.0.2", "127.0.0.1")
        with (
            asker(reach_of("nas.example"), lookup=found) as asks,
            asks.create_connection(("nas.example", port), 5) as connection,
        ):
            assert connection.recv(10) == b"hello"
    with (
        asker(reach_of("nas.example"), lookup=found) as asks,
        pytest.raises(ConnectionRefusedError),
    ):
        asks.create_connection(("nas.example", port), 5)


async def test_slow_address_does_not_hold_up_the_next(monkeypatch: pytest.MonkeyPatch):
    """The first address swallows what is sent; the next is tried a quarter of a second later."""
    ended: list[str] = []
    really = connector_module._attempt

    async def attempt(address: str, port: int) -> socket.socket:
        if address == "127.0.0.2":
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(address)
        return await really(address, port)

    monkeypatch.setattr(connector_module, "_attempt", attempt)
    with listening() as port:
        started = time.monotonic()
        with await connect(["127.0.0.2", "127.0.0.1"], port, timeout_s=60) as connection:
            took = time.monotonic() - started
            assert connection.getpeername()[0] == "127.0.0.1"

    assert took < 30
    assert ended == ["127.0.0.2"]


async def test_addresses_of_both_families_take_turns():
    found = ["::2", "::3", "::4", "10.0.0.1", "10.0.0.2"]

    assert connector_module._in_turns(found) == ["::2", "10.0.0.1", "::3", "10.0.0.2", "::4"]


def test_unknown_name_and_silence_have_their_own_errors():
    def unknown(*args: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    class Deaf:
        async def __call__(self, *args: Any, **kwargs: Any) -> socket.socket:
            await asyncio.sleep(60)
            raise AssertionError

    with asker(reach_of(), lookup=unknown) as asks, pytest.raises(socket.gaierror):
        asks.create_connection(("nobody.example", 443), 5)
    with (
        asker(reach_of(), lookup=resolver(PUBLIC), connector=Deaf()) as asks,
        pytest.raises(TimeoutError),
    ):
        asks.create_connection(("slow.example", 443), 0.2)


def test_slow_name_server_holds_up_nobody_else():
    release = threading.Event()

    def lookup(host: str, *args: Any) -> list[Any]:
        if host == "slow.example":
            release.wait(60)
        return list(resolver(PUBLIC)(host, None))

    with asker(reach_of(), lookup=lookup, connector=CountingConnector()) as asks:
        waiting = threading.Thread(
            target=lambda: asks.create_connection(("slow.example", 80), 60).close()
        )
        waiting.start()
        asks.create_connection(("quick.example", 80), 45).close()
        assert not release.is_set()
        release.set()
        waiting.join()


def test_many_threads_each_get_their_own_connection():
    """Twelve at once over one line, each asking for another server, ten times over."""
    with listening() as one, listening() as two, asker(reach_of("127.0.0.1")) as asks:
        wrong: list[Any] = []

        def ask(port: int) -> None:
            for _ in range(10):
                with asks.create_connection(("127.0.0.1", port), 10) as connection:
                    if connection.getpeername()[1] != port or connection.recv(5) != b"hello":
                        wrong.append(port)

        threads = [threading.Thread(target=ask, args=((one, two)[n % 2],)) for n in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert wrong == []
    assert asks._answers == {}
    assert asks._waiting == set()


def test_answer_that_comes_too_late_leaves_no_descriptor():
    class Late(CountingConnector):
        async def __call__(self, *args: Any, **kwargs: Any) -> socket.socket:
            if not self.to:
                self.to.append(((), 0))
                await asyncio.sleep(0.1)
            return await super().__call__(*args, **kwargs)

    with line_to(reach_of(), lookup=resolver(PUBLIC), connector=Late()) as fd:
        asks = Asker(fd)
        before = descriptors()
        asks.create_connection(("warm.example", 80), 5).close()
        # A question of which nobody waits for the answer.
        asks._line.send(json.dumps({"id": 77, "host": "x.example", "port": 80}).encode())
        asks.create_connection(("x.example", 80), 5).close()
        left = descriptors_when(before)
        asks.close()
    assert left == before


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"null",
        b"[]",
        b"\xff",
        b"x" * 2000,
        b"[" * 1000,
        b'{"id": "1", "host": "a.example", "port": 80}',
        b'{"id": -1, "host": "a.example", "port": 80}',
        b'{"id": true, "host": "a.example", "port": 80}',
        b'{"id": 1, "host": "a.example"}',
        b'{"id": 1, "host": "a.example", "port": 80, "timeout_s": "x"}',
    ],
)
def test_nonsense_ends_the_conversation(data: bytes):
    assert read_request(data) is None
    counting = CountingConnector()
    with (
        line_to(reach_of(), lookup=resolver(PUBLIC), connector=counting) as fd,
        socket.socket(fileno=fd) as line,
    ):
        line.settimeout(45)
        line.send(data)
        assert json.loads(line.recv(4096))["error"]["code"] == "resource_limit"
        assert line.recv(4096) == b""
    assert counting.to == []


def test_endless_time_is_not_given():
    for text in ("1e999", "NaN", "1e9"):
        request = read_request(
            b'{"id": 1, "host": "a", "port": 80, "timeout_s": %s}' % text.encode()
        )
        assert request is not None
        assert request.timeout_s == broker_module.MAX_TIMEOUT_S


def test_flood_of_requests_is_served_a_few_at_a_time_and_ends():
    running = most = 0

    class Slow(CountingConnector):
        async def __call__(self, *args: Any, **kwargs: Any) -> socket.socket:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            return await super().__call__(*args, **kwargs)

    slow = Slow()
    with (
        line_to(reach_of(), lookup=resolver(PUBLIC), connector=slow) as fd,
        socket.socket(fileno=fd) as line,
    ):
        line.settimeout(45)
        got = 0
        question = json.dumps({"id": 1, "host": "a.example", "port": 80}).encode()
        with suppress(BrokenPipeError):
            for _ in range(broker_module.MOST_REQUESTS * 2):
                line.send(question)
                _, fds, _, _ = socket.recv_fds(line, 4096, 4)
                for one in fds:
                    os.close(one)
                got += len(fds)
    assert got == len(slow.to) == broker_module.MOST_REQUESTS
    assert most <= MOST_AT_ONCE


def test_line_that_hangs_up_amid_a_request_leaves_nothing():
    class Slow(CountingConnector):
        async def __call__(self, *args: Any, **kwargs: Any) -> socket.socket:
            await asyncio.sleep(30)
            return await super().__call__(*args, **kwargs)

    before = descriptors()
    started = time.monotonic()
    with (
        line_to(reach_of(), lookup=resolver(PUBLIC), connector=Slow()) as fd,
        socket.socket(fileno=fd) as line,
    ):
        line.send(json.dumps({"id": 1, "host": "a.example", "port": 80}).encode())
        time.sleep(0.05)
    assert time.monotonic() - started < 20
    assert descriptors_when(before) == before


def test_descriptors_that_a_child_sends_are_not_taken():
    before = descriptors()
    with (
        line_to(reach_of(), lookup=resolver(PUBLIC), connector=CountingConnector()) as fd,
        socket.socket(fileno=fd) as line,
    ):
        line.settimeout(45)
        question = json.dumps({"id": 1, "host": "a.example", "port": 80}).encode()
        socket.send_fds(line, [question], [0, 1, 2])
        _, fds, _, _ = socket.recv_fds(line, 4096, 4)
        for one in fds:
            os.close(one)
    assert descriptors_when(before) == before


def test_odd_hosts_of_one_request_do_not_spoil_the_next():
    odd = ["a" * 5000, "\ud800.example", None, 5, b"\xff", ["x"], object()]
    with asker(reach_of(), lookup=resolver(PUBLIC), connector=CountingConnector()) as asks:
        for host in odd:
            with pytest.raises(HostDenied):
                asks.create_connection((host, 80), 5)
        asks.create_connection((b"a.example", "80"), 5).close()
