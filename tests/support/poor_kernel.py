"""A kernel that lacks what a cage is made of: its calls are answered ENOSYS by our own filter."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

TREE = Path(__file__).parents[2]


def python_without(missing_part: str, folder: Path) -> Path:
    """An interpreter under a kernel that has no Landlock, or no seccomp (ENOSYS)."""
    missing = (444, 446) if missing_part == "landlock" else (317, 317)
    script = f"""\
    #!{sys.executable}
    import os, sys
    sys.path.insert(0, {str(TREE)!r})
    from core.execution.cage import seccomp, syscalls
    low, high = {missing}
    if os.uname().machine == "aarch64" and low == 317:
        low = high = 277
    kernel = syscalls.Kernel()
    kernel.prctl(38, 1)
    program = [(0x20, 0, 0, 0), (0x35, 0, 2, low), (0x35, 1, 0, high + 1),
               (6, 0, 0, seccomp.NO_SUCH_CALL), (6, 0, 0, seccomp.ALLOW)]
    seccomp.install(kernel, os.uname().machine, seccomp.encode(program))
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
    """
    path = folder / "python"
    path.write_text(dedent(script), encoding="utf-8")
    path.chmod(0o755)
    return path
