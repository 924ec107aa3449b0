"""What is handed to a process of the cage: verified bytes as modules, the call, limits, the fence.

Each is one `marshal` document (the child runs the same interpreter), so that the child needs no
parser. Sources are compiled once here and cached by their bytes; compiling runs nothing. The
cage's own modules travel the same way, under their own names, which are forgotten before any
executor could import them.
"""

from __future__ import annotations

import ast
import marshal
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.abc import InspectLoader
from pathlib import PurePosixPath
from types import CodeType
from typing import Any, Protocol

from core.execution.cage.packages import Packages

_PACKAGE = "core.execution.cage"
_PLAIN_PARTS = ("syscalls", "worker", "fence", "keeper")
_PROBE_PARTS = ("syscalls", "seccomp", "landlock", "worker", "fence", "confine", "probe")
_ZYGOTE_PARTS = (*_PROBE_PARTS, "zygote")
_BUBBLE_PARTS = (
    "syscalls",
    "seccomp",
    "landlock",
    "worker",
    "fence",
    "confine",
    "keeper",
    "inside",
)

LOADER = f"""
import marshal, posix, sys
made = type(sys)
parts, frame = marshal.loads(posix.read(0, posix.fstat(0).st_size))
above = ["core", "core.execution", "{_PACKAGE}"]
for name in above:
    sys.modules[name] = made(name)
    sys.modules[name].__path__ = []
for name, code in parts:
    module = sys.modules["{_PACKAGE}." + name] = made("{_PACKAGE}." + name)
    setattr(sys.modules["{_PACKAGE}"], name, module)
    exec(code, module.__dict__)
for name in [name for name in sys.modules if name.partition(".")[0] == "core"]:
    del sys.modules[name]
module.main(frame)
"""
_ROOT = "executors"
_SDK = f"{_ROOT}._sdk"
# What at least ten of the shipped programs import (`tests/cage/test_zygotes.py` counts). The rest
# is imported by the calls that use it: it brings packages, or much code, that others need not
# carry.
FOR_MOST = tuple(
    f"{_SDK}.{name}"
    for name in """
    beneath call encodings fields files http net result trash values walking writing
    """.split()
)
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
    call: Mapping[str, Any],
    *,
    packages: Packages,
    limits: Limits,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """What one call needs, but for `_sdk`, which is the same for all. `more`: how it is closed
    in."""
    modules: dict[str, Module] = {f"{_ROOT}.{name}": (True, b"", False)}
    data: dict[str, bytes] = {}
    for path, body in files.items():
        _place(modules, data, name, path, body)
    return {
        "main": f"{_ROOT}.{name}.main",
        "modules": modules,
        "data": data,
        "call": dict(call),
        "packages": tuple(packages.names),
        "site_dirs": packages.site_dirs,
        "limits": kernel_limits(limits),
        **more,
    }


def build_plain(
    frame: Mapping[str, Any], sdk_files: Mapping[str, bytes], *, bubble: bool = False
) -> bytes:
    """The bytes that a process of its own reads from its standard input; `bubble`: one that closes
    the cage around itself. Raises `ValueError` when the call holds something that is no JSON
    value."""
    modules, data = build_sdk(sdk_files)
    whole = {
        **frame,
        "engine_pid": os.getpid(),
        "modules": {**modules, **frame["modules"]},
        "data": {**data, **frame["data"]},
    }
    return marshal.dumps((_parts(_BUBBLE_PARTS if bubble else _PLAIN_PARTS), whole))


def build_boot(
    sdk_files: Mapping[str, bytes],
    *,
    packages: Packages,
    preload: Sequence[str],
    control_fd: int,
    idle_s: float,
) -> bytes:
    """The bytes that a zygote reads from its standard input when it starts."""
    modules, data = build_sdk(sdk_files)
    boot = {
        "control_fd": control_fd,
        "sdk_modules": modules,
        "sdk_data": data,
        "site_dirs": packages.site_dirs,
        "preload": [*preload, *(name for name in FOR_MOST if name in modules)],
        "idle_s": idle_s,
    }
    return marshal.dumps((_parts(_ZYGOTE_PARTS), boot))


def build_probe() -> bytes:
    """The bytes that a probe reads from its standard input."""
    return marshal.dumps((_parts(_PROBE_PARTS), {}))


def build_sdk(sdk_files: Mapping[str, bytes]) -> tuple[dict[str, Module], dict[str, bytes]]:
    """The verified `_sdk` as modules and as files that are no code."""
    modules: dict[str, Module] = {_ROOT: (True, b"", False)}
    data: dict[str, bytes] = {}
    for path, body in sdk_files.items():
        _place(modules, data, "_sdk", path, body)
    return modules, data


@lru_cache(maxsize=256)
def imports_of(source: bytes) -> tuple[str, ...]:
    """The modules a program imports, anywhere in it, by their absolute names; none when it does
    not compile."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found[node.module] = None
    return tuple(found)


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


@lru_cache(maxsize=4)
def _parts(names: tuple[str, ...]) -> tuple[tuple[str, CodeType], ...]:
    """Modules of this package as code, in the order in which they import each other."""
    return tuple((name, _own_code(f"{_PACKAGE}.{name}")) for name in names)


def _own_code(name: str) -> CodeType:
    spec = import_module(name).__spec__
    if spec is None or not isinstance(spec.loader, InspectLoader):
        raise RuntimeError(f"{name} has no code to hand over")
    code = spec.loader.get_code(name)
    if code is None:
        raise RuntimeError(f"{name} has no code to hand over")
    return code
