"""`metnos model`, without fetching a gigabyte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.errors import ErrorCode, ModelPullFailed
from core.llm import local_model
from tests.cli.conftest import Cli


@pytest.fixture
def no_model(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.env(METNOS_LLM_BASE_URL="", METNOS_LLM_MODEL="")
    monkeypatch.setattr("core.llm.local_server.runtime_missing", lambda: None)


def pulls(monkeypatch: pytest.MonkeyPatch, result: Path | BaseException) -> list[Path]:
    """Let the fetching be this: some progress, then a path or an exception."""
    asked: list[Path] = []

    def pull_model(home: Path, progress: local_model.Progress) -> Path:
        asked.append(home)
        for done in range(0, 1001, 5):
            progress(done * 10**6, 10**9, "index")
        progress(10**9, 10**9, "verifying")
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(local_model, "pull_model", pull_model)
    return asked


def test_pull_says_size_and_room_first_and_progress_in_plain_lines(
    cli: Cli, no_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulls(monkeypatch, cli.home / "models" / "m.gguf")

    ran = cli("model", "pull")

    assert ran.status == 0
    assert ran.out.startswith("Fetching the bundled model: 1.1 GB to go, the disk has")
    lines = ran.err.splitlines()
    assert len(lines) == 12
    assert lines[5].startswith("50 %")
    assert "\r" not in ran.err


def test_pull_interrupted_says_how_to_go_on(
    cli: Cli, no_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulls(monkeypatch, KeyboardInterrupt())

    ran = cli("model", "pull")

    assert ran.status == 130
    assert "metnos model pull" in ran.err


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            ModelPullFailed(ErrorCode.DISK_FULL, "particulars", needed=2 * 10**9, free=10**9),
            "The model needs 2 GB and the disk has 1 GB free.",
        ),
        (
            ModelPullFailed(ErrorCode.NETWORK, "particulars"),
            "The model did not come (particulars).",
        ),
    ],
    ids=["no room", "no network"],
)
def test_pull_that_fails_is_a_sentence(
    cli: Cli, no_model: None, monkeypatch: pytest.MonkeyPatch, error: ModelPullFailed, says: str
) -> None:
    pulls(monkeypatch, error)

    ran = cli("model", "pull")

    assert ran.status == 1
    assert ran.err.splitlines()[-1].startswith(says)


def test_pull_if_needed_leaves_people_with_a_model_alone(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pulls(monkeypatch, cli.home)

    ran = cli("model", "pull", "--if-needed")

    assert (ran.status, ran.out, ran.err, asked) == (0, "", "", [])


def test_pull_if_needed_fetches_nothing_that_could_not_run(
    cli: Cli, no_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pulls(monkeypatch, cli.home)
    monkeypatch.setattr("core.llm.local_server.runtime_missing", lambda: "pip install it")

    ran = cli("model", "pull", "--if-needed")

    assert (ran.status, asked) == (1, [])
    assert "pip install it" in ran.err


def test_status_without_any_model_fails_and_names_the_command(cli: Cli, no_model: None) -> None:
    ran = cli("model", "status")

    assert ran.status == 1
    assert "metnos model pull" in ran.out


def test_status_as_json_shows_tiers_without_keys(cli: Cli) -> None:
    cli.env(
        METNOS_LLM_API_KEY="sk-very-secret-key", METNOS_LLM_BASE_URL="http://u:pw@m.example/v1"
    )

    ran = cli("model", "status", "--json")

    said = json.loads(ran.out)
    assert said["ready"] is True
    assert said["tiers"] == [
        {
            "tier": "fast",
            "provider": "openai",
            "address": "http://m.example/v1",
            "model": "scripted",
        }
    ]
    assert "secret" not in ran.out


def test_serve_without_the_model_says_what_is_missing(cli: Cli, no_model: None) -> None:
    ran = cli("model", "serve")

    assert ran.status == 1
    assert "metnos model pull" in ran.err
