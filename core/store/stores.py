"""Both databases of a home, opened together, and the private folders they live in."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core.clock import Clock
from core.config import Settings
from core.errors import ErrorCode, StoreCorrupt, StoreError
from core.store.credentials import Vault
from core.store.database import Database
from core.store.migrations import MAIN, MEMORY, Migration, migrate

log = logging.getLogger(__name__)

MAIN_FILE = "metnos.db"
MEMORY_FILE = "memory.db"


@dataclass(frozen=True, slots=True)
class Stores:
    """`main` holds what must not be lost; `memory` what can be learnt again; `vault` locks what
    must not be read."""

    main: Database
    memory: Database
    vault: Vault

    async def close(self) -> None:
        try:
            await self.memory.close()
        finally:
            await self.main.close()


def make_home(settings: Settings) -> None:
    """Create the home and the folders that are closed to everybody else; safe to call twice.

    Raises `StoreError` when the disk or the rights do not allow it.
    """
    home = settings.metnos_home
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        for folder in (settings.private_dir, home / "turns", home / "policy", home / "files"):
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o700)
    except OSError as exc:
        error = StoreError(f"the home cannot be made ({exc.strerror})", path=str(home))
        error.code = ErrorCode.DISK_FULL if exc.errno == errno.ENOSPC else error.code
        raise error from exc


async def open_stores(settings: Settings, clock: Clock) -> Stores:
    """Open both databases of the home in their newest form, made when they are missing.

    A damaged `memory.db` is set aside and begun anew, now and whenever it is found damaged later;
    `main.broken()` tells when that happens to `metnos.db`. Raises `StoreCorrupt` for a damaged
    `metnos.db`, `StoreTooNew`, and `StoreError`; nothing stays open then.
    """
    make_home(settings)
    main = await _open(settings.private_dir / MAIN_FILE, MAIN, clock, durable=True)
    try:
        memory = await _open_memory(settings.private_dir / MEMORY_FILE, clock)
    except BaseException:
        await main.close()
        raise
    memory.renew = partial(_open_memory, memory.path, clock)
    return Stores(main, memory, Vault(settings.private_dir))


def set_aside(path: Path) -> Path:
    """Where a damaged file of that name is kept, if there was one."""
    return path.with_name(path.name + ".damaged")


async def _open(
    path: Path, migrations: tuple[Migration, ...], clock: Clock, *, durable: bool
) -> Database:
    database = await Database.open(path, durable=durable)
    try:
        await migrate(database, migrations, clock)
    except BaseException:
        await database.close()
        raise
    return database


async def _open_memory(path: Path, clock: Clock) -> Database:
    try:
        return await _open(path, MEMORY, clock, durable=False)
    except StoreCorrupt:
        log.warning("memory.db is damaged; it is set aside and learnt again")
        _put_aside(path)
        return await _open(path, MEMORY, clock, durable=False)


def _put_aside(path: Path) -> None:
    """Keep the damaged file (one of them: the newest) out of the way."""
    try:
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.replace(set_aside(path))
    except OSError as exc:
        raise StoreError(f"{path.name} cannot be set aside ({exc.strerror})") from exc
