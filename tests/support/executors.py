"""Executors for tests: a home with the shipped ones, and small ones made from two texts.

Everything goes through the real setup: a generated owner key, real signatures, real staging.
"""

from __future__ import annotations

import os
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from core.catalog.files import install_folder
from core.catalog.keys import load_or_create_owner_key
from core.catalog.loader import WORKSHOP, CatalogLoader, LoadedExecutor
from core.catalog.release import refresh_digests, with_files
from core.catalog.signing import sign_manifest
from core.catalog.staging import StageReport, stage
from core.config import Settings

REPO = Path(__file__).parents[2]
SHIPPED = sorted(path.parent.name for path in REPO.glob("executors/[!_]*/manifest.toml"))

MANIFEST = """\
format = "metnos.executor/1"
name = "{name}"
version = "{version}"
author = "Test"
sdk = "1"
effect = "{effect}"
timeout_s = {timeout_s}
render = "list"
{top}

[description]
it = "Una prova."
en = "A trial."

[phrase]
it = "Provo"
en = "Trying"

[affinity]
it = ["prova"]
en = ["trial"]

[answer.it]
one = "Fatto."

[answer.en]
one = "Done."

[args]
type = "object"
additionalProperties = false

{args}

[output]

[[capabilities]]
name = "{right}"

[[tests]]
name = "runs"
expect = {{ ok = true }}

[files]
"""
PURE_CODE = "def run(call):\n    return {'ok': True, 'content': 1}\n"
MUTATING_CODE = PURE_CODE + "\n\ndef preview(call):\n    return {'targets': [], 'count': 0}\n"


def manifest_toml(
    name: str = "get_now",
    *,
    version: str = "1.0.0",
    effect: str = "pure",
    timeout_s: float = 10,
    top: str = "",
    args: str = "",
    right: str = "compute:pure",
) -> str:
    """A small right manifest. `top` is TOML for more top fields, `args` for `[args.properties.X]`
    tables."""
    return MANIFEST.format(
        name=name,
        version=version,
        effect=effect,
        timeout_s=timeout_s,
        top=top,
        args=args,
        right=right,
    )


def home_settings(tmp_path: Path, **values: Any) -> Settings:
    """Settings of a home below `tmp_path`, whatever the environment says."""
    values.setdefault("metnos_home", tmp_path / "home")
    values.setdefault("metnos_tz", "Europe/Rome")
    return Settings(_env_file=None, **values)  # type: ignore[call-arg]


def signed_home(tmp_path: Path, **values: Any) -> Settings:
    """A home with every executor of the tree, staged and signed as `metnos setup` does it.

    Staged from a copy of the tree whose digests are fresh, so that work in progress can be tried;
    `tests/catalog/test_release.py` is what tells when the committed digests are stale. The real
    staging runs once in a test run; the homes of one run are copies and share the owner's key.
    """
    settings = home_settings(tmp_path, **values)
    _put_staged(settings.metnos_home)
    return settings


def prepare_home(home: Path) -> None:
    """Put the staged executors of this test run into a home that has none yet, as its first start
    would: staging them anew for each home is most of what a small test costs."""
    if not home.exists():
        _put_staged(home)


def _put_staged(home: Path) -> None:
    """Write the staged home of this test run there: a third of what copying its files costs."""
    folders, files = _staged_once()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    for folder in folders:
        (home / folder).mkdir(mode=0o700, exist_ok=True)
    base = f"{home}/"
    for name, data in files:
        handle = os.open(base + name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, data)
        finally:
            os.close(handle)


@cache
def _staged_once() -> tuple[tuple[str, ...], tuple[tuple[str, bytes], ...]]:
    """The folders of a staged home, outer ones first, and its files with what they hold."""
    with tempfile.TemporaryDirectory(prefix="metnos-home-") as scratch:
        home = _staged_in(Path(scratch))
        below = sorted(home.rglob("*"))
        return (
            tuple(p.relative_to(home).as_posix() for p in below if p.is_dir()),
            tuple((p.relative_to(home).as_posix(), p.read_bytes()) for p in below if p.is_file()),
        )


def _staged_in(scratch: Path) -> Path:
    settings = home_settings(scratch)
    report = stage_tree(settings, scratch / "release")
    assert not report.refused, report.refused
    return settings.metnos_home


def stage_tree(settings: Settings, scratch: Path) -> StageReport:
    """Stage the executors of the working tree through a copy in `scratch`."""
    copy_tree(REPO / "executors", scratch / "executors")
    refresh_digests(scratch)
    return stage(settings, root=scratch)


def copy_tree(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        hidden = "__pycache__" in path.parts or path.name.startswith(".")
        if path.is_file() and not hidden and path.suffix != ".pyc":
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())


def signed_executor(
    settings: Settings, manifest: str, code: str | dict[str, str]
) -> LoadedExecutor:
    """Put an executor of these two texts into the home, signed, and return it as loaded.

    `code` is `main.py`, or path → text. `[files]` of the manifest is filled in. A home without
    `_sdk` gets the tree's. Fails when the loader refuses it.
    """
    if not (settings.metnos_home / "executors" / "_sdk").exists():
        install_unit(settings, "_sdk", tree_unit("_sdk"))
    texts = {"main.py": code} if isinstance(code, str) else code
    files = {path: text.encode() for path, text in texts.items()}
    name = str(tomllib.loads(manifest)["name"])
    install_unit(settings, name, {**files, "manifest.toml": manifest.encode()})
    catalog = CatalogLoader.of(settings).current()
    assert name in catalog.executors, catalog.rejected
    return catalog.executors[name]


def install_unit(settings: Settings, name: str, files: dict[str, bytes]) -> None:
    """Put a folder with these files into the home, with fresh `[files]` and signature."""
    owner = load_or_create_owner_key(settings.metnos_home / "private")
    executors = settings.metnos_home / "executors"
    executors.mkdir(mode=0o700, parents=True, exist_ok=True)
    code = {p: d for p, d in files.items() if p not in {"manifest.toml", "manifest.sig"}}
    manifest = with_files(files["manifest.toml"], code)
    signature = sign_manifest(owner.secret, manifest)
    install_folder(
        executors / name,
        {**code, "manifest.toml": manifest, "manifest.sig": signature},
        workshop=executors / WORKSHOP,
    )


def tree_unit(name: str) -> dict[str, bytes]:
    """The files of one unit of the working tree."""
    folder = REPO / "executors" / name
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
