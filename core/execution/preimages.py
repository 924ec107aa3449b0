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
from collections.abc import Iterable, Iterator
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
