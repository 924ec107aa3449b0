"""An executor of one's own: a folder to start from, and the folder as it would be once signed."""

from __future__ import annotations

from pathlib import Path

from core.catalog.files import read_folder
from core.catalog.loaded import LoadedExecutor
from core.catalog.manifest import parse_manifest
from core.catalog.names import name_refusal
from core.catalog.reasons import Reason, refused
from core.catalog.release import check_unit, with_files
from core.catalog.verify import MANIFEST_FILE, code_of
from core.vocabulary import is_read_only

TEMPLATES = Path(__file__).parent / "templates"


def make(folder: Path, name: str) -> list[Path]:
    """Write the files of a new executor below `folder/NAME`; the paths. It works as it is: its
    example passes. Raises `SignatureRefused` for a name that no executor may have, `OSError`,
    `FileExistsError` when something is there already."""
    if (reason := name_refusal(name)) is not None:
        raise refused(reason)
    template = TEMPLATES / ("reads" if is_read_only(name) else "changes")
    target = folder / name
    target.mkdir(parents=True)
    made = []
    for source in sorted(template.iterdir()):
        path = target / source.name.removesuffix(".in")
        path.write_text(source.read_text(encoding="utf-8").replace("NAME", name), encoding="utf-8")
        made.append(path)
    return made


def loaded(folder: Path) -> LoadedExecutor:
    """An executor as it would be if this folder were signed now. Raises `CatalogError` with what
    is wrong with it."""
    files = read_folder(folder).files
    if MANIFEST_FILE not in files:
        raise refused(Reason.MISSING_FILE, MANIFEST_FILE)
    code = code_of(files)
    try:
        manifest = with_files(files[MANIFEST_FILE], code)
    except UnicodeDecodeError as exc:
        raise refused(Reason.BAD_TOML, MANIFEST_FILE) from exc
    check_unit(folder.name, {MANIFEST_FILE: manifest, **code})
    return LoadedExecutor(parse_manifest(manifest, folder=folder.name), code)
