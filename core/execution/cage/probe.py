"""Whether a cage would hold on this machine: one is closed around a fork, and its walls are tried.

Runs inside the cage's processes, at the start of a zygote, and by itself for `doctor`.
"""

from __future__ import annotations

import marshal
import os

from core.execution.cage import confine, landlock, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(frame: dict[str, Any]) -> None:
    """Write what was found to standard output, as `marshal`."""
    os.write(1, marshal.dumps(probe()))


def probe() -> dict[str, Any]:
    """Close a cage around a fork and try its walls: `landlock` (ABI), `seccomp`, `reasons`.

    `reasons` is empty when everything holds. Takes a few milliseconds and leaves nothing.
    """
    kernel = syscalls.Kernel()
    found: dict[str, Any] = {"landlock": landlock.abi(kernel), "seccomp": False, "reasons": []}
    try:
        confinement = confine.Confinement()
    except OSError as exc:
        found["reasons"].append(str(exc.args[-1]))
        return found
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.dup2(writing, 1)
            os.write(1, _try_walls(confinement))
        finally:
            os._exit(0)
    os.close(writing)
    said = b""
    while piece := os.read(reading, 4096):
        said += piece
    os.close(reading)
    os.waitpid(child, 0)
    confinement.close()
    found["seccomp"] = b"seccomp" not in said and b"done" in said
    found["reasons"] = [line for line in said.decode().split("\n") if line and line != "done"]
    if b"done" not in said:
        found["reasons"].append("the cage could not be closed")
    return found


def _try_walls(confinement: confine.Confinement) -> bytes:
    try:
        confinement.apply({}, first_free_fd=3)
    except OSError as exc:
        return f"{exc.strerror or exc}\n".encode()
    problems = b""
    try:
        os.close(os.open("/", os.O_RDONLY | os.O_DIRECTORY))
        problems += b"landlock does not close files\n"
    except OSError:
        pass
    try:
        # Anybody may set the priority that they have; only the filter refuses it.
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0))
        problems += b"seccomp does not refuse calls\n"
    except OSError:
        pass
    return problems + b"done\n"
