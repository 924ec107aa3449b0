"""Executors that misbehave: each its own code, in bounded time, nothing left, memory bounded."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from core.errors import ErrorCode
from core.observation import Effects
from tests.cage.conftest import Room

MIB = 1024 * 1024


@dataclass(frozen=True)
class Case:
    name: str
    code: str
    expected: ErrorCode
    about: dict[str, Any] = field(default_factory=dict)


def says(text: str) -> str:
    """An executor that writes raw bytes to its output and leaves."""
    return f"import os\ndef run(call):\n    os.write(1, {text})\n    os._exit(0)\n"


SHORT = {"timeout_s": 1.0}
CASES = [
    Case(
        "hangs",
        """
        import time

        def run(c):
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "spins",
        """
        def run(c):
            while True:
                pass
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "uses_up_processor_time",
        """
        def run(c):
            while True:
                pass
        """,
        ErrorCode.RESOURCE_LIMIT,
        {"cpu_s": 1},
    ),
    Case(
        "ignores_every_signal",
        """
        import signal, time

        def run(c):
            for n in range(1, 65):
                try:
                    signal.signal(n, 1)
                except (OSError, ValueError):
                    pass
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "floods_output",
        """
        import os

        def run(c):
            while True:
                os.write(1, b'x' * 65536)
        """,
        ErrorCode.OUTPUT_TOO_LARGE,
    ),
    Case(
        "prints_without_end",
        """
        def run(c):
            while True:
                print('x' * 9999)
        """,
        ErrorCode.OUTPUT_TOO_LARGE,
    ),
    Case(
        "floods_errors",
        """
        import os

        def run(c):
            while True:
                os.write(2, b'x' * 65536)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "floods_progress",
        """
        import os

        def run(c):
            for f in range(3, 40):
                try:
                    os.set_blocking(f, True)
                except OSError:
                    pass
            while True:
                for f in range(3, 40):
                    try:
                        os.write(f, b'1 2\\n' * 9999)
                    except OSError:
                        pass
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "returns_too_much",
        "def run(c): return {'ok': True, 'content': 'x' * 2_000_000}",
        ErrorCode.OUTPUT_TOO_LARGE,
    ),
    Case(
        "eats_memory",
        "def run(c): return {'ok': True, 'content': len(bytearray(10**10))}",
        ErrorCode.RESOURCE_LIMIT,
    ),
    Case(
        "eats_memory_slowly",
        """
        def run(c):
            a = []
            while True:
                a.append(bytes(100000))
        """,
        ErrorCode.RESOURCE_LIMIT,
    ),
    Case(
        "writes_a_huge_file",
        """
        import os

        def run(c):
            f = os.memfd_create('x')
            while True:
                os.write(f, b'x' * 65536)
        """,
        ErrorCode.RESOURCE_LIMIT,
    ),
    Case(
        "opens_files_without_end",
        """
        import os

        def run(c):
            while True:
                os.open('/dev/null', 0)
        """,
        ErrorCode.RESOURCE_LIMIT,
    ),
    Case(
        "forks_a_lot",
        """
        import os, time

        def run(c):
            for _ in range(60):
                if os.fork() == 0:
                    time.sleep(60)
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "forks_into_sessions",
        """
        import os, time

        def run(c):
            for _ in range(5):
                os.fork()
                if os.getpgrp() != os.getpid():
                    os.setsid()
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "leaves_a_daemon_holding_output",
        """
        import os, time

        def run(c):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(60)
                os._exit(0)
            os._exit(0)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "daemon_then_hangs",
        """
        import os, time

        def run(c):
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
                os.setsid()
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "kills_its_keeper",
        """
        import os, time

        def run(c):
            os.kill(os.getppid(), 9)
            time.sleep(60)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "kills_its_keeper_after_a_daemon",
        """
        import os, time
        def run(c):
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
                time.sleep(60)
            time.sleep(0.1)
            os.kill(os.getppid(), 9)
            time.sleep(60)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "stops_its_keeper",
        "import os, time\ndef run(c):\n os.kill(os.getppid(), 19)\n time.sleep(60)",
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "asks_its_keeper_to_end",
        """
        import os, time

        def run(c):
            os.kill(os.getppid(), 15)
            time.sleep(60)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "kills_itself",
        """
        import os

        def run(c):
            os.kill(os.getpid(), 9)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "stops_itself",
        """
        import os

        def run(c):
            os.kill(os.getpid(), 19)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "segfaults",
        """
        import ctypes

        def run(c):
            ctypes.string_at(1)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "aborts",
        """
        import os

        def run(c):
            os.abort()
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "exits_quietly",
        """
        import os

        def run(c):
            os._exit(0)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "exits_loudly",
        """
        import os

        def run(c):
            os._exit(77)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "sys_exit",
        """
        import sys

        def run(c):
            sys.exit(0)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "ok_but_exit_1",
        """
        import os

        def run(c):
            os.write(1, b'{"ok":true}')
            os._exit(1)
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case("recurses", "def run(c): return run(c)", ErrorCode.EXECUTOR_CRASHED),
    Case("raises", "def run(c): raise KeyError('x')", ErrorCode.EXECUTOR_CRASHED),
    Case("raises_interrupt", "def run(c): raise KeyboardInterrupt", ErrorCode.EXECUTOR_CRASHED),
    Case(
        "raises_unprintable",
        """
        class E(Exception):

            def __str__(self):
                raise self

        def run(c):
            raise E
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case("has_no_run", "x = 1", ErrorCode.UNSUPPORTED),
    Case("does_not_compile", "def run(:", ErrorCode.EXECUTOR_CRASHED),
    Case("is_no_text", "\0", ErrorCode.EXECUTOR_CRASHED),
    Case("nests_its_source", "x = " + "(" * 5000, ErrorCode.EXECUTOR_CRASHED),
    Case("returns_none", "def run(c): return None", ErrorCode.BAD_OUTPUT),
    Case("returns_list", "def run(c): return []", ErrorCode.BAD_OUTPUT),
    Case("returns_set", "def run(c): return {'ok': True, 'content': {1}}", ErrorCode.BAD_OUTPUT),
    Case(
        "returns_nan",
        "def run(c): return {'ok': True, 'content': float('nan')}",
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "returns_itself",
        """
        def run(c):
            d = {'ok': True}
            d['content'] = d
            return d
        """,
        ErrorCode.BAD_OUTPUT,
    ),
    Case("returns_ok_as_text", "def run(c): return {'ok': 'true'}", ErrorCode.BAD_OUTPUT),
    Case(
        "returns_bad_entries",
        "def run(c): return {'ok': True, 'entries': [1]}",
        ErrorCode.BAD_OUTPUT,
    ),
    Case("returns_failed_without_error", "def run(c): return {'ok': False}", ErrorCode.BAD_OUTPUT),
    Case(
        "returns_unknown_code",
        "def run(c): return {'ok': False, 'error': {'code': 'nope'}}",
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "prints_besides",
        """
        def run(c):
            print('hello')
            return {'ok': True}
        """,
        ErrorCode.BAD_OUTPUT,
    ),
    Case("half_json", says("b'{\"ok\":true,'"), ErrorCode.BAD_OUTPUT),
    Case("no_json", says("b'hello'"), ErrorCode.BAD_OUTPUT),
    Case("two_documents", says('b\'{"ok":true}{"ok":true}\''), ErrorCode.BAD_OUTPUT),
    Case("two_lines", says('b\'{"ok":true}\\n{"ok":true}\\n\''), ErrorCode.BAD_OUTPUT),
    Case(
        "forked_twin",
        """
        import os

        def run(c):
            twin = os.fork()
            if twin:
                os.waitpid(twin, 0)
            return {'ok': True}
        """,
        ErrorCode.BAD_OUTPUT,
    ),
    Case("nan", says('b\'{"ok":true,"content":NaN}\''), ErrorCode.BAD_OUTPUT),
    Case("infinity_by_exponent", says('b\'{"ok":true,"content":1e999}\''), ErrorCode.BAD_OUTPUT),
    Case("duplicate_keys", says('b\'{"ok":true,"ok":false}\''), ErrorCode.BAD_OUTPUT),
    Case(
        "deep_nesting", says("b'{\"ok\":true,\"content\":' + b'[' * 90000"), ErrorCode.BAD_OUTPUT
    ),
    Case(
        "deep_closed_nesting",
        says("b'{\"ok\":true,\"content\":' + b'[' * 90 + b']' * 90 + b'}'"),
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "many_brackets",
        says("b'{\"ok\":true,\"content\":[' + b'[],' * 300000 + b'[]]}'"),
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "many_values",
        says("b'{\"ok\":true,\"content\":[' + b'\"ab\",' * 700000 + b'1]}'"),
        ErrorCode.BAD_OUTPUT,
        {"output_bytes": 4 * MIB},
    ),
    Case(
        "huge_whole_number",
        says("b'{\"ok\":true,\"content\":' + b'9' * 100000 + b'}'"),
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "unsafe_whole_number",
        says('b\'{"ok":true,"content":9007199254740993}\''),
        ErrorCode.BAD_OUTPUT,
    ),
    Case("bad_utf8", says('b\'{"ok":true,"content":"\\xff"}\''), ErrorCode.BAD_OUTPUT),
    Case("lone_surrogate", says('b\'{"ok":true,"content":"\\\\ud800"}\''), ErrorCode.BAD_OUTPUT),
    Case("byte_order_mark", says("b'\\xef\\xbb\\xbf{\"ok\":true}'"), ErrorCode.BAD_OUTPUT),
    Case(
        "closes_output_and_sleeps",
        """
        import os, time

        def run(c):
            os.close(1)
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "answers_and_sleeps",
        """
        import os, time

        def run(c):
            os.write(1, b'{"ok":true}')
            os.close(1)
            time.sleep(60)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "closes_output",
        """
        import os

        def run(c):
            os.close(1)
            return {'ok': True}
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "closes_everything",
        """
        import os

        def run(c):
            os.closerange(0, 256)
            return {'ok': True}
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "drips",
        """
        import os, time

        def run(c):
            while True:
                os.write(1, b' ')
                time.sleep(0.01)
        """,
        ErrorCode.TIMEOUT,
        SHORT,
    ),
    Case(
        "breaks_stdout",
        """
        import sys

        def run(c):
            sys.stdout = 5
            return {'ok': True}
        """,
        ErrorCode.EXECUTOR_CRASHED,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_hostile_executor_gets_its_code_and_leaves_nothing(room: Room, case: Case):
    await room.run("def run(c): return {'ok': True}")
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    started = time.monotonic()

    observation = await room.run(dedent(case.code), **case.about)

    assert observation.error is not None
    assert (observation.error.code, observation.ok) == (case.expected, False)
    assert observation.effects is Effects.NONE
    assert time.monotonic() - started < 8
    assert room.left() == []
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before
    assert memory("VmHWM") - before < 20 * MIB


def memory(field_name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field_name):
            return int(line.split()[1]) * 1024
    raise KeyError(field_name)


FINE = [
    Case(
        "leaves_threads",
        """
        import threading, time

        def run(c):
            for _ in range(5):
                threading.Thread(target=time.sleep, args=(60,)).start()
            return {'ok': True}
        """,
        ErrorCode.INTERNAL,
    ),
    Case(
        "leaves_a_daemon",
        """
        import os, time

        def run(c):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(60)
                os._exit(0)
            return {'ok': True}
        """,
        ErrorCode.INTERNAL,
    ),
    Case(
        "leaves_a_program",
        """
        import subprocess

        def run(c):
            shell = "sleep 60; : " + c.args["token"]
            subprocess.Popen(["/bin/sh", "-c", shell], start_new_session=True)
            return {'ok': True}
        """,
        ErrorCode.INTERNAL,
    ),
    Case(
        "wants_to_know_the_end",
        """
        import atexit

        def run(c):
            atexit.register(lambda: 1 / 0)
            return {'ok': True}
        """,
        ErrorCode.INTERNAL,
    ),
    Case(
        "writes_many_errors",
        """
        import sys

        def run(c):
            sys.stderr.write('x' * 5000000)
            return {'ok': True}
        """,
        ErrorCode.INTERNAL,
    ),
    Case(
        "has_a_broken_file_name",
        "def run(c): return {'ok': True, 'content': 'a\\udcffb'}",
        ErrorCode.INTERNAL,
    ),
]


@pytest.mark.parametrize("case", FINE, ids=lambda case: case.name)
async def test_untidy_executor_that_answers_is_answered_and_leaves_nothing(room: Room, case: Case):
    started = time.monotonic()

    observation = await room.run(dedent(case.code), {"token": room.token})

    assert observation.ok, observation.error
    assert time.monotonic() - started < 5
    assert room.left() == []


async def test_large_arguments_that_nobody_reads_do_not_block(room: Room):
    observation = await room.run(
        "def run(c): return {'ok': True, 'content': len(c.args['text'])}",
        {"text": "é" * 4_000_000},
    )

    assert observation.content == 4_000_000


@pytest.mark.parametrize(
    ("code", "effects"),
    [
        (
            """
        import time

        def run(c):
            time.sleep(60)
        """,
            Effects.UNKNOWN,
        ),
        ("def run(c): raise KeyError", Effects.UNKNOWN),
        ("def run(c): return {'ok': True, 'content': float('inf')}", Effects.UNKNOWN),
        (
            """
        import os

        def run(c):
            os._exit(3)
        """,
            Effects.UNKNOWN,
        ),
        ("def run(c): open('/nonexistent/x')", Effects.UNKNOWN),
        (
            """
        from executors._sdk.result import Failure

        def run(c):
            raise Failure('not_found')
        """,
            Effects.NONE,
        ),
        ("def run(c): return {'ok': True}", Effects.DONE),
        ("def run(c): return {'ok': True, 'entries': []}", Effects.NONE),
        ("def run(c): return {'ok': True, 'entries': [{'ok': False}, {}]}", Effects.DONE),
        ("def run(c): return {'ok': True, 'metadata': {'effects': 'none'}}", Effects.NONE),
    ],
)
async def test_mutating_executor_says_what_it_may_have_left(
    room: Room, code: str, effects: Effects
):
    seconds = 1.0 if "sleep" in code else 10.0
    observation = await room.run(dedent(code), is_mutating=True, timeout_s=seconds)

    assert observation.effects is effects
