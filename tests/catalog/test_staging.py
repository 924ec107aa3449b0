"""Staging: from the release to the home, again and again, whatever happened in between."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import core.catalog.files
from core.catalog.floors import Floors
from core.catalog.loader import CatalogLoader
from core.catalog.release import refresh_digests
from core.catalog.staging import is_staged_current, sign_folder, stage
from core.config import Settings
from core.errors import CatalogError
from tests.support.executors import (
    PURE_CODE,
    home_settings,
    manifest_toml,
    signed_executor,
    tree_unit,
)

NEW_CODE = PURE_CODE.replace("1", "2")


class Release:
    """A small release in a temporary folder, changed as releases change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        sdk = tree_unit("_sdk")
        self.put("_sdk", {"manifest.toml": sdk["manifest.toml"].decode(), "call.py": "X = 1\n"})
        self.put("get_now", {"manifest.toml": manifest_toml("get_now"), "main.py": PURE_CODE})
        self.put(
            "find_files", {"manifest.toml": manifest_toml("find_files"), "main.py": PURE_CODE}
        )

    def put(self, unit: str, files: dict[str, str]) -> None:
        folder = self.root / "executors" / unit
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            (folder / path).write_text(text, encoding="utf-8")
        refresh_digests(self.root)

    def update(self, unit: str, version: str, code: str = NEW_CODE) -> None:
        self.put(unit, {"manifest.toml": manifest_toml(unit, version=version), "main.py": code})

    def drop(self, unit: str) -> None:
        shutil.rmtree(self.root / "executors" / unit)
        refresh_digests(self.root)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return home_settings(tmp_path)


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path / "release")


def code_in(settings: Settings, name: str = "find_files") -> str:
    catalog = CatalogLoader.of(settings).current()
    assert not catalog.rejected
    return catalog.executors[name].files["main.py"].decode()


def test_stage_when_home_is_new_copies_signs_and_sets_floors(settings: Settings, release: Release):
    assert not is_staged_current(settings, root=release.root)

    report = stage(settings, root=release.root)

    assert report.staged == ("_sdk", "find_files", "get_now")
    assert set(CatalogLoader.of(settings).current().executors) == {"find_files", "get_now"}
    floors = Floors(settings.metnos_home / "private").read()
    assert floors == {"_sdk": "1.0.0", "find_files": "1.0.0", "get_now": "1.0.0"}
    assert is_staged_current(settings, root=release.root)
    for path in settings.metnos_home.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_stage_when_repeated_changes_nothing(settings: Settings, release: Release):
    stage(settings, root=release.root)
    before = {p: p.stat().st_mtime_ns for p in (settings.metnos_home / "executors").rglob("*")}

    report = stage(settings, root=release.root)

    after = {p: p.stat().st_mtime_ns for p in (settings.metnos_home / "executors").rglob("*")}
    assert report.unchanged == ("_sdk", "find_files", "get_now")
    assert (report.staged, report.removed, report.refused) == ((), (), ())
    assert before == after


def test_stage_never_copies_what_the_list_does_not_hold(settings: Settings, release: Release):
    folder = release.root / "executors" / "find_files"
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "main.cpython-311.pyc").write_bytes(b"x")
    (folder / "late.txt").write_text("not in the list", encoding="utf-8")

    stage(settings, root=release.root)

    names = {p.name for p in (settings.metnos_home / "executors" / "find_files").iterdir()}
    assert names == {"main.py", "manifest.toml", "manifest.sig"}


def test_stage_when_release_changed_brings_the_new_version(settings: Settings, release: Release):
    stage(settings, root=release.root)
    release.update("find_files", "1.1.0")
    assert not is_staged_current(settings, root=release.root)

    report = stage(settings, root=release.root)

    assert report.staged == ("find_files",)
    assert code_in(settings) == NEW_CODE


def test_stage_when_source_differs_from_the_list_refuses_that_one(
    settings: Settings, release: Release
):
    stage(settings, root=release.root)
    release.update("get_now", "1.0.1")
    (release.root / "executors" / "find_files" / "main.py").write_text("evil", encoding="utf-8")

    report = stage(settings, root=release.root)

    assert [(r.name, r.reason_code) for r in report.refused] == [("find_files", "digest_mismatch")]
    assert report.staged == ("get_now",)
    assert code_in(settings) == PURE_CODE
    assert not is_staged_current(settings, root=release.root)


def become_a_symlink(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to("/nowhere")


def become_a_file(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.write_text("x", encoding="utf-8")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: (folder / "main.py").write_text("evil", encoding="utf-8"),
        lambda folder: (folder / "main.py").unlink(),
        lambda folder: (folder / "manifest.sig").write_bytes(b""),
        lambda folder: (folder / "extra.pyc").write_bytes(b""),
        shutil.rmtree,
        become_a_symlink,
        become_a_file,
    ],
    ids=["edited", "missing", "unsigned", "bytecode", "gone", "symlink", "file"],
)
def test_stage_when_home_copy_is_damaged_puts_it_right(
    settings: Settings, release: Release, spoil: Callable[[Path], object]
):
    stage(settings, root=release.root)
    spoil(settings.metnos_home / "executors" / "find_files")

    report = stage(settings, root=release.root)

    assert report.staged == ("find_files",)
    assert code_in(settings) == PURE_CODE


