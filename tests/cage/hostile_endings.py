"""Executors that end in the wrong way, or in the right way and leave things behind."""

from __future__ import annotations

from core.errors import ErrorCode
from tests.cage.hostile_processes import SHORT, Case

ENDINGS = [
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
# These answer, and are answered.
UNTIDY = [
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
            between = os.fork()
            if between == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(60)
                os._exit(0)
            os.waitpid(between, 0)
            return {'ok': True}
        """,
        ErrorCode.INTERNAL,
        caged=ErrorCode.PERMISSION_DENIED,
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
        caged=ErrorCode.PERMISSION_DENIED,
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
