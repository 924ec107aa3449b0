"""What is handed to a child: the verified bytes as modules, the call, limits and the fence.

The frame is one `marshal` document (the child runs the same interpreter), so that the child needs
no parser. Sources are compiled once here and cached by their bytes; compiling runs nothing.
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Mapping
from functools import lru_cache
from importlib.abc import InspectLoader
from pathlib import PurePosixPath
from types import CodeType, ModuleType
from typing import Any, Protocol

from core.execution.cage import bootstrap, fence
from core.execution.cage.packages import Packages

LOADER = (
    "import marshal,posix;"
    "c,f=marshal.loads(posix.read(0,posix.fstat(0).st_size));"
    'g={"__name__":"metnos_cage"};exec(c,g);g["main"](f)'
)
_ROOT = "executors"
Module = tuple[bool, bytes, bool]


class Limits(Protocol):
    """The part of a manifest's limits that the kernel is asked to keep."""

    @property
    def memory_mb(self) -> int: ...
    @property
    def cpu_s(self) -> int: ...
    @property
    def file_mb(self) -> int: ...


def build_frame(
    name: str,
    files: Mapping[str, bytes],
    sdk_files: Mapping[str, bytes],
    call: Mapping[str, Any],
    *,
    packages: Packages,
    limits: Limits,
    progress_fd: int,
    broker_fd: int | None = None,
) -> bytes:
    """The bytes the child's loader reads from its standard input. Raises `ValueError` when the
    call holds something that is no JSON value. `broker_fd`: the child's way out to the network,
    None when it has no right to it."""
    modules: dict[str, Module] = {_ROOT: (True, b"", False), f"{_ROOT}.{name}": (True, b"", False)}
    data: dict[str, bytes] = {}
    for folder, contents in (("_sdk", sdk_files), (name, files)):
        for path, body in contents.items():
            _place(modules, data, folder, path, body)
    frame = {
        "engine_pid": os.getpid(),
        "fence": marshal.dumps(_own_code(fence)),
        "main": f"{_ROOT}.{name}.main",
        "modules": modules,
        "data": data,
        "call": dict(call),
        "packages": tuple(packages.names),
        "site_dirs": packages.site_dirs,
        "limits": kernel_limits(limits),
        "progress_fd": progress_fd,
        "broker_fd": broker_fd,
    }
    return marshal.dumps((_own_code(bootstrap), frame))


def kernel_limits(limits: Limits) -> dict[str, int]:
    """Names of RLIMIT constants and their values, in the kernel's units."""
    mib = 1024 * 1024
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_CPU": max(1, int(limits.cpu_s)),
        "RLIMIT_FSIZE": int(limits.file_mb) * mib,
        "RLIMIT_AS": int(limits.memory_mb) * mib,
    }


def _place(
    modules: dict[str, Module], data: dict[str, bytes], folder: str, path: str, body: bytes
) -> None:
    parts = PurePosixPath(path).with_suffix("").parts
    origin = f"{_ROOT}/{folder}/{path}"
    if not path.endswith(".py") or not all(part.isidentifier() for part in parts):
        data[origin] = bytes(body)
        return
    is_package = parts[-1] == "__init__"
    dotted = ".".join((_ROOT, folder, *(parts[:-1] if is_package else parts)))
    for depth in range(1, len(parts)):
        modules.setdefault(".".join((_ROOT, folder, *parts[:depth])), (True, b"", False))
    modules[dotted] = (is_package, *_compiled(origin, bytes(body)))


@lru_cache(maxsize=512)
def _compiled(origin: str, source: bytes) -> tuple[bytes, bool]:
    """Marshalled code and True; or, for source that does not compile, itself and False: the child
    then fails on it in its own time, with the right line."""
    try:
        code = compile(source, origin, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return source, False
    return marshal.dumps(code), True


@lru_cache(maxsize=2)
def _own_code(module: ModuleType) -> CodeType:
    spec = module.__spec__
    if spec is None or not isinstance(spec.loader, InspectLoader):
        raise RuntimeError(f"{module.__name__} has no code to hand over")
    code = spec.loader.get_code(module.__name__)
    if code is None:
        raise RuntimeError(f"{module.__name__} has no code to hand over")
    return code
