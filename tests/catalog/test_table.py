"""The table of executors in the README."""

from __future__ import annotations

from core.catalog.digests import main
from core.catalog.table import refresh_table
from tests.support.executors import REPO, SHIPPED


def test_table_in_the_readme_is_that_of_the_manifests():
    assert not refresh_table(REPO, write=False), "run `make digests`"

    rows = [line for line in (REPO / "README.md").read_text("utf-8").splitlines() if "| `" in line]
    assert {row.split("`")[1] for row in rows} >= set(SHIPPED)


def test_table_is_renewed_together_with_the_digests(tmp_path, capsys):
    folder = tmp_path / "executors" / "get_now"
    folder.mkdir(parents=True)
    for name in ("manifest.toml", "main.py"):
        (folder / name).write_bytes((REPO / "executors" / "get_now" / name).read_bytes())
    readme = tmp_path / "README.md"
    marks = "<!-- executors: made by `make digests` -->\n{}<!-- end of executors -->\n"
    readme.write_text(f"# House\n\n{marks.format('old')}\nmore\n", "utf-8")

    main(["--root", str(tmp_path)])

    text = readme.read_text("utf-8")
    assert "| `get_now` |" in text
    assert "old" not in text
    assert text.startswith("# House\n")
    assert text.endswith("\nmore\n")
    assert "README.md" in capsys.readouterr().out
    assert not refresh_table(tmp_path)


def test_readme_without_marks_is_left_alone(tmp_path):
    (tmp_path / "README.md").write_text("nothing", "utf-8")

    assert not refresh_table(tmp_path)
