"""From the release to the home: copy exactly the shipped files, sign them, raise the floors.

Idempotent, and atomic per executor: interrupted anywhere, the home holds a catalogue that works,
and the next staging finishes the work. What the person made or changed and signed is theirs and
stays. `private/staged.json` remembers what was put there and from which digest list.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from core.catalog.files import (
    FolderBytes,
    install_folder,
    locked,
    read_folder,
    remove_tree,
    write_private,
)
from core.catalog.floors import Floors, is_below
from core.catalog.keys import OwnerKey, TrustRing, load_or_create_owner_key
from core.catalog.loader import WORKSHOP
from core.catalog.manifest import SDK_NAME
from core.catalog.names import name_refusal
from core.catalog.reasons import Reason, Rejection, refused
from core.catalog.release import (
    check_unit,
    digests_sha256,
    read_digests,
    read_shipped,
    shipped_root,
    with_files,
)
from core.catalog.signing import sign_manifest
from core.catalog.verify import (
    MANIFEST_FILE,
    SIGNATURE_FILE,
    code_of,
    verify_executor,
    verify_sdk,
)
from core.config import Settings
from core.errors import CatalogError

__all__ = ["StageReport", "is_staged_current", "shipped_root", "sign_folder", "stage"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StageReport:
    """Names of executors by what became of them. `kept`: the person's own, left alone."""

    staged: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    refused: tuple[Rejection, ...] = ()


def is_staged_current(settings: Settings, *, root: Path | None = None) -> bool:
    """Whether the home holds this release, by its digest list. Cheap: nothing is verified."""
    home = _Home(settings)
    if not home.owner_key.is_file():
        return False
    try:
        return _read_record(home.record).get("digests") == digests_sha256(root or shipped_root())
    except CatalogError:
        return False


def stage(
    settings: Settings,
    *,
    force: bool = False,
    allow_downgrade: bool = False,
    root: Path | None = None,
) -> StageReport:
    """Make the home's catalogue that of the release, signed with the owner's key.

    Twice: everything is `unchanged`. A damaged or half-written staged copy is put right. `force`
    also replaces shipped executors that the person changed and signed. A release below the
    recorded version floor is refused unless `allow_downgrade`. Raises `CatalogError` when the
    release itself or the owner's key cannot be read, `OSError` when the disk does not take it;
    what was there works on.
    """
    home = _Home(settings)
    source = root or shipped_root()
    units = read_digests(source)
    if headless := sorted(unit for unit, files in units.items() if MANIFEST_FILE not in files):
        raise CatalogError(f"{headless[0]} of this release has no manifest")
    home.make()
    with locked(home.lock):
        owner = load_or_create_owner_key(home.private)
        remove_tree(home.workshop)
        record = _read_record(home.record)
        known = _known(record)
        work = _Staging(home, owner, known, force=force, allow_downgrade=allow_downgrade)
        # Told before it is done: what a killed staging put there is not taken for the person's.
        pending = {unit: files[MANIFEST_FILE] for unit, files in units.items()}
        signed = _mapping(record, "signed")
        if any(digest not in known.get(unit, ()) for unit, digest in pending.items()):
            _write_record(home, {"digests": None, "signed": signed, "pending": pending})
        # `_sdk` first: executors that need a new one must not run on the old.
        for unit in sorted(units, key=lambda name: (name != SDK_NAME, name)):
            try:
                work.put(unit, read_shipped(source, unit, units[unit]))
            except CatalogError as exc:
                work.refused.append(Rejection.of(unit, exc))
                log.warning("executor not staged", extra={"executor": unit, "why": exc.detail})
        for unit in sorted(known.keys() - units.keys()):
            work.drop(unit)
        remove_tree(home.workshop)
        done = {unit: work.signed.get(unit, signed.get(unit)) for unit in sorted(units)}
        after = {
            "digests": digests_sha256(source) if not work.refused else None,
            "signed": {unit: digest for unit, digest in done.items() if digest},
        }
        if after != record:
            _write_record(home, after)
    return work.report()


def sign_folder(
    settings: Settings,
    name: str,
    *,
    source: Path | None = None,
    allow_downgrade: bool = False,
) -> str:
    """Sign an executor of the home as it is now, or as it is in `source`, which is copied into the
    home; returns its version.

    Writes `[files]` anew, checks it thoroughly, signs it with the owner's key and raises its
    floor. From then on it is the person's own and staging leaves it alone. Raises `CatalogError`
    with a reason; below the floor only with `allow_downgrade`, which lowers the floor.
    """
    home = _Home(settings)
    if name != SDK_NAME and (reason := name_refusal(name)) is not None:
        raise refused(reason)
    home.make()
    with locked(home.lock):
        owner = load_or_create_owner_key(home.private)
        files = read_folder(source or home.executors / name).files
        if MANIFEST_FILE not in files:
            raise refused(Reason.MISSING_FILE, MANIFEST_FILE)
        code = code_of(files)
        try:
            manifest = with_files(files[MANIFEST_FILE], code)
        except UnicodeDecodeError as exc:
            raise refused(Reason.BAD_TOML, MANIFEST_FILE) from exc
        version = check_unit(name, {MANIFEST_FILE: manifest, **code})
        floors = Floors(home.private)
        _keep_floor(floors, name, version, allow_downgrade=allow_downgrade)
        signed = {MANIFEST_FILE: manifest, SIGNATURE_FILE: sign_manifest(owner.secret, manifest)}
        install_folder(home.executors / name, {**code, **signed}, workshop=home.workshop)
        floors.raise_to({name: version})
    return version


