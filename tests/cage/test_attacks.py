"""S4: an executor that turned against its host gets through nowhere, as root and as nobody, with
and without the network profile; every attack gets through where there is no cage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.execution.cage.process import ProcessCage
from tests.cage.attack_run import CarelessBroker, fitting, lay_out, run_attack, targets, try_all
from tests.cage.attacks import ATTACKS
from tests.cage.conftest import Mutant, Room

TREE = Path(__file__).parents[2]
NOBODY = 65534
# What a kernel or a container may lack or forbid to anyone; without a counter-proof it is counted.
MAY_BE_MISSING = frozenset(
    {
        "sets_up_a_ring",
        "makes_a_user_namespace",
        "waits_for_page_faults",
        "keeps_a_key",
        "mounts",
        "makes_a_map_for_filters",
        "counts_events",
        "reads_the_kernels_log",
        "asks_the_kernel_over_netlink",
        "traces_another",
        "enters_a_namespace",
        "opens_a_raw_socket",
        "opens_a_packet_socket",
        "makes_a_device",
        "sends_over_a_queue",
        "takes_a_second_name_of_a_file_outside",  # fs.protected_hardlinks
    }
)
BOTH_PROFILES = pytest.mark.parametrize("network", [False, True], ids=["none", "broker"])
AS_ROOT_ONLY = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def judge(found: dict[str, dict[str, bool | None]], who: str) -> None:
    through = [name for name, at in found.items() if at["cage"]]
    toothless = [name for name, at in found.items() if not at["outside"]]
    stopped = len(found) - len(through)
    print(f"S4 {who}: {len(found)} attacks, {stopped} stopped, {len(through)} got through")
    print(f"S4 {who}: without a counter-proof on this machine: {toothless}")
    assert through == []
    assert set(toothless) <= MAY_BE_MISSING
    assert len(found) - len(toothless) >= 38


@BOTH_PROFILES
async def test_no_attack_gets_out_of_the_cage(tmp_path: Path, network: bool):
    found = await try_all(tmp_path, fitting(network=network), network=network)

    judge(found, f"uid {os.geteuid()}, network {network}")


@AS_ROOT_ONLY
@BOTH_PROFILES
def test_no_attack_gets_out_of_the_cage_as_nobody(nobody_tree: Path, network: bool):
    found = nobody_runs(nobody_tree, network)

    judge(found, f"nobody, network {network}")


@pytest.fixture(scope="module")
def nobody_tree() -> Iterator[Path]:
    """The tree where everybody may read it."""
    place = Path("/tmp") / f"metnos-nobody-{os.getpid()}"
    for part in ("core", "executors", "tests/cage", "tests/support"):
        ignored = shutil.ignore_patterns("__pycache__", "_shipped")
        shutil.copytree(TREE / part, place / part, ignore=ignored)
    (place / "tests/__init__.py").write_text("", encoding="ascii")
    subprocess.run(["chmod", "-R", "a+rX", str(place)], check=True)
    yield place
    shutil.rmtree(place)


def nobody_runs(tree: Path, network: bool) -> dict[str, dict[str, bool | None]]:
    python = readable_python()
    profile = "broker" if network else "none"
    work = tree / f"work-{profile}"
    work.mkdir()
    os.chown(work, NOBODY, NOBODY)
    done = subprocess.run(
        [str(python), "-m", "tests.cage.attack_run", str(work), profile],
        cwd=tree,
        env={"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "LANG": "C.UTF-8"},
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found: dict[str, dict[str, bool | None]] = json.loads(done.stdout)
    return found


def readable_python() -> Path:
    """An interpreter that anybody may run."""
    names = [getattr(sys, "_base_executable", ""), "/usr/local/bin/python3", "/usr/bin/python3"]
    for name in names:
        test = [name, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        try:
            done = subprocess.run(
                test, user=NOBODY, group=NOBODY, extra_groups=[], check=False, capture_output=True
            )
        except OSError:
            continue
        if done.returncode == 0:
            return Path(name)
    pytest.skip("no interpreter that nobody may run")


LEGITIMATE = """
import os, threading, json, zoneinfo, sqlite3, tempfile, subprocess, socket, asyncio
from concurrent.futures import ThreadPoolExecutor
def run(c):
    root = c.roots[0]
    with open(root + "/own.txt") as file:
        seen = [file.read()]
    with open(root + "/new.txt", "w") as file:
        file.write("new")
    os.replace(root + "/new.txt", root + "/named.txt")
    os.makedirs(root + "/deep/er")
    os.rename(root + "/named.txt", root + "/deep/er/named.txt")
    seen.append(sorted(os.listdir(root + "/deep/er")))
    os.remove(root + "/deep/er/named.txt")
    with ThreadPoolExecutor(4) as pool:
        seen.append(sum(pool.map(len, ["a", "bb"])))
    seen.append(str(zoneinfo.ZoneInfo("Europe/Rome")))
    with sqlite3.connect(root + "/data.db") as data:
        seen.append(data.execute("SELECT 1 + 1").fetchone()[0])
    one, two = socket.socketpair()
    one.sendall(b"x")
    seen.append(two.recv(1).decode())
    async def soon():
        await asyncio.sleep(0)
        return "asyncio"
    seen.append(asyncio.run(soon()))
    seen.append(len(os.urandom(8)))
    return {"ok": True, "content": seen}
