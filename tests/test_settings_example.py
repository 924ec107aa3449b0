"""`.env.example` and the README name every setting there is, and no other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from core.config import Settings, TierSettings, load_settings

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = {name.upper() for name in Settings.model_fields if name != "tiers"}


def test_example_names_every_setting_once() -> None:
    named = re.findall(r"^#([A-Z][A-Z_]+)=", EXAMPLE, re.MULTILINE)

    assert sorted(named) == sorted(SETTINGS)


def test_example_changes_nothing_as_it_stands() -> None:
    assert all(line.startswith("#") for line in EXAMPLE.splitlines() if line.strip())


def test_example_lines_are_valid_when_uncommented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    lines = re.findall(r"^#([A-Z][A-Z_]+=.*)$", EXAMPLE, re.MULTILINE)
    (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")

    settings = load_settings(metnos_home=tmp_path / "home")

    assert settings.metnos_tz == "Europe/Rome"
    assert settings.metnos_judge_threshold == 0.3
    assert settings.telegram_bot_token is None


def test_example_of_config_toml_names_every_field_of_a_tier_and_is_valid(tmp_path: Path) -> None:
    block = re.findall(r"^#   (.*)$", EXAMPLE, re.MULTILINE)
    text = "\n".join(block)
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")

    settings = load_settings(metnos_home=tmp_path)

    assert set(tomllib.loads(text)["tiers"]["fast"]) == set(TierSettings.model_fields)
    assert settings.tiers["fast"].fallback == ("middle",)


def test_readme_names_every_setting() -> None:
    missing = {name for name in SETTINGS if f"`{name}`" not in README}

    assert missing == set()
