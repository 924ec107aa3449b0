"""A second wall around executors that start programs: namespaces of their own, by bubblewrap.

Programs cannot be told what Python is told, so such a call sees no machine but a small one: the
system's programs, the interpreter, its packages and its own files; no network, no other process.
The cage is closed inside, with starting programs allowed (see `inside`).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.execution.cage.child import run_child
from core.execution.cage.confine import ALSO_READ
from core.execution.cage.frame import build_plain
from core.execution.cage.landlock import open_without_links
from core.execution.cage.scope import KernelScope, forbidden_places
from core.execution.cage.streams import Outcome

MISSING = (
    "it starts programs, which takes bubblewrap: install the package bubblewrap (command bwrap) "
    "and start Metnos again"
)
TMP_BYTES = 64 * 1024 * 1024
MOST_PROCESSES = 128
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_PROBE_S = 10.0
_HIDES_FILE = "/dev/null"


class BubbleFailed(Exception):
    """bubblewrap could not make its namespaces; the text is its own."""


@lru_cache(maxsize=8)
def find_bubblewrap(python: str = sys.executable) -> str | None:
    """The path of a `bwrap` that works here, or None; tried once by really running it."""
    found = shutil.which("bwrap")
    if found is None:
        return None
    argv = [*arguments(found, read=interpreter_paths(python)), os.path.realpath(python)]
    try:
        done = subprocess.run(
            [*argv, "-I", "-S", "-c", "import os; raise SystemExit(os.getpid() != 1)"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd="/",
            env={},
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found if done.returncode == 0 else None


def interpreter_paths(python: str) -> tuple[str, ...]:
    """What the interpreter and its standard library need, beyond the system's own folders."""
    binary = os.path.realpath(python)
    library = Path(binary).parent.parent / "lib"
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}  # not the environment's
    paths = sysconfig.get_paths(vars=base)
    known = (paths["stdlib"], paths["platstdlib"], str(library))
    wanted = [binary, *map(os.path.realpath, known)]
    return tuple(p for p in dict.fromkeys(wanted) if not _below_any(p, _SYSTEM))


def arguments(
    bwrap: str,
    *,
    read: Iterable[str] = (),
    write: Iterable[str] = (),
    hidden: Iterable[str] = (),
) -> list[str]:
    """The command that puts what follows it into namespaces of its own, as their first process.

    `read`, `write`: absolute canonical paths it sees under their own names, a path above another
    first. `hidden`: places inside them that stay empty. A path that is not there is left out.
    """
    argv = [bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1"]
    argv += ["--cap-drop", "ALL", "--clearenv", "--setenv", "LANG", "C.UTF-8"]
    argv += ["--setenv", "PATH", "/usr/bin:/bin"]
    for path in _SYSTEM:
        if os.path.islink(path):  # noqa: PTH114 - decided on strings, as everything here
            argv += ["--symlink", os.readlink(path), path]  # noqa: PTH115
        elif os.path.isdir(path):  # noqa: PTH112
            argv += ["--ro-bind", path, path]
    for path in (*ALSO_READ, "/etc/alternatives"):
        if not _below_any(path, _SYSTEM):
            argv += ["--ro-bind-try", path, path]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    argv += ["--size", str(TMP_BYTES), "--tmpfs", "/tmp"]  # noqa: S108 - the call's own
    kinds = {**dict.fromkeys(read, "--ro-bind-try"), **dict.fromkeys(write, "--bind-try")}
    for path in sorted(kinds):
        argv += [kinds[path], path, path]
    for path in sorted(set(hidden)):
        if os.path.isdir(path):  # noqa: PTH112
            argv += ["--tmpfs", path, "--remount-ro", path]
        else:
            argv += ["--ro-bind", _HIDES_FILE, path]
    return [*argv, "--chdir", "/", "--"]


async def run_in_bubble(
    bwrap: str,
    python: Sequence[str],
    frame: Mapping[str, Any],
    sdk_files: Mapping[str, bytes],
    *,
    scope: KernelScope,
    call: Mapping[str, Any],
    site_dirs: Sequence[str],
    broker: int | None,
    **bounds: Any,
) -> Outcome:
    """Run a call's frame in a process of its own behind both walls; `python`: the interpreter and
    its arguments. Raises `OSError` when no process can be had, `BubbleFailed` when bubblewrap
    cannot put it there."""
    command, programs = await asyncio.to_thread(_prepare, bwrap, python, scope, call, site_dirs)
    more = {
        "identities": {path: _identity(path) for path in (*scope.read, *scope.write)},
        "broker_fd": broker,
        "programs": programs,
        "limits": {**frame["limits"], "RLIMIT_NPROC": MOST_PROCESSES},
    }
    build = _builder({**frame, **more}, sdk_files)
    outcome = await run_child(command, build, broker_fd=broker, inner=True, **bounds)
    if not outcome.begun and outcome.errors.startswith(b"bwrap:"):
        raise BubbleFailed(outcome.errors.decode("utf-8", "replace").strip())
    return outcome


def _prepare(
    bwrap: str,
    python: Sequence[str],
    scope: KernelScope,
    call: Mapping[str, Any],
    site_dirs: Sequence[str],
) -> tuple[list[str], tuple[str, ...]]:
    """The whole command, and the folders that programs may come from."""
    own = interpreter_paths(python[0])
    programs = tuple(dict.fromkeys(os.path.realpath(path) for path in (*_SYSTEM, *own)))
    read = (*own, *site_dirs, *scope.read)
    hidden = forbidden_places(call, (*programs, *read, *scope.write))
    argv = arguments(bwrap, read=read, write=scope.write, hidden=hidden)
    return [*argv, os.path.realpath(python[0]), *python[1:]], programs


def _identity(path: str) -> tuple[int, int] | None:
    """Device and inode of what a path names without a link on the way: bubblewrap would follow one
    that somebody puts there before it binds."""
    try:
        fd = open_without_links(path)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
    finally:
        os.close(fd)
    return found.st_dev, found.st_ino


def _builder(frame: Mapping[str, Any], sdk_files: Mapping[str, bytes]) -> Callable[[int], bytes]:
    def build(progress_fd: int) -> bytes:
        return build_plain({**frame, "progress_fd": progress_fd}, sdk_files, bubble=True)

    return build


def _below_any(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)
