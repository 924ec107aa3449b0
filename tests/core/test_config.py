"""Settings: where they come from, in which order, and what a bad one is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.config import Settings, load_settings
from core.errors import SettingsInvalid


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of the machine, an empty current folder."""
    for name in os.environ:
        if name.startswith(("METNOS_", "TELEGRAM_")):
            monkeypatch.delenv(name)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("METNOS_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()


def test_load_settings_without_anything_gives_defaults(tmp_path: Path) -> None:
    settings = load_settings()

    assert settings.metnos_home == tmp_path / "home"
    assert settings.metnos_lang == "it"
    assert settings.metnos_files_roots is None
    assert settings.telegram_bot_token is None


def test_load_settings_environment_wins_over_env_here_over_env_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/.env").write_text("METNOS_LANG=en\nMETNOS_TZ=Europe/Paris\n")
    (tmp_path / "here/.env").write_text("METNOS_TZ=Europe/Rome\nMETNOS_LOG_LEVEL=DEBUG\n")
    monkeypatch.setenv("METNOS_LOG_LEVEL", "ERROR")

    settings = load_settings()

    assert settings.metnos_lang == "en"
    assert settings.metnos_tz == "Europe/Rome"
    assert settings.metnos_log_level == "ERROR"


def test_load_settings_home_named_in_env_here_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("METNOS_HOME")
    other = tmp_path / "other"
    other.mkdir()
    (other / ".env").write_text("METNOS_LANG=en\n")
    (tmp_path / "here/.env").write_text(f"METNOS_HOME={other}\n")

    settings = load_settings()

    assert settings.metnos_home == other
    assert settings.metnos_lang == "en"


def test_load_settings_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METNOS_LANG", "")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "")

    settings = load_settings()

    assert settings.metnos_lang == "it"
    assert settings.telegram_bot_token is None


def test_load_settings_roots_are_split_and_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METNOS_FILES_ROOTS", os.pathsep.join(["~/notes", str(tmp_path), ""]))

    settings = load_settings()

    assert settings.metnos_files_roots == (Path.home() / "notes", tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("METNOS_LANG", "fr", "it or en"),
        ("METNOS_TZ", "Rome", "Europe/Rome"),
        ("METNOS_ENGINE", "warp", "simple"),
        ("METNOS_MODE", "cloud", "hybrid"),
        ("METNOS_LLM_PROVIDER", "acme", "anthropic"),
        ("METNOS_LLM_BASE_URL", "localhost:8080", "http://"),
        ("METNOS_LOG_LEVEL", "LOUD", "INFO"),
        ("METNOS_JUDGE_THRESHOLD", "7", "from 0 to 1"),
        ("TELEGRAM_BASE_URL", "ftp://x", "http://"),
        ("METNOS_LLM_BASE_URL", "http://127.0.0.1:99999/v1", "http://"),
        ("METNOS_LLM_BASE_URL", "http://[::1", "http://"),
        ("METNOS_LLM_API_KEY", "one\ntwo", "ASCII"),
        ("METNOS_LLM_API_KEY", "chi\u00e0ve", "ASCII"),
        ("METNOS_HOME", "~nobody-here/x", "path"),
        ("METNOS_LOG_FILE", "~nobody-here/x", "path"),
        ("METNOS_FILES_ROOTS", "/srv:~nobody-here/x", "path"),
    ],
)
def test_load_settings_bad_value_names_it_and_what_is_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, allowed: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(SettingsInvalid) as refused:
        load_settings()

    assert name in refused.value.detail
    assert allowed in refused.value.detail
    assert refused.value.detail.count("\n") == 0


def test_load_settings_reads_tiers_from_the_homes_config(tmp_path: Path) -> None:
    (tmp_path / "home/config.toml").write_text(
        '[tiers.wise]\nbase_url = "http://nas.example:8080/v1"\nmodel = "m"\nmax_tokens = 99\n'
    )

    settings = load_settings()

    assert settings.tiers["wise"].max_tokens == 99


@pytest.mark.parametrize(
    "text",
    [
        "[tiers.wise\n",
        "surprise = 1\n",
        "[tiers.wise]\nmodel = 1\n",
        "[tiers.odd]\n",
        '[tiers.wise]\nbase_url = "http://nas.example:99999"\n',
        '[tiers.wise]\nbase_url = "nas.example"\n',
        '[tiers.wise]\nbase_url = "http://nas.example"\napi_key = "a\\nb"\n',
    ],
)
def test_load_settings_bad_config_file_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "home/config.toml").write_text(text)

    with pytest.raises(SettingsInvalid) as refused:
        load_settings()

    assert refused.value.detail.count("\n") == 0


def test_load_settings_env_file_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    """As editors of another system write it; its first line would be lost."""
    (tmp_path / "here/.env").write_bytes(b"\xef\xbb\xbfMETNOS_LANG=en\r\n")

    assert load_settings().metnos_lang == "en"


@pytest.mark.parametrize("name", ["here/.env", "home/.env", "home/config.toml"])
def test_load_settings_file_that_is_no_text_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"METNOS_LANG=\xff\xfe\n")

    with pytest.raises(SettingsInvalid) as refused:
        load_settings()

    assert refused.value.params["file"] == str(tmp_path / name)


def test_settings_never_show_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "123456789:AAcanaryAAcanaryAAcanaryAAcanary123"
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", secret)
    monkeypatch.setenv("METNOS_LLM_API_KEY", "sk-canary-canary-canary")
    monkeypatch.setenv("METNOS_LLM_PROVIDER", "sk-wrong-place")

    with pytest.raises(SettingsInvalid) as refused:
        load_settings()
    monkeypatch.delenv("METNOS_LLM_PROVIDER")

    assert "sk-wrong-place" not in refused.value.detail
    shown = repr(load_settings()) + str(load_settings())
    assert "canary" not in shown


def test_every_setting_stands_in_the_example() -> None:
    example = (Path(__file__).parents[2] / ".env.example").read_text(encoding="utf-8")

    missing = [
        name.upper()
        for name in Settings.model_fields
        if name != "tiers" and name.upper() not in example
    ]

    assert missing == []


@pytest.mark.parametrize(
    ("said", "address"),
    [
        ("", "https://photon.komoot.io"),
        ("off", ""),
        (" OFF ", ""),
        ("http://localhost:2322/", "http://localhost:2322"),
        ("photon.example", None),
        ("ftp://photon.example", None),
    ],
)
def test_places_service_is_an_address_or_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, address: str | None
) -> None:
    monkeypatch.setenv("METNOS_PHOTON_URL", said)
    if address is None:
        with pytest.raises(SettingsInvalid, match="METNOS_PHOTON_URL is not valid"):
            load_settings(metnos_home=tmp_path)
    else:
        assert load_settings(metnos_home=tmp_path).services["photon"] == address


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ("", "https://geocoding-api.open-meteo.com"),
        ("off", ""),
        ("http://localhost:8080/", "http://localhost:8080"),
    ],
)
def test_weather_service_looks_up_its_towns_where_it_tells_the_weather(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, places: str
) -> None:
    monkeypatch.setenv("METNOS_WEATHER_URL", said)

    services = load_settings(metnos_home=tmp_path).services

    assert services["weather_places"] == places
    assert services["weather"] == (places if said else "https://api.open-meteo.com")
