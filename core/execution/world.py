"""What the world is like compared with what a preview recorded of it. Only looks.

States are those that previews write: `{path, exists}` and, of what exists, some of `kind`,
`size`, `modified`, `id` and `sha256`. Paths were canonical when they were recorded; links are not
followed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import stat
from collections.abc import Mapping
from typing import Any

_BLOCK = 1 << 20


def is_as(state: Mapping[str, Any]) -> bool:
    """Whether a path is now as `state` says. Reads the file when the state holds its SHA-256;
    without one, size and time of change decide, and the identity on the same disk.

    A folder is itself whatever came into it. What cannot be looked at is not as it was.
    """
    info = _look(str(state.get("path", "")))
    if not state.get("exists"):
        return info is None
    if info is None or state.get("kind", _kind(info)) != _kind(info):
        return False
    if not stat.S_ISDIR(info.st_mode) and state.get("size", info.st_size) != info.st_size:
        return False
    digest = state.get("sha256")
    if digest:
        return stat.S_ISREG(info.st_mode) and _sha256(str(state["path"])) == digest
    if not stat.S_ISDIR(info.st_mode) and state.get("modified", "") not in ("", _moment(info)):
        return False
    return _is_same_thing(str(state.get("id") or ""), info)


def is_there(path: str) -> bool:
    return _look(path) is not None


def state_now(path: str) -> dict[str, Any]:
    """The path as a preview would record it, without a digest."""
    info = _look(path)
    if info is None:
        return {"path": path, "exists": False}
    return {
        "path": path,
        "exists": True,
        "kind": _kind(info),
        "size": info.st_size,
        "modified": _moment(info),
        "id": f"{info.st_dev}:{info.st_ino}",
    }


def _look(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _is_same_thing(identity: str, info: os.stat_result) -> bool:
    """A move to another disk makes another thing of the same content."""
    device, _, number = identity.partition(":")
    return not identity or device != str(info.st_dev) or number == str(info.st_ino)


def _kind(info: os.stat_result) -> str:
    if stat.S_ISREG(info.st_mode):
        return "file"
    if stat.S_ISDIR(info.st_mode):
        return "dir"
    return "link" if stat.S_ISLNK(info.st_mode) else "other"


def _moment(info: os.stat_result) -> str | None:
    try:
        return dt.datetime.fromtimestamp(int(info.st_mtime), dt.UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def _sha256(path: str) -> str | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    digest = hashlib.sha256()
    try:
        while block := os.read(fd, _BLOCK):
            digest.update(block)
    except OSError:
        return None
    finally:
        os.close(fd)
    return digest.hexdigest()
