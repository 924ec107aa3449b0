"""The deep look of `executors verify` and `doctor`, and the texts of its refusals."""

from __future__ import annotations

from pathlib import Path

from core.catalog.reasons import Reason
from core.catalog.report import verify_report
from core.config import LANGS, Settings
from core.i18n import Texts
from tests.support.executors import (
    REPO,
    home_settings,
    manifest_toml,
    signed_executor,
    signed_home,
)


def test_verify_report_when_all_is_well_lists_every_unit(home: Settings):
    report = verify_report(home)

    assert report.ok
    assert [(u.name, u.version) for u in report.units] == [
        ("_sdk", "1.0.0"),
        ("find_files", "1.2.0"),
        ("get_now", "1.0.0"),
    ]


def test_verify_report_when_one_is_spoilt_says_why_and_goes_on(home: Settings, folder: Path):
    (folder / "main.py").write_text("evil", encoding="utf-8")

    report = verify_report(home)

    assert not report.ok
    bad = [unit for unit in report.units if not unit.ok]
    assert [(u.name, u.rejection and u.rejection.message_key) for u in bad] == [
        ("find_files", "reject.digest_mismatch")
    ]


def test_verify_report_looks_deeper_than_the_loader(home: Settings):
    signed_executor(home, manifest_toml("list_dirs"), "def walk(call): ...\n")

    report = verify_report(home)

    assert [u.name for u in report.units if not u.ok] == ["list_dirs"]


def test_verify_report_when_home_is_empty_is_not_ok(tmp_path: Path):
    assert not verify_report(home_settings(tmp_path)).ok


def test_every_reason_has_its_text_in_every_language():
    texts = Texts.load(REPO / "locales", strict=True)

    for reason in Reason:
        for lang in LANGS:
            assert texts.say(f"reject.{reason.value}", lang)


def test_signed_home_holds_every_executor_of_the_tree(tmp_path: Path):
    report = verify_report(signed_home(tmp_path))

    assert [u for u in report.units if not u.ok] == []
    assert {u.name for u in report.units} >= {"_sdk", "get_now"}
