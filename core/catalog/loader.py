"""The catalogue that runs: every executor of the home, verified, its bytes kept in memory.

What is kept is what was verified, and what is kept is what runs: after loading, no path is read
again, so a file swapped later changes nothing but the next check. One bad executor is refused with
its reason and never stops the rest.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from core.catalog.files import FolderBytes, Stamp, check_owner, read_folder, stamp_at, stamp_of
from core.catalog.floors import Floors, is_above, is_below
from core.catalog.keys import TrustedKeys, TrustRing
from core.catalog.loaded import NO_SDK, Catalog, LoadedExecutor, LoadedSdk
from core.catalog.manifest import SDK_NAME, Manifest, SdkManifest
from core.catalog.names import name_refusal
from core.catalog.reasons import Reason, Rejection, refused
from core.catalog.verify import code_of, verify_executor, verify_sdk
from core.config import Settings
from core.errors import CatalogError

__all__ = [
    "NO_SDK",
    "WORKSHOP",
    "Catalog",
    "CatalogLoader",
    "LoadedExecutor",
    "LoadedSdk",
    "Rejection",
]

log = logging.getLogger(__name__)

# Where staging builds; never an executor.
WORKSHOP = ".staging"
# The clock of file systems ticks every few milliseconds. A file that changed this shortly before
# it was read may change again under the same stamp, so it is read once more at the next check.
_RACY_NS = 40_000_000
# Of a refused folder no more than this is watched for mending.
_MOST_WATCHED = 128
# How often a folder may be exchanged while it is read before it is given up.
_EXCHANGES = 5


@dataclass(frozen=True, slots=True)
class _Unit:
    """What became of one folder, and the stamps under which that stays true."""

    stamps: tuple[tuple[str, Stamp], ...]
    manifest: Manifest | SdkManifest | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    rejection: Rejection | None = None
    racy: bool = False


class CatalogLoader:
    """Hands out the catalogue, the same object until something on disk changes."""

    def __init__(self, executors_dir: Path, ring: TrustRing, floors: Floors) -> None:
        self._dir = executors_dir
        self._ring = ring
        self._floors = floors
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._units: dict[str, _Unit] = {}
        self._keys: TrustedKeys | None = None
        self._watch: tuple[tuple[str, Stamp | None], ...] = ()
        self._racy = False

    @classmethod
    def of(cls, settings: Settings) -> CatalogLoader:
        """The loader of a home."""
        private = settings.metnos_home / "private"
        return cls(settings.metnos_home / "executors", TrustRing(private), Floors(private))

    def current(self) -> Catalog:
        """The catalogue as it is on disk now.

        Hot, it only looks at the known folders and files (no opening, under a millisecond for a
        hundred) and returns the object it returned before. After a change it verifies what
        changed; when keys changed, everything. Never raises for a bad executor.
        """
        with self._lock:
            if self._catalog is not None and not self._racy and self._unchanged():
                return self._catalog
            return self._load()

    def _unchanged(self) -> bool:
        # Inlined on purpose: four hundred calls of a helper would cost as much as the lstats.
        lstat = os.lstat
        for path, stamp in self._watch:
            try:
                now = lstat(path)
            except OSError:
                if stamp is not None:
                    return False
                continue
            if stamp is None or (
                now.st_ctime_ns != stamp[2]
                or now.st_mtime_ns != stamp[1]
                or now.st_size != stamp[0]
                or now.st_ino != stamp[3]
            ):
                return False
        return True

    def _load(self) -> Catalog:
        ring_stamps = self._ring.stamps()
        keys = self._ring.read()
        known = self._units if keys == self._keys else {}
        self._keys = keys
        units: dict[str, _Unit] = {}
        root: Stamp | None = None
        floors: dict[str, str] = {}
        refusals: tuple[Rejection, ...] = ()
        try:
            floors = self._floors.read()
            names, root = self._list()
        except CatalogError as exc:
            refusals = self._all_refused(exc)
        else:
            for name in names:
                unit = known.get(name)
                if unit is None or unit.racy or not _same(unit.stamps):
                    unit = self._read_unit(name, keys)
                units[name] = unit
            self._raise_floors(units, floors)
        catalog = _assemble(units, floors, refusals)
        if self._catalog is None or catalog.signature != self._catalog.signature:
            self._catalog = catalog
            log.info(
                "catalog loaded",
                extra={"executors": len(catalog.executors), "rejected": len(catalog.rejected)},
            )
        self._units = units
        self._racy = any(unit.racy for unit in units.values())
        # The floors last: this load may have raised them itself.
        self._watch = (
            (str(self._dir), root),
            *ring_stamps,
            (str(self._floors.path), stamp_at(str(self._floors.path))),
            *(stamp for unit in units.values() for stamp in unit.stamps),
        )
        return self._catalog

    def _list(self) -> tuple[list[str], Stamp | None]:
        """Folder names, with the stamp of the folder taken before they were listed."""
        try:
            info = self._dir.stat()
            check_owner(info, "the folder of executors")
            with os.scandir(self._dir) as entries:
                names = sorted(
                    entry.name
                    for entry in entries
                    if entry.name != WORKSHOP and (entry.is_symlink() or entry.is_dir())
                )
        except FileNotFoundError:
            return [], None
        except OSError as exc:
            raise refused(Reason.UNREADABLE, str(exc.strerror)) from exc
        return names, stamp_of(info)

    def _read_unit(self, name: str, keys: TrustedKeys) -> _Unit:
        path = self._dir / name
        began_ns = time.time_ns()
        for _ in range(_EXCHANGES):
            before = stamp_at(str(path))
            try:
                manifest, folder = _verified(path, keys)
            except CatalogError as exc:
                # Staging exchanges whole folders: one that was taken away while it was read is no
                # bad executor, the new one stands in its place.
                if stamp_at(str(path)) != before:
                    continue
                rejection = Rejection.of(name, exc)
            else:
                code = code_of(folder.files)
                return _Unit(folder.stamps, manifest, code, racy=_racy(folder.stamps, began_ns))
            break
        else:
            rejection = Rejection(name, Reason.UNREADABLE.value, "it does not stand still")
        # Stamps of now may be younger than what was read: then it is read again at the next check.
        stamps = tuple(islice(_stamps_below(str(path)), _MOST_WATCHED))
        return _Unit(stamps, rejection=rejection, racy=_racy(stamps, began_ns))

    def _raise_floors(self, units: Mapping[str, _Unit], floors: Mapping[str, str]) -> None:
        higher = {
            name: unit.manifest.version
            for name, unit in units.items()
            if unit.manifest is not None and is_above(unit.manifest.version, floors.get(name))
        }
        if not higher:
            return
        try:
            self._floors.raise_to(higher)
        except (OSError, CatalogError):
            # A full disk must not take the executors away; the next load tries again.
            log.warning("version floors not recorded", exc_info=True)

    def _all_refused(self, exc: CatalogError) -> tuple[Rejection, ...]:
        try:
            names = sorted(p.name for p in self._dir.iterdir() if p.name != WORKSHOP)
        except OSError:
            names = [self._dir.name]
        return tuple(Rejection.of(name, exc) for name in names)


def _assemble(
    units: Mapping[str, _Unit], floors: Mapping[str, str], refusals: tuple[Rejection, ...]
) -> Catalog:
    sdk = NO_SDK
    generation = ""
    executors: dict[str, LoadedExecutor] = {}
    rejected = list(refusals)
    # `_sdk` sorts before every executor, so it is known when they are looked at.
    for name, unit in units.items():
        manifest = unit.manifest
        if manifest is None:
            rejected.extend([unit.rejection] if unit.rejection else [])
        elif is_below(manifest.version, floors.get(name)):
            detail = f"{manifest.version} < {floors[name]}"
            rejected.append(Rejection(name, Reason.DOWNGRADE.value, detail))
        elif isinstance(manifest, SdkManifest):
            sdk = LoadedSdk(unit.files, manifest.digest, manifest.version)
            generation = manifest.generation
        elif manifest.sdk != generation:
            detail = f"needs _sdk {manifest.sdk}, there is {generation or 'none'}"
            rejected.append(Rejection(name, Reason.SDK_MISSING.value, detail))
        elif manifest.lifecycle != "archived":
            executors[name] = LoadedExecutor(manifest, unit.files)
    parts = [sdk.digest, *(f"{name} {e.manifest.digest}" for name, e in executors.items())]
    parts += [f"{r.name!a} {r.reason_code} {r.detail}" for r in rejected]
    signature = hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()
    return Catalog(executors, tuple(rejected), sdk, signature)


def _verified(path: Path, keys: TrustedKeys) -> tuple[Manifest | SdkManifest, FolderBytes]:
    if path.name != SDK_NAME and (reason := name_refusal(path.name)) is not None:
        raise refused(reason)
    folder = read_folder(path)
    if path.name == SDK_NAME:
        return verify_sdk(folder.files, keys.key_for), folder
    return verify_executor(path.name, folder.files, keys.key_for), folder


def _same(stamps: tuple[tuple[str, Stamp], ...]) -> bool:
    return all(stamp_at(path) == stamp for path, stamp in stamps)


def _stamps_below(path: str) -> Iterator[tuple[str, Stamp]]:
    """Stamps of a folder and everything in it, as far as it can be seen, no link followed."""
    try:
        info = os.lstat(path)
        yield path, stamp_of(info)
        if stat.S_ISDIR(info.st_mode):
            with os.scandir(path) as entries:
                for entry in entries:
                    yield from _stamps_below(entry.path)
    except OSError:
        return


def _racy(stamps: tuple[tuple[str, Stamp], ...], began_ns: int) -> bool:
    return any(-_RACY_NS < stamp[2] - began_ns < 10**9 for _, stamp in stamps)