def test_stage_removes_what_left_the_release_but_not_the_persons_own(
    settings: Settings, release: Release
):
    stage(settings, root=release.root)
    signed_executor(settings, manifest_toml("list_dirs"), PURE_CODE)
    release.drop("get_now")

    report = stage(settings, root=release.root)

    assert report.removed == ("get_now",)
    assert set(CatalogLoader.of(settings).current().executors) == {"find_files", "list_dirs"}


def test_stage_keeps_what_the_person_changed_and_signed(settings: Settings, release: Release):
    stage(settings, root=release.root)
    mine = settings.metnos_home / "executors" / "find_files" / "main.py"
    mine.write_text(NEW_CODE, encoding="utf-8")
    sign_folder(settings, "find_files")
    release.update("find_files", "1.2.0", code=PURE_CODE + "# theirs\n")

    kept = stage(settings, root=release.root)
    again = stage(settings, root=release.root)
    code = code_in(settings)
    forced = stage(settings, root=release.root, force=True)

    assert kept.kept == again.kept == ("find_files",)
    assert code == NEW_CODE
    assert forced.staged == ("find_files",)
    assert code_in(settings).endswith("# theirs\n")


def test_stage_keeps_the_persons_own_when_it_leaves_the_release(
    settings: Settings, release: Release
):
    stage(settings, root=release.root)
    mine = settings.metnos_home / "executors" / "find_files" / "main.py"
    mine.write_text(NEW_CODE, encoding="utf-8")
    sign_folder(settings, "find_files")
    release.drop("find_files")

    assert stage(settings, root=release.root).kept == ("find_files",)
    assert stage(settings, root=release.root).removed == ()
    assert code_in(settings) == NEW_CODE


def test_stage_when_release_is_older_refuses_unless_allowed(settings: Settings, release: Release):
    release.update("find_files", "2.0.0")
    stage(settings, root=release.root)
    release.update("find_files", "1.9.0", code=PURE_CODE)

    refused = stage(settings, root=release.root)
    code = code_in(settings)
    allowed = stage(settings, root=release.root, allow_downgrade=True)

    assert [(r.name, r.reason_code) for r in refused.refused] == [("find_files", "downgrade")]
    assert code == NEW_CODE
    assert allowed.staged == ("find_files",)
    assert code_in(settings) == PURE_CODE


def test_stage_when_floors_are_damaged_makes_them_anew(settings: Settings, release: Release):
    stage(settings, root=release.root)
    floors = Floors(settings.metnos_home / "private")
    floors.path.write_text("{", encoding="utf-8")
    release.update("find_files", "1.1.0")

    stage(settings, root=release.root)

    assert code_in(settings) == NEW_CODE
    assert floors.read()["find_files"] == "1.1.0"


def test_stage_when_record_is_damaged_still_works(settings: Settings, release: Release):
    stage(settings, root=release.root)
    (settings.metnos_home / "private" / "staged.json").write_text("[", encoding="utf-8")

    report = stage(settings, root=release.root)

    assert report.unchanged == ("_sdk", "find_files", "get_now")


def test_stage_when_list_is_damaged_touches_nothing(settings: Settings, release: Release):
    (release.root / "executors" / "DIGESTS").write_text("nonsense\n", encoding="utf-8")

    with pytest.raises(CatalogError):
        stage(settings, root=release.root)

    assert not (settings.metnos_home / "executors").exists()


def test_loader_when_a_folder_is_exchanged_while_it_is_read_takes_the_new_one(
    settings: Settings, release: Release, monkeypatch: pytest.MonkeyPatch
):
    """A running engine never has a turn without an executor because setup runs beside it."""
    stage(settings, root=release.root)
    release.update("find_files", "1.1.0")
    read = core.catalog.files._read_exactly
    staged: list[str] = []

    def read_slowly(descriptor: int, size: int) -> bytes | None:
        data = read(descriptor, size)
        # Between the first file of the old folder and its second one.
        if data is not None and data == PURE_CODE.encode() and not staged:
            staged.append("now")
            staged.extend(stage(settings, root=release.root).staged)
        return data

    monkeypatch.setattr(core.catalog.files, "_read_exactly", read_slowly)
    catalog = CatalogLoader.of(settings).current()

    assert staged == ["now", "find_files"]
    assert catalog.rejected == ()
    assert catalog.executors["find_files"].manifest.version == "1.1.0"


