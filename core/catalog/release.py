"""What belongs to a release: the shipped tree, its digest list, and keeping both in step.

`executors/DIGESTS` has one line a file, `<sha256>  <path below executors/>`, sorted by path, as
`sha256sum -c` reads it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import core
from core.catalog.manifest import (
    SDK_NAME,
    check_manifest,
    check_python,
    parse_manifest,
    parse_sdk_manifest,
)
from core.catalog.reasons import Reason, refused
from core.catalog.verify import MANIFEST_FILE, SIGNATURE_FILE
from core.errors import CatalogError

DIGESTS = "DIGESTS"
_LINE = re.compile(r"([0-9a-f]{64})  ([A-Za-z0-9_]+/[A-Za-z0-9_./-]+)", re.ASCII)
_FILES_TABLE = re.compile(r"^\[files\][^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What `refresh_digests` found: files that were (or would be) rewritten, and executors whose
    manifest does not pass, as English sentences."""

    stale: tuple[str, ...]
    problems: tuple[str, ...]


def shipped_root() -> Path:
    """The folder that holds `executors/` and `locales/` of this release: `core/_shipped` in an
    installed package, else the source tree."""
    package = Path(core.__file__).parent
    shipped = package / "_shipped"
    return shipped if (shipped / "executors" / DIGESTS).is_file() else package.parent


def digests_sha256(root: Path) -> str:
    """The SHA-256 of the digest list: changes exactly when the release does."""
    return hashlib.sha256(_digest_list(root)).hexdigest()


def read_digests(root: Path) -> dict[str, dict[str, str]]:
    """The release as unit name → path → SHA-256. Raises `CatalogError` for a damaged list."""
    units: dict[str, dict[str, str]] = {}
    for line in _digest_list(root).decode("ascii", "replace").splitlines():
        match = _LINE.fullmatch(line)
        if match is None or ".." in match[2]:
            raise CatalogError(f"executors/{DIGESTS} is damaged")
        unit, _, path = match[2].partition("/")
        units.setdefault(unit, {})[path] = match[1]
    return units


def read_shipped(root: Path, unit: str, digests: Mapping[str, str]) -> dict[str, bytes]:
    """The bytes of one unit, exactly the files of the list. Raises `SignatureRefused`."""
    files = {}
    for path, digest in digests.items():
        try:
            data = (root / "executors" / unit / path).read_bytes()
        except OSError as exc:
            raise refused(Reason.MISSING_FILE, path) from exc
        if hashlib.sha256(data).hexdigest() != digest:
            raise refused(Reason.DIGEST_MISMATCH, f"{path} is not the one of the release")
        files[path] = data
    return files


def check_unit(unit: str, files: Mapping[str, bytes]) -> str:
    """The thorough check before signing; returns the version. Raises `CatalogError`.

    `files` are all bytes of the folder, without signature.
    """
    code = {path: data for path, data in files.items() if path != MANIFEST_FILE}
    if unit == SDK_NAME:
        sdk = parse_sdk_manifest(files[MANIFEST_FILE])
        check_python(code)
        return sdk.version
    manifest = parse_manifest(files[MANIFEST_FILE], folder=unit)
    check_manifest(manifest, code)
    return manifest.version


def with_files(manifest: bytes, code: Mapping[str, bytes]) -> bytes:
    """The manifest with `[files]` written anew for these bytes; the rest stays as it is.

    Raises `ManifestInvalid` for what is no TOML.
    """
    text = manifest.decode("utf-8", "strict")
    lines = [f'"{p}" = "{hashlib.sha256(code[p]).hexdigest()}"\n' for p in sorted(code)]
    table = "[files]\n" + "".join(lines)
    match = _FILES_TABLE.search(text)
    if match is None:
        text = text.rstrip("\n") + "\n\n" + table
    else:
        after = text[match.end() :]
        text = text[: match.start()] + table + ("\n" + after if after else "")
    return text.encode()


def refresh_digests(root: Path, *, write: bool = True) -> Refreshed:
    """Bring `[files]` of every manifest below `root/executors` and the digest list up to date.

    The same tree always gives the same bytes. Folders without a manifest are no part of the
    release. With `write` false nothing is written and only what is stale is told.
    """
    stale: list[str] = []
    problems: list[str] = []
    lines: list[str] = []
    executors = root / "executors"
    for manifest in sorted(executors.glob("*/" + MANIFEST_FILE)):
        folder = manifest.parent
        code = _code_on_disk(folder)
        before = manifest.read_bytes()
        try:
            tomllib.loads(before.decode("utf-8"))
            after = with_files(before, code)
            check_unit(folder.name, {MANIFEST_FILE: after, **code})
        except (CatalogError, ValueError) as exc:
            problems.append(f"{folder.name}: {exc}")
            after = before
        if after != before:
            stale.append(f"{folder.name}/{MANIFEST_FILE}")
            if write:
                manifest.write_bytes(after)
        for path, data in sorted({MANIFEST_FILE: after, **code}.items()):
            lines.append(f"{hashlib.sha256(data).hexdigest()}  {folder.name}/{path}\n")
    digest_list = "".join(lines).encode()
    place = executors / DIGESTS
    if not place.is_file() or place.read_bytes() != digest_list:
        stale.append(DIGESTS)
        if write:
            place.write_bytes(digest_list)
    return Refreshed(tuple(stale), tuple(problems))


def _digest_list(root: Path) -> bytes:
    try:
        return (root / "executors" / DIGESTS).read_bytes()
    except OSError as exc:
        raise CatalogError(f"executors/{DIGESTS} of this release is missing") from exc


def _code_on_disk(folder: Path) -> dict[str, bytes]:
    """What of a source folder belongs to the release: no hidden and no compiled files."""
    code = {}
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f != "__pycache__")
        for name in sorted(names):
            path = Path(top) / name
            inside = path.relative_to(folder).as_posix()
            if name.startswith(".") or name.endswith((".pyc", ".pyo")):
                continue
            if inside not in {MANIFEST_FILE, SIGNATURE_FILE} and not path.is_symlink():
                code[inside] = path.read_bytes()
    return code
