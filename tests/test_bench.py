"""The benchmark runs and prints its figures; how large they are is for people to look at."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest

from tests.bench.figures import SCALE
from tests.support.mail_servers import HAS_DOVECOT
from tests.support.world import REPO

FIGURES = {
    "prefilter": ("ms.100.median", "ms.300.p95", "ms.1000.budget"),
    "reuse": ("true_reuse", "false_reuse", "true_reuse_counts.of", "embedding_ms.median_ms"),
    "reuse-speed": ("find.exact.p95_ms", "find.meaning.median_ms", "again.p95_ms", "again.tokens"),
    "catalog": ("shipped.hot.median_ms", "shipped.cold.p95_ms", "12.executors"),
    "call": ("trivial.median_ms", "get_now.p95_ms", "trivial_to_bare"),
    "overhead": ("simple.overhead.median_ms", "metis.overhead.p95_ms"),
    "suspension": ("suspend_and_resume.median_ms", "with_question.p95_ms"),
    "journal": ("new_file.median_ms", "overwriting.median_ms", "commits.p95_ms"),
    "tokens": ("simple.it.tokens", "metis.en.tokens", "simple.en.shared_prefix"),
    "messages": ("plain_answer.p95_ms", "one_tool.median_ms", "plain_answer.budget_p95_ms"),
    "flood": ("answered", "crowd.p95_ms", "alone.p95_ms", "memory_mib.after"),
    "crowd": ("plain.answered", "plain.chats_in_order", "one_tool.p95_ms"),
    "start": ("start_to_first_poll.median_ms", "first_turn.median_ms"),
    "memory": ("idle_mb", "after_turns_mb", "after_console_mb", "console_pages"),
    "documents": ("sha256.ratio", "spreadsheet.both_s", "spreadsheet.read_s"),
    "find": ("find_files.median_s", "list_dirs.progress", "stop.child_ended_s", "stop.told_s"),
    "mail": ("newest.median_s", "child_mb", "own_mb"),
    "console": ("rows", "pages./turns.median_ms", "pages./actors.p95_ms", "pages./effects.bytes"),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setenv(SCALE, "0.02")


def at(figures: Mapping[str, Any], path: str) -> Any:
    for name in path.split("."):
        figures = figures[name]
    return figures


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(
            part,
            marks=[
                pytest.mark.needs_dovecot,
                pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root"),
            ]
            if part == "mail"
            else [],
        )
        for part in FIGURES
    ],
)
def test_part_run_a_few_times_gives_its_figures(part):
    figures = json.loads(
        json.dumps(import_module(f"tests.bench.{part.replace('-', '_')}").run([]))
    )

    for path in FIGURES[part]:
        assert math.isfinite(at(figures, path)), path


def test_model_without_a_file_says_how_it_is_measured():
    assert "--model" in import_module("tests.bench.model").run([])["left_out"]


def test_bench_from_the_command_line_prints_one_document():
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", "prefilter"],
        cwd=REPO,
        env={**os.environ, SCALE: "0.02"},
        capture_output=True,
        check=True,
    )

    document = json.loads(done.stdout)
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["scale"] == 0.02
    assert set(document) == {"machine", "prefilter"}
