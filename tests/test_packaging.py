"""The wheel, built and installed elsewhere, answers a request out of its own files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.scripted_model import Rule, ScriptedModel

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = "from hatchling.build import build_wheel; print(build_wheel({folder!r}))"
    ran = subprocess.run(
        [sys.executable, "-c", build.format(folder=str(folder))],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return folder / ran.stdout.strip().splitlines()[-1]


def test_wheel_carries_executors_and_texts_and_nothing_private(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    shipped = "core/_shipped"
    assert {
        f"{shipped}/executors/DIGESTS",
        f"{shipped}/executors/get_now/main.py",
        f"{shipped}/executors/_sdk/manifest.toml",
        f"{shipped}/locales/it/messages.po",
        "bot/cli/__init__.py",
    } <= names
    assert any(name.startswith(f"{shipped}/locales/en/prompts/") for name in names)
    strays = [n for n in names if n.endswith((".pyc", ".env", ".key", ".db")) or "/tests/" in n]
    assert strays == []


@pytest.mark.timeout(300)
def test_wheel_installed_elsewhere_sets_up_and_answers(wheel: Path, tmp_path: Path) -> None:
    python = _installed(wheel, tmp_path / "venv")
    metnos = python.parent / "metnos"
    model = ScriptedModel(
        [
            Rule(user="time", after=0, calls=[("get_now", {"timezone": "Tokyo"})]),
            Rule(user="time", after=1, text="It is late in Tokyo."),
        ]
    )
    with model.running() as base_url:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "METNOS_HOME": str(tmp_path / "home"),
            "METNOS_LLM_BASE_URL": base_url,
            "METNOS_LLM_MODEL": "scripted",
            "METNOS_ENGINE": "simple",
            "METNOS_LANG": "en",
        }

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [metnos, *arguments],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=120,
            )

        setup = run("setup", "--non-interactive")
        said = run("chat", "--once", "what time is it?", "--json")
        where = subprocess.run(
            [python, "-P", "-c", "import core; print(core.__file__)"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
        )

    assert setup.returncode == 0, setup.stderr
    assert said.returncode == 0, said.stderr
    answer = json.loads(said.stdout)
    assert answer["text"] == "It is late in Tokyo."
    assert answer["steps"] == [{"number": 1, "tool": "get_now", "ok": True}]
    assert Path(where.stdout.strip()).is_relative_to(tmp_path), "the tree was run, not the wheel"


def _installed(wheel: Path, folder: Path) -> Path:
    """A new environment with the wheel in it and this one's packages in sight; its Python.

    The packages come by a path entry, not by processed .pth files: the tree itself, which is
    installed here for editing, stays out of sight.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    paths = {"base": str(folder), "platbase": str(folder)}
    purelib = Path(sysconfig.get_path("purelib", vars=paths))
    (purelib / "neighbours.pth").write_text(
        f"import sys; sys.path.append({sysconfig.get_path('purelib')!r})\n", encoding="utf-8"
    )
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            "--force-reinstall",
            "--no-compile",
            str(wheel),
        ],
        check=True,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return python
