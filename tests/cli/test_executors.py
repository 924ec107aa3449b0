"""`metnos executors` over the shipped ones, tampered ones and one's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.config import load_settings
from tests.cli.conftest import Cli
from tests.support.executors import SHIPPED, manifest_toml


@pytest.fixture
def home(cli: Cli) -> Path:
    assert cli("setup").status == 0
    return cli.home


def test_list_shows_what_runs_in_the_language_asked(cli: Cli, home: Path) -> None:
    cli.env(METNOS_LANG="it")

    ran = cli("executors", "list")

    assert ran.status == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == SHIPPED
    assert "Cerca file" in ran.out


def test_list_as_json_can_be_read(cli: Cli, home: Path) -> None:
    found = json.loads(cli("executors", "list", "--json").out)

    assert {entry["name"] for entry in found} >= {"get_now", "write_files"}
    assert all(entry["runs"] for entry in found)


def test_list_without_a_home_says_to_set_up(cli: Cli) -> None:
    ran = cli("executors", "list")

    assert ran.status == 1
    assert "metnos setup" in ran.err


def test_show_tells_arguments_and_permissions(cli: Cli, home: Path) -> None:
    ran = cli("executors", "show", "find_files")

    assert "patterns" in ran.out
    assert "fs:read" in ran.out


def test_show_of_an_unknown_one_fails(cli: Cli, home: Path) -> None:
    assert cli("executors", "show", "fly_kites").status == 1


def test_verify_names_the_reason_and_the_rest_runs(cli: Cli, home: Path) -> None:
    (home / "executors" / "get_now" / "extra.py").write_text("", encoding="utf-8")

    ran = cli("executors", "verify")

    assert ran.status == 1
    assert next(x for x in ran.out.splitlines() if "get_now" in x).endswith("(extra.py)")
    assert "✓ find_files 1.0.0" in ran.out


def test_verify_as_json_holds_the_reason_code(cli: Cli, home: Path) -> None:
    (home / "executors" / "get_now" / "manifest.sig").unlink()

    ran = cli("executors", "verify", "--json")

    said = json.loads(ran.out)
    bad = [unit for unit in said["executors"] if not unit["ok"]]
    assert ran.status == 1
    assert [(unit["name"], unit["reason"]) for unit in bad] == [("get_now", "missing_signature")]


def test_sign_makes_an_own_executor_run(cli: Cli, home: Path) -> None:
    folder = home / "executors" / "list_files"
    folder.mkdir(mode=0o700)
    (folder / "main.py").write_text("def run(call):\n    return {'ok': True}\n", encoding="utf-8")
    (folder / "manifest.toml").write_text(manifest_toml("list_files"), encoding="utf-8")
    for path in folder.iterdir():
        path.chmod(0o600)

    ran = cli("executors", "sign", "list_files")

    assert ran.status == 0, ran.err
    assert cli("executors", "show", "list_files").status == 0
    assert load_settings().metnos_home == home


def test_sign_below_the_floor_needs_the_option(cli: Cli, home: Path) -> None:
    manifest = home / "executors" / "get_now" / "manifest.toml"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('version = "1.0.0"', 'version = "0.9.0"'), encoding="utf-8")

    refused = cli("executors", "sign", "get_now")
    accepted = cli("executors", "sign", "get_now", "--allow-downgrade")

    assert refused.status == 1
    assert "0.9.0 < 1.0.0" in refused.err
    assert accepted.status == 0


def test_sign_of_nothing_says_why(cli: Cli, home: Path) -> None:
    ran = cli("executors", "sign", "../../etc")

    assert ran.status == 1
    assert len(ran.err.splitlines()) == 1
