"""Keeps one foreign program: starts it with the arguments that follow and ends with it, or ends
it and all of its group when the engine goes away. Standard library alone; run by `python -I -S`.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys


def main(engine: int, argv: list[str]) -> int:
    """The exit code of the program, 127 when it cannot be started. The process must lead its own
    group."""

    def end(*_: object) -> None:
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGTERM, end)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != engine:
        return 1
    try:
        child = os.posix_spawn(argv[0], argv, os.environ, setsigdef=[signal.SIGTERM])
    except OSError:
        return 127
    # Its pipes are the program's alone: the engine must see their end when it ends.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
