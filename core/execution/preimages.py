"""What is kept so that changes can be taken back, and its end: the trash of every open folder.

Works by descriptor and follows no link, since the folders are people's own.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import logging
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from core.config import Settings
from core.execution.paths import TRASH, scope_for
from core.store import actors, grants
from core.store.stores import Stores

log = logging.getLogger(__name__)

KEEP = dt.timedelta(days=30)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


async def folders_with_trash(stores: Stores, settings: Settings, now: dt.datetime) -> list[str]:
    """Every folder in which somebody's calls may have put something into the trash, also those of
    people who are gone."""
    async with stores.main.read() as tx:
        scopes = [
            scope_for(actor, settings, await grants.granted_to(tx, actor.id, now))
            for actor in await actors.list_actors(tx)
        ]
    found = [root for scope in scopes for root in scope.roots]
    return list(dict.fromkeys([*found, *_workspaces(settings)]))


def _workspaces(settings: Settings) -> list[str]:
    return [os.path.realpath(path) for path in sorted((settings.metnos_home / "files").glob("*"))]


def purge(folders: Iterable[str | Path], *, older_than: dt.datetime) -> int:
    """Delete for good what turns put into the trash of these folders before a moment; how many
    turns that was. What cannot be deleted is logged and tried again the next time."""
    gone = 0
    for path in folders:
        try:
            with _opened(path) as folder, _opened(TRASH, within=folder) as trash:
                gone += _purge(trash, older_than.timestamp())
        except OSError:
            continue
    return gone


def drop_second_names(undo: object) -> int:
    """Take the second name from files that a change kept and then did not replace; how many.

    `undo` is what the change's preview promised. A file with a second name in the trash is read
    and written no more, and what it holds stands under the first name. Done twice it does nothing.
    """
    gone = 0
    for one in undo if isinstance(undo, list) else ():
        if not isinstance(one, Mapping) or one.get("do") != "restore":
            continue
        with contextlib.suppress(OSError, ValueError):
            gone += _drop_second_name(Path(str(one.get("from"))), Path(str(one.get("to"))))
    return gone


def _drop_second_name(kept: Path, path: Path) -> bool:
    if TRASH not in kept.parts or not kept.is_absolute():
        return False
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(_opened("/"))]
        for name in kept.parent.parts[1:]:
            folders.append(stack.enter_context(_opened(name, within=folders[-1])))
        old = os.stat(kept.name, dir_fd=folders[-1], follow_symlinks=False)
        now = os.lstat(path)
        same = (old.st_dev, old.st_ino) == (now.st_dev, now.st_ino)
        if not same or not stat.S_ISREG(old.st_mode):
            return False
        os.unlink(kept.name, dir_fd=folders[-1])
        # Folders that hold nothing else, up to the trash itself.
        with contextlib.suppress(OSError):
            for depth in range(len(folders) - 1, kept.parts.index(TRASH), -1):
                os.rmdir(kept.parts[depth], dir_fd=folders[depth - 1])
    return True


def _purge(trash: int, before: float) -> int:
    gone = 0
    for name in os.listdir(trash):
        try:
            info = os.stat(name, dir_fd=trash, follow_symlinks=False)
            if info.st_mtime >= before:
                continue
            if stat.S_ISDIR(info.st_mode):
                shutil.rmtree(name, dir_fd=trash)
            else:
                os.unlink(name, dir_fd=trash)
            gone += 1
        except OSError as exc:
            log.warning("trash not emptied", extra={"why": exc.strerror})
    return gone


@contextlib.contextmanager
def _opened(path: str | Path, *, within: int | None = None) -> Iterator[int]:
    fd = os.open(path, _FOLDER, dir_fd=within)
    try:
        yield fd
    finally:
        os.close(fd)
