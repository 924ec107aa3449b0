"""Where files go that people send, and under which name: a folder of their own in the workspace.

A name is what somebody else wrote: it names no folder, hides nothing and overwrites nothing. What
comes is written beside its place and put there whole. Knows no channel.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import filecmp
import os
import re
import shutil
import time
import unicodedata
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from core.clock import new_token
from core.config import Settings
from core.errors import CallRefused, ErrorCode
from core.execution.paths import Scope, scope_for
from core.i18n import Texts
from core.messages import Actor, Role

# Left free on the disk whatever is sent.
KEPT_FREE_BYTES = 256 << 20
_MOST_NAME_BYTES = 150
_MOST_ENDING = 16
_WRITE_BYTES = 1 << 20
_PART = re.compile(r"\.metnos-[\w-]+\.part")
_OLD_PART_S = 24 * 3600.0
_MOST_ALIKE = 1000
_NAMELESS = "file"
# What file systems or patterns take for something else.
_SIGNS = str.maketrans(dict.fromkeys('*?<>|":', "_"))


@dataclass(frozen=True, slots=True)
class Received:
    """A file that lies in its sender's workspace."""

    path: str
    name: str
    bytes: int


def safe_name(name: str) -> str:
    """What a file may be called whose sender calls it `name`: one visible part of a path, at most
    150 bytes, with its ending kept."""
    text = unicodedata.normalize("NFC", name.replace("\\", "/").rsplit("/", 1)[-1])
    text = "".join(
        c for c in text if unicodedata.category(c)[0] != "C" and c not in "\u2028\u2029"
    )
    text = " ".join(text.translate(_SIGNS).split()).lstrip(".~- ").rstrip(". ")
    stem, dot, ending = text.rpartition(".")
    if not dot or len(ending) > _MOST_ENDING or " " in ending:
        stem, ending = text, ""
    room = _MOST_NAME_BYTES - len(f".{ending}".encode())
    while len(stem.encode()) > room:
        stem = stem[:-1]
    stem = stem.rstrip(". ") or _NAMELESS
    return f"{stem}.{ending}" if ending else stem


class Incoming:
    """Saves what people send, in a folder of the host's first root or of a guest's workspace."""

    def __init__(self, settings: Settings, texts: Texts) -> None:
        self._settings = settings
        self._folder = inbox_folder(settings, texts)

    async def save(
        self, actor: Actor, name: str, chunks: AsyncIterator[bytes], *, most_bytes: int
    ) -> Received:
        """Write a file as it comes and put it in its place. Sent again with the same name and the
        same content it is the file that lies there already.

        Raises `CallRefused`: `too_large` beyond `most_bytes`, `disk_full` where the disk or the
        guest's share is full, `permission_denied` where the folder cannot be used. Then nothing
        is left behind.
        """
        folder = await asyncio.to_thread(self._prepare, actor)
        part = folder / f".metnos-{new_token()}.part"
        try:
            size = await self._write(part, chunks, most_bytes)
            path = await asyncio.to_thread(_place, part, folder, safe_name(name))
        except OSError as exc:
            raise _refusal(exc) from exc
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
        return Received(str(path), path.name, size)

    def _prepare(self, actor: Actor) -> Path:
        scope = scope_for(actor, self._settings)
        folder = inbox_of(scope, self._folder)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            real = os.path.realpath(folder)
            if not scope.holds(real, write=True) or not Path(real).is_dir():
                raise CallRefused(ErrorCode.PERMISSION_DENIED, "the folder leads elsewhere")
            self._check_room(actor, scope, real)
            _clear_parts(real)
        except OSError as exc:
            raise _refusal(exc) from exc
        return Path(real)

    def _check_room(self, actor: Actor, scope: Scope, folder: str) -> None:
        if shutil.disk_usage(folder).free < KEPT_FREE_BYTES:
            raise CallRefused(ErrorCode.DISK_FULL, "the disk is nearly full")
        if actor.role is Role.HOST:
            return
        most = self._settings.metnos_guest_files_mb << 20
        if _size_of(scope.workspace) >= most:
            raise CallRefused(ErrorCode.DISK_FULL, "the guest's share of the disk is full")

    @staticmethod
    async def _write(part: Path, chunks: AsyncIterator[bytes], most_bytes: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle, size, waiting = os.open(part, flags, 0o600), 0, bytearray()
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > most_bytes:
                    raise CallRefused(ErrorCode.TOO_LARGE, "more bytes than were announced")
                waiting += chunk
                if len(waiting) >= _WRITE_BYTES:
                    await asyncio.to_thread(_write_all, handle, bytes(waiting))
                    waiting.clear()
            await asyncio.to_thread(_write_all, handle, bytes(waiting))
            await asyncio.to_thread(os.fsync, handle)
        finally:
            os.close(handle)
        return size


def inbox_folder(settings: Settings, texts: Texts) -> str:
    """What the folder is called: one name for the whole house, in its language."""
    return settings.metnos_inbox_folder or texts.say("given.folder", settings.metnos_lang)


def inbox_of(scope: Scope, folder: str) -> Path:
    """The folder for what this person sends: in the first of their roots."""
    return Path(scope.roots[0]) / folder


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _place(part: Path, folder: Path, name: str) -> Path:
    """Give a whole file its name, or the next free one; nothing that is there is replaced."""
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, f".{ending}") if dot else (name, "")
    for number in range(1, _MOST_ALIKE):
        path = folder / (name if number == 1 else f"{stem} ({number}){ending}")
        try:
            # Unlike a rename it fails where something is.
            os.link(part, path, follow_symlinks=False)
        except FileExistsError:
            if path.is_file() and not path.is_symlink() and filecmp.cmp(part, path, shallow=False):
                return path
            continue
        except PermissionError:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            part.replace(path)
        return path
    raise CallRefused(ErrorCode.TOO_MANY, "too many files of that name")


def _refusal(exc: OSError) -> CallRefused:
    if exc.errno in {errno.ENOSPC, errno.EDQUOT}:
        return CallRefused(ErrorCode.DISK_FULL, "no space left")
    return CallRefused(ErrorCode.PERMISSION_DENIED, f"not written: {exc.strerror}")


def _clear_parts(folder: str) -> None:
    """Take away what a crash left half written."""
    old = time.time() - _OLD_PART_S
    with os.scandir(folder) as entries:
        for entry in entries:
            if _PART.fullmatch(entry.name) and entry.stat(follow_symlinks=False).st_mtime < old:
                Path(entry.path).unlink()


def _size_of(tree: str) -> int:
    total = 0
    for folder, _, names in os.walk(tree):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(folder) / name).lstat().st_size
    return total
