"""Which files the kernel opens to one call: from its document and manifest to canonical paths.

Landlock can only open, never take out: where a forbidden place lies inside a folder, the folder's
other children are opened in its stead. Such places are looked for where they stand on a usual
machine (see `forbidden_below`); elsewhere the gate's check of each argument remains.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from core.execution.paths import Scope, is_forbidden

# More than this and the rest of a folder that holds a forbidden place stays closed.
MOST_CHILDREN = 1000
MOST_PATHS = 64
_HIDDEN = (".ssh", ".gnupg", ".aws/credentials")
_SETTINGS = ".config"
_OF_MACHINE = ("/etc", "/dev", "/root", "/boot", "/sys", "/proc", "/etc/ssh")


class Capability(Protocol):
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class KernelScope:
    """Canonical paths: `read` and `write` with all below them, `list` for names alone."""

    read: tuple[str, ...] = ()
    list: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


@dataclass(slots=True)
class _Carved:
    whole: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


def kernel_scope(
    call: Mapping[str, Any],
    capabilities: Sequence[Capability],
    *,
    mutating: bool,
    preview: bool,
) -> KernelScope:
    """What the call may touch.

    `call` may hold, beside what the child is told: `paths` (the canonical paths of its arguments),
    `product_home` and `workspace`. No `fs:` capability: nothing. A call that only reads gets
    exactly its paths when it names any, else all roots. One that changes things gets the roots
    that hold its paths, for writing when it is a mutating executor's and no preview.
    """
    names = {capability.name for capability in capabilities}
    if not any(name.startswith("fs:") for name in names):
        return KernelScope()
    roots = [str(root) for root in call.get("roots") or ()]
    paths = [path for path in call.get("paths") or () if isinstance(path, str)]
    inside = [path for path in paths if any(_holds(root, path) for root in roots)]
    closed = _closed(call)
    if mutating:
        wanted = [root for root in roots if any(_holds(root, path) for path in inside)] or roots
        carved = _carve(wanted, closed)
        if "fs:write" in names and not preview:
            return KernelScope(list=tuple(carved.passed), write=tuple(carved.whole))
        return KernelScope(read=tuple(carved.whole), list=tuple(carved.passed))
    wanted = inside if inside and len(inside) <= MOST_PATHS else roots
    carved = _carve(wanted, closed)
    return KernelScope(read=tuple(carved.whole), list=tuple(carved.passed))


def forbidden_places(call: Mapping[str, Any], folders: Iterable[str]) -> tuple[str, ...]:
    """What lies below these folders and no call may touch, as `forbidden_below` finds it."""
    closed = _closed(call)
    found = [path for folder in dict.fromkeys(folders) for path in forbidden_below(folder, closed)]
    return tuple(dict.fromkeys(found))


def _closed(call: Mapping[str, Any]) -> Scope:
    return Scope(
        tuple(str(root) for root in call.get("roots") or ()),
        str(call.get("home", "")),
        str(call.get("product_home") or "/nonexistent"),
        str(call.get("workspace") or "/nonexistent"),
    )


def _holds(root: str, path: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _carve(wanted: Iterable[str], closed: Scope) -> _Carved:
    carved = _Carved()
    for path in dict.fromkeys(wanted):
        if is_forbidden(path, closed):
            continue
        holes = frozenset(forbidden_below(path, closed))
        if holes:
            _open_children(path, holes, carved)
        else:
            carved.whole.append(path)
    return carved


def _open_children(folder: str, holes: frozenset[str], carved: _Carved) -> None:
    carved.passed.append(folder)
    try:
        with os.scandir(folder) as entries:
            children = sorted(entry.path for entry in entries if not entry.is_symlink())
    except OSError:
        return
    for child in children[:MOST_CHILDREN]:
        if child in holes:
            continue
        if any(_holds(child, hole) for hole in holes):
            _open_children(child, holes, carved)
        else:
            carved.whole.append(child)


def forbidden_below(folder: str, closed: Scope) -> Iterator[str]:
    """Existing places below a folder that no call may touch.

    Found: the product's home, the machine's own (`/etc/passwd`, `/proc` …), and keys and
    credentials in every user's home, in the folder itself and in each folder directly in it. Not
    found: a `.ssh` further down; walking a whole tree at each call would cost more than the call.
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - decided on strings, as `paths` does
        return
    known = [closed.product_home, *_OF_MACHINE]
    for tree in ("/etc", "/dev"):
        if _holds(folder, tree):
            known += [f"{tree}/{name}" for name in _names_in(tree)]
    homes = [home for home in (*_homes(), closed.home) if _holds(folder, home)]
    for place in dict.fromkeys([folder, *homes, *_folders_in(folder)]):
        known += [f"{place.rstrip('/')}/{name}" for name in _HIDDEN]
        settings = f"{place.rstrip('/')}/{_SETTINGS}"
        if os.path.isdir(settings):  # noqa: PTH112
            known += [f"{settings}/{name}/credentials.env" for name in _names_in(settings)]
    for path in dict.fromkeys(known):
        below_folder = path != folder and _holds(folder, path)
        if below_folder and os.path.lexists(path) and is_forbidden(path, closed):
            yield path


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(path.name for path in Path(folder).iterdir())[:MOST_CHILDREN]
    except OSError:
        return []


def _folders_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [e.path for e in entries if e.is_dir(follow_symlinks=False)][:MOST_CHILDREN]
    except OSError:
        return []


@lru_cache(maxsize=1)
def _homes() -> tuple[str, ...]:
    """The homes of the people of this machine; what has none has nothing to hide there."""
    try:
        found = {entry.pw_dir for entry in pwd.getpwall()}
    except OSError:
        return ()
    found = {home for home in found if home.startswith("/") and home.count("/") > 1}
    return tuple(sorted(found | {"/root", str(Path.home())}))
