"""Acceptance 5: a tampered executor is refused with its reason, is unknown to turns, and alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from core.catalog.report import verify_report
from core.config import Settings
from core.i18n import Texts
from tests.acceptance.scenes import home_of, repetitions, turn_lines
from tests.acceptance.town import open_town
from tests.catalog.test_tampering import CASES, Tamper
from tests.support.executors import PURE_CODE, REPO, manifest_toml, signed_executor
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule

VICTIM = "find_texts"
RULES = [
    Rule(user="cerca", after=0, calls=[(VICTIM, {})]),
    Rule(user="ore", after=0, calls=[("get_now", {})]),
    Rule(text="Ecco."),
]


def install_victim(settings: Settings) -> Path:
    """The executor that the test spoils, whole again, and nothing left of the last spoiling."""
    home = settings.metnos_home
    folder = home / "executors" / VICTIM
    if folder.is_symlink():
        folder.unlink()
    for left in (folder, home / "aside"):
        shutil.rmtree(left, ignore_errors=True)
    for name in ("main.py", "twin.py"):
        (home / name).unlink(missing_ok=True)
    files = {"main.py": PURE_CODE, "data/words.txt": "uno\ndue\n"}
    signed_executor(settings, manifest_toml(VICTIM, version="1.2.0"), files)
    return folder


def chosen_cases() -> list[tuple[str, str, Tamper]]:
    """Every case at the scale of the bar, else one of each reason."""
    if repetitions(len(CASES)) >= len(CASES):
        return CASES
    return list({reason: case for case in CASES for reason in [case[1]]}.values())


async def test_every_tampering_is_named_by_verify_and_unknown_to_turns(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, RULES) as (house, model):
        home = home_of(house)

        async def ends(request: str) -> str | None:
            await ask(house, request)
            error: str | None = turn_lines(home)[-1]["steps"][0]["error_class"]
            return error

        wrong = []
        cases = chosen_cases()
        for name, reason, tamper in cases:
            folder = install_victim(house.settings)
            whole = await ends("cerca")
            offered = VICTIM in model.asked[-1].tool_names

            tamper(folder, house.settings)

            spoilt, other = await ends("cerca"), await ends("che ore sono?")
            still_offered = VICTIM in model.asked[-1].tool_names
            report = verify_report(house.settings)
            bad = {u.name: u.rejection.reason_code for u in report.units if u.rejection}
            found = (whole, offered, spoilt, still_offered, other, bad, report.ok)
            if found != (None, True, "unknown_tool", False, None, {VICTIM: reason}, False):
                wrong.append((name, reason, found))

    print(f"\ntampering: {len(cases) - len(wrong)}/{len(cases)} named and refused, alone")
    assert wrong == []


def code_edited(folder: Path) -> None:
    with (folder / "main.py").open("a", encoding="utf-8") as file:
        file.write("# more\n")


def signature_removed(folder: Path) -> None:
    (folder / "manifest.sig").unlink()


def half_written(folder: Path) -> None:
    path = folder / "main.py"
    path.write_bytes(path.read_bytes()[:100])


def link_put_in(folder: Path) -> None:
    (folder / "extra.py").symlink_to(folder / "main.py")


def bytecode_put_in(folder: Path) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/main.cpython-311.pyc").write_bytes(b"x")


SPOILT = {
    "read_files": ("digest_mismatch", code_edited),
    "find_files": ("missing_signature", signature_removed),
    "write_files": ("digest_mismatch", half_written),
    "list_dirs": ("symlink", link_put_in),
    "get_urls": ("bytecode", bytecode_put_in),
}


@pytest.mark.parametrize("lang", ["it", "en"])
def test_verify_and_doctor_name_each_spoilt_executor_to_the_person(
    tmp_path: Path, lang: str
) -> None:
    """As a person at the machine: the commands, their exit status, their words."""
    texts = Texts.load(REPO / "locales", strict=True)
    with open_town(tmp_path, [], METNOS_LANG=lang) as town:
        town.cli("setup", "--non-interactive")
        assert town.cli("executors", "verify").returncode == 0
        for name, (_, spoil) in SPOILT.items():
            spoil(town.home / "executors" / name)

        told = town.cli("executors", "verify", check=False)
        data = json.loads(town.cli("executors", "verify", "--json", check=False).stdout)
        doctor = town.cli("doctor", check=False)

    assert told.returncode == 1
    assert not data["ok"]
    refused = {u["name"]: u["reason"] for u in data["executors"] if not u["ok"]}
    assert refused == {name: reason for name, (reason, _) in SPOILT.items()}
    assert sum(u["ok"] for u in data["executors"]) >= 8
    for name, (reason, _) in SPOILT.items():
        sentence = texts.say(f"reject.{reason}", lang)
        assert any(name in line and sentence in line for line in told.stdout.splitlines())
        assert name in doctor.stdout
    assert doctor.returncode != 0
    for shown in (told, doctor):
        assert "Traceback" not in shown.stdout + shown.stderr


def test_spoilt_executor_is_unknown_to_the_running_bot_and_the_rest_works(tmp_path: Path) -> None:
    """Spoilt while the bot runs; mended by setup, it works again without a restart."""
    rules = [
        Rule(user="leggi", after=0, calls=[("read_files", {"paths": ["a.md"]})]),
        Rule(user="elenca", after=0, calls=[("list_dirs", {})]),
        Rule(text=lambda ask: "bene" if '"ok": true' in ask.last_result else "manca"),
    ]
    with open_town(tmp_path, rules) as town:
        (town.notes / "a.md").write_text("ciao\n", encoding="utf-8")
        town.telegram.start_bot()
        anna = town.host()

        def said(request: str) -> str:
            town.telegram.say(anna, request)
            return str(town.telegram.expect(anna, "bene|manca")["message"]["text"])

        assert said("leggi a.md") == "bene"
        code_edited(town.home / "executors/read_files")
        assert said("leggi a.md") == "manca"
        assert "read_files" not in town.model.asked[-1].tool_names
        assert said("elenca tutto") == "bene"

        town.cli("setup", "--non-interactive")

        assert said("leggi a.md") == "bene"