class Killed(BaseException):
    """What a SIGKILL is to a failpoint: nothing catches it."""


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "two_renames"])
def test_stage_when_killed_at_any_write_leaves_a_working_catalogue(
    settings: Settings,
    release: Release,
    monkeypatch: pytest.MonkeyPatch,
    exchange: bool,
):
    """Old and new executors both run after every kill; the next staging finishes and takes
    nothing for the person's own."""
    stage(settings, root=release.root)
    release.update("find_files", "1.1.0")
    release.update("get_now", "1.1.0")
    if not exchange:
        monkeypatch.setattr(core.catalog.files, "_exchange_in_one", lambda *_: False)
    snapshot = settings.metnos_home.with_name("snapshot")
    shutil.copytree(settings.metnos_home, snapshot)

    points = 0
    while points < 200:
        shutil.rmtree(settings.metnos_home)
        shutil.copytree(snapshot, settings.metnos_home)
        if not _killed_at(points, settings, release, monkeypatch):
            break
        points += 1
        catalog = CatalogLoader.of(settings).current()
        missing = {"find_files", "get_now"} - set(catalog.executors)
        assert not catalog.rejected
        assert not missing or not exchange
        release_2 = stage(settings, root=release.root)
        assert release_2.kept == ()
        assert code_in(settings) == NEW_CODE
        assert not (settings.metnos_home / "executors" / ".staging").exists()

    print(f"\nkill points: {points}")
    assert points > 10


def _killed_at(
    point: int, settings: Settings, release: Release, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Stage and die at the `point`-th write, sync or rename. False: it finished before that."""
    count = 0
    done = False
    originals = {n: getattr(core.catalog.files, n) for n in ("_write_new", "sync_folder")}

    def dying(name: str) -> Callable[..., None]:
        def step(*args: object) -> None:
            nonlocal count
            count += 1
            if count > point:
                raise Killed
            originals[name](*args)

        return step

    with monkeypatch.context() as patch:
        for name in originals:
            patch.setattr(core.catalog.files, name, dying(name))
        rename = Path.rename

        def dying_rename(self: Path, target: Path) -> Path:
            nonlocal count
            count += 1
            if count > point:
                raise Killed
            return rename(self, target)

        patch.setattr(Path, "rename", dying_rename)
        # A killed process cleans nothing up.
        patch.setattr(core.catalog.files, "remove_tree", lambda path: None)
        try:
            stage(settings, root=release.root)
            done = True
        except Killed:
            pass
    return not done


def test_sign_folder_takes_the_persons_change_in(settings: Settings, release: Release):
    stage(settings, root=release.root)
    folder = settings.metnos_home / "executors" / "find_files"
    (folder / "main.py").write_text(NEW_CODE, encoding="utf-8")
    (folder / "words.txt").write_text("x", encoding="utf-8")

    assert sign_folder(settings, "find_files") == "1.0.0"

    assert code_in(settings) == NEW_CODE


def test_sign_folder_below_the_floor_needs_the_persons_word(settings: Settings, release: Release):
    release.update("find_files", "2.0.0")
    stage(settings, root=release.root)
    folder = settings.metnos_home / "executors" / "find_files"
    old = (folder / "manifest.toml").read_text("utf-8").replace('"2.0.0"', '"1.5.0"')
    (folder / "manifest.toml").write_text(old, encoding="utf-8")

    with pytest.raises(CatalogError) as refusal:
        sign_folder(settings, "find_files")
    assert refusal.value.params["reason"] == "downgrade"

    assert sign_folder(settings, "find_files", allow_downgrade=True) == "1.5.0"
    assert Floors(settings.metnos_home / "private").read()["find_files"] == "1.5.0"


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: (f / "main.py").write_text("def run(:", encoding="utf-8"), "bad_manifest"),
        (lambda f: (f / "x.pyc").write_bytes(b""), "bytecode"),
        (lambda f: (f / "manifest.toml").unlink(), "missing_file"),
        (lambda f: (f / "manifest.toml").write_bytes(b"\xff"), "bad_toml"),
        (lambda f: (f / "manifest.toml").write_bytes(b"= ="), "bad_toml"),
        (lambda f: (f / "link").symlink_to("/etc/passwd"), "symlink"),
    ],
)
def test_sign_folder_when_it_is_not_fit_refuses(
    settings: Settings, release: Release, spoil: Callable[[Path], object], reason: str
):
    stage(settings, root=release.root)
    spoil(settings.metnos_home / "executors" / "find_files")

    with pytest.raises(CatalogError) as refusal:
        sign_folder(settings, "find_files")

    assert refusal.value.params["reason"] == reason


@pytest.mark.parametrize("name", ["../private", "find_fіles", "nothing", "get_places"])
def test_sign_folder_when_there_is_no_such_executor_refuses(
    settings: Settings, release: Release, name: str
):
    stage(settings, root=release.root)

    with pytest.raises(CatalogError):
        sign_folder(settings, name)


def test_record_holds_only_digests(settings: Settings, release: Release):
    stage(settings, root=release.root)

    record = json.loads((settings.metnos_home / "private" / "staged.json").read_text("utf-8"))

    assert set(record) == {"digests", "signed"}