"""


async def test_what_executors_rightly_do_works_in_the_cage(room: Room, tmp_path: Path):
    (tmp_path / "own.txt").write_text("own", encoding="ascii")

    observation = await room.run(
        LEGITIMATE, roots=[tmp_path], capabilities="fs:read fs:write", is_mutating=True
    )

    assert observation.content == [
        "own", ["named.txt"], 3, "Europe/Rome", 2, "x", "asyncio", 8,
    ]  # fmt: skip


MUTANTS = {
    "no Landlock": ("confine", "rules.restrict()", "os.close(rules._fd)", "reads_a_file_outside"),
    "no seccomp": ("confine", "seccomp.install(self", "(lambda *_: None)(self", "forks"),
}


@pytest.mark.parametrize("name", ["no Landlock", "no seccomp"])
async def test_cage_with_a_wall_missing_is_refused_or_caught(
    name: str, tmp_path: Path, mutant: Mutant
):
    """A zygote finds a missing wall by itself; one that does not look lets the attack through."""
    module, right, wrong, attack_name = MUTANTS[name]
    attack = next(a for a in ATTACKS if a.name == attack_name)
    mutant(module, right, wrong)
    outcomes: list[bool | None] = []

    for blind in (False, True):
        if blind:
            mutant("probe", "return problems + b", 'return b"done\\n"\n    return problems + b')
        cage = ProcessCage()
        (tmp_path / "outside").mkdir(exist_ok=True)
        (tmp_path / "root").mkdir(exist_ok=True)
        (tmp_path / "outside/secret.txt").write_text("canary", encoding="ascii")
        with targets(tmp_path) as args:
            outcomes.append(await run_attack(cage, attack, args, network=False))
        cage.close()

    print(f"S4 mutant {name}: seen by the zygote, and the attack got through a blind one")
    assert outcomes == [None, True]


async def test_broker_that_does_not_look_would_connect_each_attack_on_it(tmp_path: Path):
    """The counter-proof of the broker: the cage alone does not stop what goes over it."""
    cage = ProcessCage(broker=CarelessBroker())
    lay_out(tmp_path)
    chosen = [attack for attack in ATTACKS if attack.broker]

    with targets(tmp_path) as args:
        outcomes = [await run_attack(cage, attack, args, network=True) for attack in chosen]

    cage.close()
    print(f"S4 mutant no rules in the broker: {sum(map(bool, outcomes))} attacks got through")
    assert outcomes == [True] * 6
