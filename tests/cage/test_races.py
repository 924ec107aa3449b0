"""S2: nothing is gained by swapping a link in between check and use, nor the code after its
verification."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

from core.catalog.loader import CatalogLoader
from executors._sdk import beneath, files, writing
from executors._sdk.call import Call
from executors._sdk.result import Failure
from tests.acceptance.scenes import repetitions
from tests.cage.conftest import Room
from tests.support.executors import home_settings, manifest_toml, signed_executor
from tests.support.run_executor import call_document

_EXCHANGE = 2


def swap_for_ever(folder: str) -> None:
    """Swap `there` (a folder) and `away` (a link that leads outside), as fast as possible."""
    libc = ctypes.CDLL(None)
    there, away = f"{folder}/there".encode(), f"{folder}/away".encode()
    while True:
        libc.renameat2(-100, there, -100, away, _EXCHANGE)


@pytest.fixture
def swapped(tmp_path: Path) -> Iterator[Path]:
    """A root in which `there/note.txt` says "inside", and every other moment leads outside."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root / "there", "inside"), (outside, "canary")):
        folder.mkdir(parents=True)
        (folder / "note.txt").write_text(text, encoding="ascii")
    (root / "away").symlink_to(outside)
    process = multiprocessing.get_context("spawn").Process(
        target=swap_for_ever, args=(str(root),), daemon=True
    )
    process.start()
    while not (root / "there").is_symlink():
        time.sleep(0.001)
    yield root
    process.kill()
    process.join()


def naive_read(root: Path, path: Path) -> str:
    """What a check by string and a use by name amount to."""
    if not os.path.realpath(path).startswith(f"{root}/"):
        raise Failure("out_of_scope")
    return path.read_text(encoding="ascii")


def sdk_read(root: Path, path: Path) -> str:
    place = files.locate(Call({"roots": [str(root)]}), str(path))
    with files.opened(place) as (fd, _):
        return os.read(fd, 100).decode()


def tries(read: Callable[[Path, Path], str], root: Path, times: int) -> tuple[int, int]:
    """How often something inside and something outside was read."""
    inside = outside = 0
    for _ in range(times):
        with contextlib.suppress(OSError, Failure):
            text = read(root, root / "there/note.txt")
            inside += text == "inside"
            outside += text == "canary"
    return inside, outside


def test_reading_through_the_sdk_never_follows_a_swapped_link(swapped: Path):
    times = repetitions(20_000)

    inside, outside = tries(sdk_read, swapped, times)

    print(f"S2 read: {times} tries, {inside} inside, {outside} outside")
    assert outside == 0
    assert 0 < inside < times, "nothing was swapped meanwhile"


def test_naive_check_falls_to_the_swapped_link(swapped: Path):
    """The proof that the race is one: a check by name must fall at least once."""
    done = fallen = 0
    while done < 200_000 and not fallen:
        fallen += tries(naive_read, swapped, 5000)[1]
        done += 5000

    print(f"S2 naive check: fell {fallen} times in {done} tries")
    assert fallen > 0


def test_sdk_that_followed_links_would_fall(swapped: Path, monkeypatch: pytest.MonkeyPatch):
    """The mutant: a walk that follows links."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC

    def open_folder(fd: int, parts: Sequence[str]) -> int:
        return os.open("/".join(parts), flags, dir_fd=fd)

    monkeypatch.setattr(beneath, "open_folder", open_folder)

    _, outside = tries(sdk_read, swapped, 5000)

    print(f"S2 mutant: {outside} outside in 5000 tries")
    assert outside > 0


def test_writing_through_the_sdk_never_follows_a_swapped_link(swapped: Path):
    call = Call({"roots": [str(swapped)]})
    place = files.locate(call, str(swapped / "there/new.txt"))
    times, written = repetitions(20_000) // 10, 0

    tried = 0
    # On a busy machine the folder may be swapped at every single look: go on until one got in.
    while tried < times or (not written and tried < 50 * times):
        tried += 1
        with contextlib.suppress(OSError, Failure):
            writing.write_file(place, [b"x"], mode=0o600, replace=True)
            written += 1

    print(f"S2 write: {tried} tries, {written} written inside")
    assert not (swapped.parent / "outside/new.txt").exists()
    assert written > 0


async def test_kernel_stops_even_a_naive_check(room: Room, swapped: Path):
    code = """
    import os
    def run(c):
        path, inside, outside = c.roots[0] + "/there/note.txt", 0, 0
        for _ in range(c.args["times"]):
            try:
                if os.path.realpath(path).startswith(c.roots[0] + "/"):
                    with open(path) as file:
                        text = file.read()
                    inside += text == "inside"
                    outside += text == "canary"
            except OSError:
                pass
        return {"ok": True, "content": [inside, outside]}
    """
    times = repetitions(20_000)

    observation = await room.run(
        dedent(code), {"times": times}, roots=[swapped], capabilities="fs:read", timeout_s=50.0,
        cpu_s=50,
    )  # fmt: skip

    inside, outside = observation.content
    print(f"S2 naive in the cage: {times} tries, {inside} inside, {outside} outside")
    assert outside == 0
    assert 0 < inside < times, "nothing was swapped meanwhile"


def said_by(word: str) -> str:
    return f"def run(call):\n    return {{'ok': True, 'entries': [{{'said': {word!r}}}]}}\n"


async def test_code_swapped_after_verification_never_runs(room: Room, tmp_path: Path):
    """The bytes that were verified run, whatever stands in the file by then."""
    settings = home_settings(tmp_path)
    signed_executor(settings, manifest_toml("get_now"), said_by("verified"))
    catalog = CatalogLoader.of(settings).current()
    executor = catalog.executors["get_now"]
    main = settings.executors_dir / "get_now/main.py"
    times = repetitions(200)

    said = []
    for number in range(times):
        main.write_text(said_by(f"swapped {number}"), encoding="ascii")
        call = call_document("get_now", {})
        observation = await room.cage.run(executor, catalog.sdk, call)
        said.append(observation.entries[0]["said"] if observation.entries else observation.error)

    print(f"swapped after verification {times} times, ran {set(said)}")
    assert said == ["verified"] * times
    assert "get_now" not in CatalogLoader.of(settings).current().executors
