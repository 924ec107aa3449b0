"""Whether this machine can cage a call, for `doctor` and for the refusal a person sees."""

from __future__ import annotations

import marshal
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from core.execution.cage.child import ENVIRONMENT
from core.execution.cage.frame import LOADER, build_probe
from core.execution.cage.streams import sealed

_PROBE_S = 20.0
NOT_LINUX = "this is no Linux system"


class Isolation(StrEnum):
    """What stands between a call and this machine."""

    ACTIVE = "active"  # the kernel closes it in
    MISSING = "missing"  # the kernel cannot: calls are refused
    OFF = "off"  # nothing, the host wants it so


@dataclass(frozen=True, slots=True)
class CageStatus:
    """What this machine gives. `landlock_abi`: 0 for none. `reasons`: why calls are refused, in
    English; empty when they run."""

    available: bool
    landlock_abi: int
    seccomp: bool
    reasons: tuple[str, ...]


def cage_status(python: Path = Path(sys.executable)) -> CageStatus:
    """Try the cage's walls in a process of its own; takes the time of one interpreter's start.

    Never raises: what cannot be tried is a reason.
    """
    if platform.system() != "Linux":
        return CageStatus(False, 0, False, (NOT_LINUX,))
    memory = sealed(build_probe())
    try:
        done = subprocess.run(
            (str(python), "-I", "-S", "-c", LOADER),
            stdin=memory,
            capture_output=True,
            cwd="/",
            env=ENVIRONMENT,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return CageStatus(False, 0, False, (f"no process could be started: {type(exc).__name__}",))
    finally:
        os.close(memory)
    if done.returncode != 0 or not done.stdout:
        return CageStatus(False, 0, False, (f"the probe ended with {done.returncode}",))
    return read_status(done.stdout)


def read_status(message: bytes) -> CageStatus:
    """What a probe or a zygote said of its walls."""
    found = marshal.loads(message)  # noqa: S302 - our own code, before any executor's
    reasons = list(found["reasons"])
    if found.get("threads", 1) != 1:
        reasons.append("the zygote has threads")
    return CageStatus(not reasons, found["landlock"], found["seccomp"], tuple(reasons))
