"""The catalogue: the same object while nothing changes, a new one when something does."""

from __future__ import annotations

import os
import shutil
import statistics
import time
from pathlib import Path

from core.catalog.floors import Floors
from core.catalog.keys import TrustRing, load_or_create_owner_key
from core.catalog.loader import CatalogLoader
from core.catalog.signing import new_private_key, public_key
from core.config import Settings
from core.vocabulary import OBJECTS, VERBS
from tests.support.executors import (
    PURE_CODE,
    home_settings,
    install_unit,
    manifest_toml,
    signed_executor,
    tree_unit,
)


def settled(loader: CatalogLoader) -> CatalogLoader:
    """A loader for which no file is so young that it is read twice."""
    loader.current()
    time.sleep(0.05)
    loader.current()
    return loader


def test_current_when_nothing_changed_returns_the_same_object(loader: CatalogLoader):
    catalog = settled(loader).current()

    assert loader.current() is catalog
    assert list(catalog.executors) == ["find_files", "get_now"]
    assert catalog.sdk.version
    assert catalog.sdk.files["call.py"]
    assert set(catalog.executors["find_files"].files) == {"main.py", "data/words.txt"}


def test_current_when_home_is_empty_is_an_empty_catalogue(tmp_path: Path):
    catalog = CatalogLoader.of(home_settings(tmp_path)).current()

    assert dict(catalog.executors) == {}
    assert catalog.rejected == ()


def test_current_when_an_executor_is_added_shows_it(home: Settings, loader: CatalogLoader):
    before = settled(loader).current()

    signed_executor(home, manifest_toml("list_dirs"), PURE_CODE)

    after = loader.current()
    assert set(after.executors) - set(before.executors) == {"list_dirs"}
    assert after.signature != before.signature


def test_current_when_an_executor_is_removed_drops_it(loader: CatalogLoader, folder: Path):
    settled(loader)

    shutil.rmtree(folder)

    assert set(loader.current().executors) == {"get_now"}


def test_current_when_a_refused_executor_is_mended_takes_it_back(
    loader: CatalogLoader, folder: Path
):
    (folder / "extra.txt").write_text("x", encoding="utf-8")
    assert set(settled(loader).current().executors) == {"get_now"}

    (folder / "extra.txt").unlink()

    assert set(loader.current().executors) == {"find_files", "get_now"}


def test_current_when_only_times_changed_keeps_the_object(loader: CatalogLoader, folder: Path):
    catalog = settled(loader).current()

    os.utime(folder / "main.py")

    assert loader.current() is catalog


def test_current_sees_a_change_that_sets_its_times_back_at_once(
    loader: CatalogLoader, folder: Path
):
    """Same size, same mtime, written in the same tick in which it was loaded."""
    path = folder / "main.py"
    for _ in range(20):
        loader.current()
        info = path.stat()
        data = path.read_bytes()
        path.write_bytes(data.replace(b"True", b"Fals"))
        os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        assert "find_files" not in loader.current().executors
        path.write_bytes(data)
        assert "find_files" in loader.current().executors


def test_current_when_owner_key_stops_being_trusted_refuses_all(
    home: Settings, loader: CatalogLoader
):
    settled(loader)
    (home.metnos_home / "private" / "keys" / "trusted" / "owner.pub").unlink()

    catalog = loader.current()

    assert dict(catalog.executors) == {}
    assert {r.reason_code for r in catalog.rejected} == {"unknown_key"}


def test_current_when_revocations_cannot_be_read_trusts_nobody(
    home: Settings, loader: CatalogLoader
):
    settled(loader)
    (home.metnos_home / "private" / "keys" / "revoked").mkdir()

    assert dict(loader.current().executors) == {}


def test_current_when_floors_are_damaged_refuses_all(home: Settings, loader: CatalogLoader):
    settled(loader)
    Floors(home.metnos_home / "private").path.write_text("{", encoding="utf-8")

    catalog = loader.current()

    assert dict(catalog.executors) == {}
    assert "floors.json" in catalog.rejected[0].detail


def test_current_raises_the_floor_to_what_it_loaded(home: Settings, loader: CatalogLoader):
    loader.current()

    assert Floors(home.metnos_home / "private").read()["find_files"] == "1.2.0"


def test_offered_leaves_out_deprecated_and_archived(home: Settings, loader: CatalogLoader):
    for name, lifecycle in (("list_dirs", "deprecated"), ("sort_entries", "candidate")):
        signed_executor(home, manifest_toml(name, top=f'lifecycle = "{lifecycle}"'), PURE_CODE)
    archived = manifest_toml("read_files", top='lifecycle = "archived"').encode()
    install_unit(home, "read_files", {"main.py": PURE_CODE.encode(), "manifest.toml": archived})

    catalog = loader.current()

    assert set(catalog.executors) == {"find_files", "get_now", "list_dirs", "sort_entries"}
    assert set(catalog.offered) == {"find_files", "get_now"}
    assert catalog.rejected == ()


def test_stray_files_and_the_workshop_are_no_executors(home: Settings, loader: CatalogLoader):
    executors = home.metnos_home / "executors"
    (executors / ".staging" / "half").mkdir(parents=True)
    (executors / "notes.txt").write_text("x", encoding="utf-8")

    assert loader.current().rejected == ()


def test_trust_ring_ignores_key_files_that_others_may_write(home: Settings):
    private = home.metnos_home / "private"
    ring = TrustRing(private)
    key = ring.trust(public_key(new_private_key()), name="friend")
    assert key in ring.read().public

    (private / "keys" / "trusted" / "friend.pub").chmod(0o666)

    keys = ring.read()
    assert key not in keys.public
    assert any("friend.pub" in problem for problem in keys.problems)


def test_revoking_the_owner_key_is_not_undone_by_setup(home: Settings, loader: CatalogLoader):
    private = home.metnos_home / "private"
    TrustRing(private).revoke(load_or_create_owner_key(private).key_id)

    load_or_create_owner_key(private)

    assert dict(loader.current().executors) == {}


def test_catalogue_of_a_hundred_prints_its_times(tmp_path: Path):
    """Bar: cold ≤ 200 ms, hot ≤ 1 ms on a calm machine. Printed, not asserted."""
    settings = home_settings(tmp_path)
    install_unit(settings, "_sdk", tree_unit("_sdk"))
    example = (Path(__file__).parents[1] / "support" / "example_manifest.toml").read_text("utf-8")
    names = [f"{verb}_{noun}" for verb in sorted(VERBS) for noun in sorted(OBJECTS)][:100]
    for name in names:
        manifest = example.replace('"move_files"', f'"{name}"').encode()
        install_unit(settings, name, {"main.py": b"x = 1\n" * 900, "manifest.toml": manifest})
    time.sleep(0.05)

    cold, hot = [], []
    for _ in range(3):
        loader = CatalogLoader.of(settings)
        start = time.perf_counter()
        catalog = loader.current()
        cold.append(time.perf_counter() - start)
        assert len(catalog.executors) == 100
    for _ in range(50):
        start = time.perf_counter()
        assert loader.current() is catalog
        hot.append(time.perf_counter() - start)

    print(
        f"\n100 executors: cold {min(cold) * 1e3:.0f} ms, "
        f"hot {statistics.median(hot) * 1e3:.2f} ms (best {min(hot) * 1e3:.2f})"
    )
