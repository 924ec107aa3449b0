"""Executors that hang, flood, eat, fork and fight the process that keeps them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from core.errors import ErrorCode


@dataclass(frozen=True)
class Case:
    """`expected` of a plain process; `caged` where the cage ends it earlier."""

    name: str
    code: str
    expected: ErrorCode
    about: dict[str, Any] = field(default_factory=dict)
    caged: ErrorCode | None = None


SHORT = {"timeout_s": 1.0}
PROCESSES = [
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
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
    ),
    Case(
        "stops_its_keeper",
        "import os, time\ndef run(c):\n os.kill(os.getppid(), 19)\n time.sleep(60)",
        ErrorCode.TIMEOUT,
        SHORT,
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
    ),
]
