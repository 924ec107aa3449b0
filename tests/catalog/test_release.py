"""The digest list and `[files]`, kept in step with the tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from core.catalog.digests import main
from core.catalog.release import read_digests, refresh_digests, shipped_root, with_files
from core.errors import CatalogError
from tests.support.executors import PURE_CODE, REPO, manifest_toml


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "executors" / "find_files"
    folder.mkdir(parents=True)
    (folder / "manifest.toml").write_text(manifest_toml("find_files"), encoding="utf-8")
    (folder / "main.py").write_text(PURE_CODE, encoding="utf-8")
    return tmp_path


def test_digests_of_the_tree_are_fresh():
    """Run `make digests` and commit what it changed."""
    found = refresh_digests(REPO, write=False)

    assert found.problems == ()
    assert found.stale == ()


def test_refresh_digests_when_repeated_finds_nothing(tree: Path):
    first = refresh_digests(tree)
    second = refresh_digests(tree)

    assert first.stale == ("find_files/manifest.toml", "DIGESTS")
    assert second.stale == ()
    assert set(read_digests(tree)) == {"find_files"}


def test_refresh_digests_leaves_the_rest_of_the_manifest_as_it_is(tree: Path):
    manifest = tree / "executors" / "find_files" / "manifest.toml"
    before = manifest.read_text("utf-8")

    refresh_digests(tree)

    assert manifest.read_text("utf-8").startswith(before)


def test_refresh_digests_leaves_out_hidden_and_compiled_files(tree: Path):
    folder = tree / "executors" / "find_files"
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "main.pyc").write_bytes(b"")
    (folder / ".notes").write_text("x", encoding="utf-8")

    refresh_digests(tree)

    assert set(read_digests(tree)["find_files"]) == {"main.py", "manifest.toml"}


def test_digests_check_tells_what_is_stale_and_writes_nothing(
    tree: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["--root", str(tree), "--check"]) == 1
    assert "stale: executors/DIGESTS" in capsys.readouterr().out
    assert not (tree / "executors" / "DIGESTS").exists()
    assert main(["--root", str(tree)]) == 0
    assert main(["--root", str(tree), "--check"]) == 0


def test_digests_name_an_executor_whose_manifest_does_not_pass(
    tree: Path, capsys: pytest.CaptureFixture[str]
):
    (tree / "executors" / "find_files" / "main.py").write_text("def walk(): ...", encoding="utf-8")

    assert main(["--root", str(tree)]) == 1
    assert "find_files: main.py does not define run" in capsys.readouterr().out


def test_digest_list_is_what_sha256sum_reads(tree: Path):
    refresh_digests(tree)

    subprocess.run(["sha256sum", "--quiet", "-c", "DIGESTS"], cwd=tree / "executors", check=True)


@pytest.mark.parametrize(
    "line", ["x", "0" * 64 + "  ../x/main.py", "0" * 64 + "  a/../../b", "0" * 64 + " a/b"]
)
def test_read_digests_when_damaged_refuses(tree: Path, line: str):
    (tree / "executors" / "DIGESTS").write_text(line + "\n", encoding="utf-8")

    with pytest.raises(CatalogError):
        read_digests(tree)


def test_with_files_replaces_the_table_wherever_it_stands():
    manifest = b'a = 1\n\n[files] # written\n"old.py" = "x"\n\n[limits]\ncpu_s = 1\n'

    text = with_files(manifest, {"main.py": b""}).decode()

    assert "old.py" not in text
    assert text.startswith('a = 1\n\n[files]\n"main.py" = "e3b0')
    assert text.endswith("\n\n[limits]\ncpu_s = 1\n")


def test_shipped_root_of_a_source_tree_is_the_tree():
    assert shipped_root() == REPO
