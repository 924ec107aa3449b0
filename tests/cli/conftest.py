"""The command line called in this process, in a home and a folder of its own."""

from __future__ import annotations

import io
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.cli import main
from core.config import Settings
from tests.support.executors import prepare_home
from tests.support.scripted_model import Rule, ScriptedModel


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str


@dataclass
class Cli:
    """`cli("pair", "--host")`; `home` and `folder` are where it works, `stdin` what is piped."""

    home: Path
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, stdin: str = "") -> Ran:
        self.monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        self.capsys.readouterr()
        status = main(arguments)
        out, err = self.capsys.readouterr()
        return Ran(status, out, err)

    def env(self, **values: str) -> None:
        for name, value in values.items():
            self.monkeypatch.setenv(name, value)


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cli]:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    home = tmp_path / "home"
    here = Cli(home, folder, monkeypatch, capsys)
    here.env(METNOS_HOME=str(home), METNOS_LANG="en", METNOS_TZ="Europe/Rome")
    here.env(METNOS_LLM_BASE_URL="http://127.0.0.1:9/v1", METNOS_LLM_MODEL="scripted")
    here.env(METNOS_ENGINE="simple", METNOS_MOST_TOOLS="60")
    root = logging.getLogger()
    handlers, level, on_term = list(root.handlers), root.level, signal.getsignal(signal.SIGTERM)
    yield here
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    signal.signal(signal.SIGTERM, on_term)


@pytest.fixture
def prepared(cli: Cli) -> None:
    """The home has its executors already: staging them is most of what a first command takes."""
    prepare_home(cli.home)


@pytest.fixture
def script(cli: Cli) -> Iterator[Callable[[Sequence[Rule]], ScriptedModel]]:
    """Give the command line a scripted model that follows these rules."""
    model = ScriptedModel()
    with model.running() as base_url:
        cli.env(METNOS_LLM_BASE_URL=base_url)

        def use(rules: Sequence[Rule]) -> ScriptedModel:
            model.rules = list(rules)
            return model

        yield use
