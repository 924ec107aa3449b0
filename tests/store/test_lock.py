"""One engine per home, decided by the kernel; real processes."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from core.errors import AlreadyRunning, StoreError
from core.store.lock import LOCK_FILE, engine_lock
from tests.support import processes

HOLD = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from core.errors import AlreadyRunning
    from core.store.lock import engine_lock

    sys.stdin.readline()
    try:
        with engine_lock(Path(sys.argv[1]), sys.argv[2]):
            print("holding", flush=True)
            sys.stdin.readline()
    except AlreadyRunning as exc:
        print(f"refused {exc.params['pid']} {exc.params['command']}", flush=True)
        sys.exit(75)
    """
)


def launch(home: Path, command: str) -> subprocess.Popen[str]:
    """A process that waits for a line before it tries the lock, and for one before it leaves."""
    return processes.start(
        [sys.executable, "-c", HOLD, str(home), command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_second_start_is_refused_with_the_holder(tmp_path: Path):
    with engine_lock(tmp_path, "run"):
        other = launch(tmp_path, "chat")
        go(other)
        said = hear(other)
        other.communicate()
        assert said == f"refused {os.getpid()} run"
        assert other.returncode == 75

    with engine_lock(tmp_path, "chat"):
        assert stat.S_IMODE((tmp_path / LOCK_FILE).stat().st_mode) == 0o600
    assert (tmp_path / LOCK_FILE).read_text(encoding="utf-8") == ""


def test_lock_is_also_refused_inside_the_same_process(tmp_path: Path):
    with engine_lock(tmp_path, "run"):
        with pytest.raises(AlreadyRunning) as caught, engine_lock(tmp_path, "chat"):
            pass
        assert caught.value.params == {"pid": os.getpid(), "command": "run"}


def test_killed_holder_holds_nothing(tmp_path: Path):
    holder = launch(tmp_path, "run")
    go(holder)
    assert hear(holder) == "holding"
    holder.send_signal(signal.SIGKILL)
    holder.communicate()

    left = (tmp_path / LOCK_FILE).read_text(encoding="utf-8")
    assert left == f"{holder.pid}\nrun\n"
    with engine_lock(tmp_path, "chat"):
        assert (tmp_path / LOCK_FILE).read_text(encoding="utf-8") == f"{os.getpid()}\nchat\n"


@pytest.mark.parametrize("left", ["", "garbage", "1\nrun\n", "x" * 10_000], ids=range(4))
def test_whatever_the_file_holds_the_kernel_decides(tmp_path: Path, left: str):
    (tmp_path / LOCK_FILE).write_text(left, encoding="utf-8")

    with engine_lock(tmp_path, "run"):
        assert (tmp_path / LOCK_FILE).read_text(encoding="utf-8") == f"{os.getpid()}\nrun\n"


def test_lock_is_released_when_the_body_raises(tmp_path: Path):
    with pytest.raises(KeyError), engine_lock(tmp_path, "run"):
        raise KeyError
    with engine_lock(tmp_path, "run"):
        pass


def test_child_that_outlives_the_holder_does_not_hold_on(tmp_path: Path):
    """The bundled model and caged programs are children; a stray one must not block a start."""
    with engine_lock(tmp_path, "run"):
        child = processes.start(["sleep", "60"], close_fds=False)
    try:
        with engine_lock(tmp_path, "run"):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_lock_makes_a_private_home(tmp_path: Path):
    with engine_lock(tmp_path / "new" / "home", "run"):
        assert stat.S_IMODE((tmp_path / "new" / "home").stat().st_mode) == 0o700


def test_lock_of_an_impossible_home_is_a_store_error(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / LOCK_FILE).symlink_to(tmp_path / "elsewhere")

    for home in (tmp_path / "file", tmp_path):
        with pytest.raises(StoreError), engine_lock(home, "run"):
            pass


def test_twenty_starts_at_once_one_wins(tmp_path: Path):
    """R7: all wait ready, then all are let go; the losers name the winner."""
    processes = [launch(tmp_path, "run") for _ in range(20)]
    for process in processes:
        go(process)
    said = {process.pid: hear(process) for process in processes}
    winners = [pid for pid, line in said.items() if line == "holding"]
    for process in processes:
        process.communicate("\n")

    assert len(winners) == 1
    losers = [line for pid, line in said.items() if pid != winners[0]]
    assert losers == [f"refused {winners[0]} run"] * 19
    assert sorted(p.returncode for p in processes) == [0] + [75] * 19


def test_second_start_is_refused_though_the_file_was_taken_away(tmp_path: Path):
    """As people do who think that a lock file is a leftover."""
    with engine_lock(tmp_path, "run"):
        (tmp_path / LOCK_FILE).unlink()

        with pytest.raises(AlreadyRunning), engine_lock(tmp_path, "chat"):
            pass

    with engine_lock(tmp_path, "chat"):
        pass
