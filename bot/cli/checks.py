"""What `metnos doctor` looks at on this machine. Each check returns findings and changes nothing
(but a database that is missing is not made here either)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bot.cli.lines import own_command, short_path
from bot.cli.output import Console

if TYPE_CHECKING:
    from core.config import Settings

LEAST_FREE_BYTES = 200 * 10**6
_DAY_S = 86_400
# What a check is called → the service of the settings.
SERVICES = {"places": "photon", "weather": "weather", "search": "search"}


class State(StrEnum):
    GOOD = "good"
    INFO = "info"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor. A fault has `mend`, the one command that helps."""

    check: str
    state: State
    message: str
    mend: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "state": self.state.value,
            "message": self.message,
            "mend": self.mend,
        }


class Doctor:
    """Makes findings in the person's language."""

    def __init__(self, console: Console, settings: Settings) -> None:
        self.console = console
        self.settings = settings
        self.home = settings.metnos_home

    def good(self, check: str, key: str, **params: Any) -> Finding:
        return Finding(check, State.GOOD, self.console.say(f"cli.doctor.{key}", **params))

    def info(self, check: str, key: str, mend: str | None = None, **params: Any) -> Finding:
        return Finding(check, State.INFO, self.console.say(f"cli.doctor.{key}", **params), mend)

    def fault(self, check: str, key: str, mend: str, **params: Any) -> Finding:
        return Finding(check, State.FAULT, self.console.say(f"cli.doctor.{key}", **params), mend)

    def local(self) -> Iterator[Finding]:
        """Everything that needs neither a model nor the network."""
        yield from self.home_and_settings()
        yield self.clock()
        yield self.disk()
        if self.home.is_dir():
            yield from self.database()
            yield from self.executors()
            yield self.secrets()
        yield self.engine()
        yield self.console_page()
        yield self.isolation()
        yield self.programs()
        yield from self.services()

    def home_and_settings(self) -> Iterator[Finding]:
        path = short_path(self.home)
        if not self.home.is_dir():
            yield self.fault("home", "home_missing", own_command("setup"), path=path)
        elif self.home.stat().st_mode & 0o077:
            yield self.fault("home", "home_open", f"chmod 700 {path}", path=path)
        elif not os.access(self.home, os.W_OK):
            yield self.fault("home", "home_readonly", f"chmod u+w {path}", path=path)
        elif spoilt := [part for part in self._parts() if part.exists() and not _is_ours(part)]:
            for part in spoilt:
                yield self.fault("home", "home_part", _mend(part), path=short_path(part))
        else:
            yield self.good("home", "home_good", path=path)
        before = yield from self._open_env_files()
        for root in self.settings.metnos_files_roots or ():
            if not root.is_dir():
                before = True
                shown = short_path(root)
                yield self.fault("settings", "root_missing", f"mkdir -p {shown}", path=shown)
        if not before:
            roots = [short_path(root) for root in self.settings.metnos_files_roots or ()]
            key = "settings_good" if roots else "settings_no_roots"
            yield self.good("settings", key, roots=", ".join(roots))

    def _parts(self) -> list[Path]:
        return [self.home / name for name in ("private", "executors", "files", "turns", "policy")]

    def _open_env_files(self) -> Generator[Finding, None, bool]:
        """Files with secrets that others may read; returns whether there was one."""
        found = False
        for path in (self.home / ".env", Path.cwd() / ".env", self.home / "config.toml"):
            try:
                info = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode) and info.st_mode & 0o077:
                found = True
                shown = short_path(path)
                yield self.fault("settings", "env_open", f"chmod 600 {shown}", path=shown)
        return found

    def clock(self) -> Finding:
        """The time zone, and a clock that cannot be right: before these files were written."""
        newest = Path(__file__).stat().st_mtime
        if time.time() < newest - _DAY_S:
            return self.fault("clock", "clock_past", "timedatectl set-ntp true")
        from core.clock import SystemClock

        now = SystemClock().now()
        zone = self.settings.metnos_tz
        return self.good(
            "clock",
            "clock_good",
            time=self.console.texts.datetime(now, self.console.lang, zone),
            zone=zone,
        )

    def disk(self) -> Finding:
        place = self.home
        while not place.is_dir() and place != place.parent:
            place = place.parent
        free = shutil.disk_usage(place).free
        size = self.console.size(free)
        if free < LEAST_FREE_BYTES:
            return self.fault("disk", "disk_full", f"du -xh {place} | sort -h | tail", free=size)
        return self.good("disk", "disk_good", free=size)

    def database(self) -> Iterator[Finding]:
        """SQLite's own check of both files."""
        from core.errors import StoreCorrupt, StoreError
        from core.store.database import Database
        from core.store.stores import MAIN_FILE, MEMORY_FILE

        async def open_and_close(path: Path) -> None:
            await (await Database.open(path, durable=True)).close()

        for name in (MAIN_FILE, MEMORY_FILE):
            path = self.settings.private_dir / name
            shown = short_path(path)
            if not path.is_file():
                yield self.fault("database", "database_missing", own_command("setup"), file=name)
                continue
            try:
                asyncio.run(open_and_close(path))
            except StoreCorrupt:
                mend = f"mv {shown} {shown}.damaged && {own_command('setup')}"
                yield self.fault("database", "database_damaged", mend, file=name)
            except StoreError as exc:
                yield self.fault(
                    "database", "database_failed", f"ls -l {shown}", file=name, detail=exc.detail
                )
            else:
                yield self.good("database", "database_good", file=name)

    def executors(self) -> Iterator[Finding]:
        """Every signature, with the reason of each refusal."""
        from core.catalog.manifest import SDK_NAME
        from core.catalog.release import read_digests, shipped_root
        from core.catalog.report import verify_report

        report = verify_report(self.settings)
        shipped = read_digests(shipped_root())
        setup = own_command("setup --non-interactive")
        for unit in report.units:
            if unit.rejection is None:
                continue
            reason = self.console.reason(unit.rejection)
            mend = setup if unit.name in shipped else own_command(f"executors sign {unit.name}")
            yield self.fault("executors", "executor_refused", mend, name=unit.name, reason=reason)
        for problem in report.key_problems:
            folder = short_path(self.settings.private_dir / "keys")
            yield self.fault("executors", "key_problem", f"ls -lR {folder}", detail=problem)
        count = sum(unit.ok and unit.name != SDK_NAME for unit in report.units)
        if not report.units:
            yield self.fault("executors", "executors_none", setup)
        elif not report.current:
            yield self.fault("executors", "executors_old", setup)
        elif report.ok:
            yield self.good("executors", "executors_good", count=count)

    def secrets(self) -> Finding:
        """The key of what people entrust, and whether it opens all of it."""
        from bot.cli.beside import read_store
        from core.errors import KeyUnusable, StoreError
        from core.store import credentials, secret_key
        from core.store.database import Transaction
        from core.store.stores import MAIN_FILE

        private = self.settings.private_dir
        path = secret_key.key_path(private)
        shown = short_path(path)
        if not os.path.lexists(path):
            setup = own_command("setup --non-interactive")
            return self.fault("secrets", "secrets_missing", setup, path=shown)
        try:
            secret_key.load(private)
        except KeyUnusable as exc:
            mend = f"chmod 600 {shown}" if "chmod" in exc.detail else f"ls -l {shown}"
            return self.fault("secrets", "secrets_unusable", mend, detail=exc.detail)

        async def locked(tx: Transaction) -> list[tuple[str, str]]:
            return await credentials.unreadable(tx, credentials.Vault(private))

        with contextlib.suppress(StoreError):  # what is wrong with the store is said elsewhere
            if (private / MAIN_FILE).is_file() and (lost := read_store(self.settings, locked)):
                names = ", ".join(sorted({name for _, name in lost}))
                return self.fault("secrets", "secrets_locked", f"ls -l {shown}", names=names)
        return self.good("secrets", "secrets_good", path=shown)

    def engine(self) -> Finding:
        """Who holds the home, by what its lock file says."""
        holder = engine_holder(self.home)
        if holder is None:
            return self.info("engine", "engine_none")
        return self.good("engine", "engine_runs", pid=str(holder[0]), command=holder[1])

    def console_page(self) -> Finding:
        """Whether the host's pages can be opened, by what the bot that runs noted."""
        from bot.cli.beside import read_store
        from bot.console.server import TROUBLE, address
        from core.errors import StoreError
        from core.store import kv
        from core.store.stores import MAIN_FILE

        if not self.settings.metnos_console:
            return self.info("console", "console_off")
        holder = engine_holder(self.home)
        if holder is None or holder[1] != "run":
            return self.info("console", "console_waits")
        port = self.settings.metnos_console_port
        with contextlib.suppress(StoreError):  # what is wrong with the store is said elsewhere
            if (self.settings.private_dir / MAIN_FILE).is_file() and read_store(
                self.settings, lambda tx: kv.get(tx, TROUBLE)
            ):
                mend = f"ss -ltnp 'sport = :{port}'"
                return self.fault("console", "console_taken", mend, port=str(port))
        return self.good("console", "console_good", address=address(port))

    def isolation(self) -> Finding:
        """Whether the kernel closes executors in; tried, not read off its version."""
        from core.execution.cage.status import cage_status

        if self.settings.metnos_unsafe_no_cage:
            return self.fault("isolation", "isolation_off", self._mend_unsafe())
        found = cage_status()
        if found.available:
            return self.good("isolation", "isolation_good", abi=found.landlock_abi)
        # What the kernel was built with and started with decides, not its version alone.
        key = "isolation_broken" if found.landlock_abi else "isolation_missing"
        mend = "uname -r; cat /sys/kernel/security/lsm"
        return self.fault("isolation", key, mend, why="; ".join(found.reasons))

    def programs(self) -> Finding:
        """Whether bubblewrap works here; only executors that start programs miss it."""
        from core.execution.cage.bubble import find_bubblewrap

        return self.info("programs", "bubble_there" if find_bubblewrap() else "bubble_none")

    def services(self) -> Iterator[Finding]:
        """Who is asked about addresses and places, the weather and the web."""
        for check, service in SERVICES.items():
            host = urlsplit(self.settings.services[service]).netloc
            yield self.info(check, f"{check}_at" if host else f"{check}_off", host=host)

    def _mend_unsafe(self) -> str:
        """The one command that brings the cage back, by where the setting stands."""
        name = "METNOS_UNSAFE_NO_CAGE"
        if os.environ.get(name):
            return f"unset {name}"
        for path in (Path.cwd() / ".env", self.home / ".env", self.home / "config.toml"):
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if re.search(rf"(?im)^[^#\n]*{name}", path.read_text(encoding="utf-8")):
                    return f"sed -i '/^[^#]*{name}/Id' {short_path(path)}"
        return f"unset {name}"


def _is_ours(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _mend(part: Path) -> str:
    """Put aside what is no folder; get back one that another user made, by sudo for one."""
    path = short_path(part)
    if not part.is_dir():
        return f"mv {path} {path}.damaged && {own_command('setup')}"
    if part.stat().st_uid != os.geteuid():
        return f"sudo chown -R {os.geteuid()} {path}"
    return f"chmod u+rwx {path}"


def engine_holder(home: Path) -> tuple[int, str] | None:
    """The process that holds this home and its command, None when nobody does. Takes no lock: a
    start at this moment must not be turned away by somebody who only looks."""
    from core.store.lock import LOCK_FILE

    try:
        lines = (home / LOCK_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
        pid, command = int(lines[0]), lines[1]
        os.kill(pid, 0)
    except PermissionError:
        return pid, command
    except (OSError, ValueError, IndexError):
        return None
    return pid, command
