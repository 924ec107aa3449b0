"""Processes that tests start: every one is ended and reaped when its test is over, also a failed
one (the fixture `reaped` of tests/conftest.py)."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

METNOS = [sys.executable, "-m", "bot"]
PATIENCE_S = 60.0
"""How long a test waits for what must come: an upper bound for a busy machine, never a measure."""

_started: list[subprocess.Popen[Any]] = []


def start(argv: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """`subprocess.Popen`, ended with the test at the latest."""
    process = subprocess.Popen(argv, **options)
    _started.append(process)
    return process


def end_all() -> None:
    """Kill what still runs of what `start` started, wait for it and close its pipes."""
    while _started:
        process = _started.pop()
        with suppress(ProcessLookupError):
            process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.wait(PATIENCE_S)


class Typist:
    """A person at a pseudo-terminal in which `metnos chat`, or `argv`, runs."""

    def __init__(self, env: dict[str, str], argv: Sequence[str] = (*METNOS, "chat")) -> None:
        self._master, slave = pty.openpty()
        self.seen, self._read_to = "", 0
        try:
            self.process = start(
                argv,
                stdin=slave,
                stdout=slave,
                stderr=slave,
                env=env,
                start_new_session=True,
                preexec_fn=_take_terminal,
            )
        finally:
            os.close(slave)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, text: str, seconds: float = PATIENCE_S) -> None:
        """Read the screen until this stands there, after what was read before."""
        deadline = time.monotonic() + seconds
        while text not in self.seen[self._read_to :]:
            left = deadline - time.monotonic()
            assert left > 0, f"no {text!r} in {self.seen!r}"
            assert self._read(left), f"it left before {text!r}: {self.seen!r}"
        self._read_to = self.seen.index(text, self._read_to) + len(text)

    def leave(self) -> int:
        """The exit status of the process, which has been told to leave. Reads what it still
        says: a process may wait for its words to be taken."""
        deadline = time.monotonic() + PATIENCE_S
        try:
            while self.process.poll() is None and self._read(0.05):
                assert time.monotonic() < deadline, f"it did not leave: {self.seen!r}"
            while select.select([self._master], [], [], 0)[0] and self._read(0):
                pass
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait(PATIENCE_S)
            os.close(self._master)

    def _read(self, seconds: float) -> bool:
        """Take what comes within some seconds. Whether the other side is still open."""
        if select.select([self._master], [], [], seconds)[0]:
            try:
                taken = os.read(self._master, 65536)
            except OSError:  # how Linux says that nobody holds the other side
                return False
            self.seen += taken.decode(errors="replace")
            return bool(taken)
        return True


def wait_for(test: Any, seconds: float = PATIENCE_S) -> None:
    """Look again and again until the test holds."""
    deadline = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < deadline, "it did not come to hold"
        time.sleep(0.02)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