class _Home:
    """Where things are in a home."""

    def __init__(self, settings: Settings) -> None:
        self.root = settings.metnos_home
        self.private = self.root / "private"
        self.executors = self.root / "executors"
        self.workshop = self.executors / WORKSHOP
        self.record = self.private / "staged.json"
        self.lock = self.private / "staging.lock"
        self.owner_key = self.private / "keys" / "owner.key"

    def make(self) -> None:
        for folder in (self.root, self.private, self.executors):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)


class _Staging:
    """One run of `stage`: what was done so far."""

    def __init__(
        self,
        home: _Home,
        owner: OwnerKey,
        known: Mapping[str, set[str]],
        *,
        force: bool,
        allow_downgrade: bool,
    ) -> None:
        self.home = home
        self.owner = owner
        self.known = known
        self.force = force
        self.allow_downgrade = allow_downgrade
        self.floors = _usable_floors(home)
        self.key_for = TrustRing(home.private).read().key_for
        self.signed: dict[str, str] = {}
        self.staged: list[str] = []
        self.unchanged: list[str] = []
        self.removed: list[str] = []
        self.kept: list[str] = []
        self.refused: list[Rejection] = []

    def put(self, unit: str, shipped: Mapping[str, bytes]) -> None:
        """Make `unit` of the home the shipped one, unless it is the person's own."""
        if unit != SDK_NAME and (reason := name_refusal(unit)) is not None:
            raise refused(reason)
        manifest = shipped[MANIFEST_FILE]
        wanted = {**shipped, SIGNATURE_FILE: sign_manifest(self.owner.secret, manifest)}
        digest = hashlib.sha256(manifest).hexdigest()
        there = self._there(unit)
        if there is not None and there.files == wanted:
            self.signed[unit] = digest
            self.unchanged.append(unit)
            return
        if there is not None and not self.force and self._is_own(unit, there):
            self.kept.append(unit)
            return
        version = check_unit(unit, shipped)
        _keep_floor(self.floors, unit, version, allow_downgrade=self.allow_downgrade)
        install_folder(self.home.executors / unit, wanted, workshop=self.home.workshop)
        self.floors.raise_to({unit: version})
        self.signed[unit] = digest
        self.staged.append(unit)

    def drop(self, unit: str) -> None:
        """Remove a shipped executor that left the release, unless the person made it theirs."""
        there = self._there(unit)
        if there is not None and self._is_own(unit, there):
            self.kept.append(unit)
            return
        remove_tree(self.home.executors / unit)
        self.removed.append(unit)

    def report(self) -> StageReport:
        return StageReport(
            tuple(self.staged),
            tuple(self.unchanged),
            tuple(self.removed),
            tuple(self.kept),
            tuple(self.refused),
        )

    def _there(self, unit: str) -> FolderBytes | None:
        try:
            return read_folder(self.home.executors / unit)
        except CatalogError:
            return None

    def _is_own(self, unit: str, there: FolderBytes) -> bool:
        """Whether the home's copy is rightly signed and not the one that staging put there."""
        try:
            if unit == SDK_NAME:
                digest = verify_sdk(there.files, self.key_for).digest
            else:
                digest = verify_executor(unit, there.files, self.key_for).digest
        except CatalogError:
            return False
        return digest not in self.known.get(unit, ())


def _keep_floor(floors: Floors, name: str, version: str, *, allow_downgrade: bool) -> None:
    floor = floors.read().get(name)
    if is_below(version, floor):
        if not allow_downgrade:
            raise refused(Reason.DOWNGRADE, f"{version} < {floor}")
        floors.lower_to(name, version)


def _usable_floors(home: _Home) -> Floors:
    """The floors; a damaged file is made anew, as its refusal promises."""
    floors = Floors(home.private)
    try:
        floors.read()
    except CatalogError:
        floors.reset({})
    return floors


def _read_record(path: Path) -> dict[str, object]:
    """What staging remembers; nothing when there is no record or it is damaged."""
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_record(home: _Home, record: Mapping[str, object]) -> None:
    write_private(home.record, json.dumps(record, indent=1).encode())


def _mapping(record: Mapping[str, object], key: str) -> dict[str, str]:
    found = record.get(key)
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _known(record: Mapping[str, object]) -> dict[str, set[str]]:
    """Unit → digests of the manifests that staging put there, or was about to."""
    known: dict[str, set[str]] = {}
    for key in ("signed", "pending"):
        for unit, digest in _mapping(record, key).items():
            known.setdefault(unit, set()).add(digest)
    return known
