"""Other programs that cut, empty, replace or remove an open database: see `damage_run`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from core.store.stores import MAIN_FILE, MEMORY_FILE
from tests.store.damage_run import HARMS
from tests.support.world import REPO


@pytest.fixture(scope="module")
def outcome():
    ran = subprocess.run(
        [sys.executable, "-m", "tests.store.damage_run"],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert ran.returncode == 0, f"ended by {ran.returncode}\n{ran.stderr}"
    return json.loads(ran.stdout)


@pytest.mark.timeout(330)
@pytest.mark.parametrize("harm", HARMS)
def test_memory_that_others_damage_is_made_anew_and_works(outcome, harm):
    came = outcome[MEMORY_FILE][harm]

    assert came.startswith("works, ")
    assert ("set aside" in came) == (harm in {"half a page", "noise", "replaced"})
    assert came.endswith("3 kept") == (harm in {"index emptied", "index removed"})


@pytest.mark.timeout(330)
@pytest.mark.parametrize("harm", HARMS)
def test_main_database_that_others_damage_is_told_and_not_begun_anew(outcome, harm):
    """Only a cut index is mended in silence: the journal holds all that is in it."""
    assert outcome[MAIN_FILE][harm] == ("goes on" if harm == "index emptied" else "told")
