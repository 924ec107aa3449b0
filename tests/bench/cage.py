"""`python -m tests.bench cage [ROUNDS]`: what a caged call costs, beside what it is made of.

In one run and by turns, so that load falls on all alike: a bare fork of an equal process, a plain
`python -I -S` that does nothing, a call without a cage, a trivial caged call, `get_now`, a call
that needs the heavy zygote (its import paid once), eight calls at once. Milliseconds.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from core.execution.cage.process import ProcessCage
from core.execution.cage.status import cage_status
from tests.support.run_executor import (
    TREE,
    SimpleManifest,
    SimpleProgram,
    call_document,
    read_program,
    read_sdk,
)

TRIVIAL = SimpleProgram(
    SimpleManifest("get_now"), {"main.py": b"def run(call):\n    return {'ok': True}\n"}
)
HEAVY = SimpleProgram(
    SimpleManifest("read_urls_html", requires=("trafilatura",)),
    {"main.py": b"import trafilatura\ndef run(call):\n    return {'ok': True}\n"},
)
FORK = """
import os, sys, time
sys.path.extend({site!r})
for name in {names!r}:
    try:
        __import__(name)
    except ImportError:
        pass
while sys.stdin.readline():
    started = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    print(time.perf_counter() - started, flush=True)
"""


def run(arguments: list[str]) -> dict[str, Any]:
    rounds = int(arguments[0]) if arguments else 60
    return asyncio.run(measure(rounds))


async def measure(rounds: int) -> dict[str, Any]:
    from core.execution.cage.process import PRELOADED, light_packages

    sdk = read_sdk()
    cage, plain = ProcessCage(), ProcessCage(unsafe=True)
    now = read_program(TREE / "get_now")
    equal = subprocess.Popen(
        [
            sys.executable, "-I", "-S", "-c",
            FORK.format(names=PRELOADED, site=list(light_packages().site_dirs)),
        ],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert equal.stdin is not None
    assert equal.stdout is not None

    async def fork() -> float:
        equal.stdin.write("\n")
        equal.stdin.flush()
        return float(equal.stdout.readline())

    async def spawn() -> float:
        return timed(lambda: subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True))

    def calling(one: ProcessCage, program: Any) -> Callable[[], Awaitable[float]]:
        async def call() -> float:
            started = time.perf_counter()
            seen = await one.run(program, sdk, call_document(program.manifest.name, {}))
            assert seen.ok, seen.error
            return time.perf_counter() - started

        return call

    caged = calling(cage, TRIVIAL)

    async def eight() -> float:
        started = time.perf_counter()
        await asyncio.gather(*(caged() for _ in range(8)))
        return time.perf_counter() - started

    started = time.perf_counter()
    await caged()
    first_light = time.perf_counter() - started
    heavy = calling(cage, HEAVY)
    first_heavy = await heavy()
    ways: dict[str, Callable[[], Awaitable[float]]] = {
        "fork of an equal process": fork,
        "plain python -I -S": spawn,
        "call without a cage": calling(plain, TRIVIAL),
        "caged trivial call": caged,
        "caged get_now": calling(cage, now),
        "caged call with trafilatura": heavy,
        "eight caged calls at once": eight,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            times[name].append(await way() * 1000)
    weights = [resident(pid) for pid in cage.zygote_pids]
    cage.close()
    equal.stdin.close()
    equal.wait()
    equal.stdout.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    over = medians["caged trivial call"] - medians["fork of an equal process"]
    return {
        "rounds": rounds,
        "load": os.getloadavg()[0],
        "cage": str(cage_status()),
        "median_ms": {name: round(value, 2) for name, value in medians.items()},
        "least_ms": {name: round(min(values), 2) for name, values in times.items()},
        "over_the_fork_ms": round(over, 2),
        "first_call_light_ms": round(first_light * 1000, 1),
        "first_call_heavy_ms": round(first_heavy * 1000, 1),
        "zygotes_mb": weights,
    }


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0
