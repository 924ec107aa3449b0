"""The key that locks what people entrust: its file, and nothing of what it locks.

    private/keys/secrets.key        keys as hexadecimal text, one a line, the newest first

Made by setup, or by whatever needs it first. It stands outside the database: a copy of the
database alone opens nothing, and a lost key means that credentials must be entered again. More
than one line is a rotation under way (`core.store.credentials.rotate`).
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Sequence
from pathlib import Path

from core.catalog.files import create_private, write_private
from core.errors import KeyUnusable

KEY_FILE = "secrets.key"
KEY_BYTES = 32
_MOST_BYTES = 4096


def key_path(private_dir: Path) -> Path:
    return private_dir / "keys" / KEY_FILE


def load_or_create(private_dir: Path) -> tuple[bytes, ...]:
    """The keys, newest first; one is made when there is no file. Two processes at once get the
    same. Raises `KeyUnusable`."""
    path = key_path(private_dir)
    if not os.path.lexists(path):
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_private(path, _written([secrets.token_bytes(KEY_BYTES)]))
        except OSError as exc:
            raise KeyUnusable(f"{KEY_FILE} cannot be made ({exc.strerror})") from exc
    return load(private_dir)


def load(private_dir: Path) -> tuple[bytes, ...]:
    """The keys, newest first. Raises `KeyUnusable` when the file is missing, is not the owner's
    alone, or holds no keys."""
    path = key_path(private_dir)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            info = os.fstat(descriptor)
            if not stat.S_ISREG(info.st_mode) or info.st_uid not in {0, os.geteuid()}:
                raise KeyUnusable(f"{KEY_FILE} is not a file of yours")
            if info.st_mode & 0o077:
                raise KeyUnusable(f"{KEY_FILE} is open to others; chmod 600 it")
            lines = os.read(descriptor, _MOST_BYTES).decode("ascii").split()
        finally:
            os.close(descriptor)
        keys = tuple(bytes.fromhex(line) for line in lines)
    except OSError as exc:
        raise KeyUnusable(f"{KEY_FILE} cannot be read ({exc.strerror})") from exc
    except ValueError as exc:
        raise KeyUnusable(f"{KEY_FILE} holds no key") from exc
    if not keys or any(len(key) != KEY_BYTES for key in keys):
        raise KeyUnusable(f"{KEY_FILE} holds no key")
    return keys


def replace_keys(private_dir: Path, keys: Sequence[bytes]) -> None:
    """Put these keys, newest first, in the place of the file as a whole."""
    try:
        write_private(key_path(private_dir), _written(keys))
    except OSError as exc:
        raise KeyUnusable(f"{KEY_FILE} cannot be written ({exc.strerror})") from exc


def new_key() -> bytes:
    return secrets.token_bytes(KEY_BYTES)


def _written(keys: Sequence[bytes]) -> bytes:
    return "".join(f"{key.hex()}\n" for key in keys).encode("ascii")
