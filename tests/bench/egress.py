"""A connection through the broker, as a child asks for it, beside a direct one to the same server.

The child is this process and the broker runs in a thread of it with its own loop, so that both
wait for one interpreter: between two processes it is rather less.
"""

from __future__ import annotations

import asyncio
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from core.catalog.manifest import Capability
from core.execution.cage.process import ProcessCage
from executors._sdk.net import Asker
from tests.bench.figures import spread, times
from tests.support.broker import line_to, reach_of
from tests.support.run_executor import SimpleManifest, SimpleProgram, call_document, read_sdk

_HOST = "127.0.0.1"
# Inside a caged child: the same server, asked through the broker, in milliseconds.
_CALL = b"""
import socket, time

def run(call):
    spent = []
    for _ in range(call.args["repeat"]):
        start = time.perf_counter()
        socket.create_connection((call.args["host"], call.args["port"]), 10).close()
        spent.append(time.perf_counter() - start)
    return {"ok": True, "content": spent}
"""


def run(argv: Sequence[str] = ()) -> dict[str, Any]:
    """Milliseconds of a direct connection, of one through the broker to an address, to a name
    whose look-up is kept, and of the latter from inside a caged call."""
    repeat = times(200)
    with _server() as port, line_to(reach_of(_HOST, "localhost")) as fd:
        asker = Asker(fd)
        ways: dict[str, Callable[[], socket.socket]] = {
            "direct": lambda: socket.create_connection((_HOST, port), 10),
            "broker_address": lambda: asker.create_connection((_HOST, port), 10),
            "broker_name": lambda: asker.create_connection(("localhost", port), 10),
        }
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeat):
            for name, connect in ways.items():
                start = time.perf_counter()
                connect().close()
                spent[name].append(time.perf_counter() - start)
        asker.close()
        spent["broker_caged"] = asyncio.run(_caged(port, repeat))
    direct = statistics.median(spent["direct"])
    return {
        "direct": spread(spent["direct"]),
        **{
            name: spread(
                spent[name],
                overhead_median_ms=round((statistics.median(spent[name]) - direct) * 1000, 3),
                budget_overhead_ms=3,
            )
            for name in spent
            if name != "direct"
        },
    }


async def _caged(port: int, repeat: int) -> list[float]:
    rights = (Capability("network:http", ("arg:host",)),)
    program = SimpleProgram(SimpleManifest("get_now", capabilities=rights), {"main.py": _CALL})
    document = call_document(
        "get_now",
        {"host": _HOST, "port": port, "repeat": repeat},
        private_hosts=(_HOST,),
    )
    seen = await ProcessCage().run(program, read_sdk(), document)
    if not seen.ok:
        raise RuntimeError(f"the call failed: {seen.error}")
    return [float(one) for one in seen.content]


@contextmanager
def _server() -> Iterator[int]:
    with socket.create_server((_HOST, 0), backlog=512) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
