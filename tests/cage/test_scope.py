"""Which files a call finds open: its own, of the roots only, never the forbidden places."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from core.execution.cage.scope import KernelScope, forbidden_below, kernel_scope
from core.execution.paths import Scope
from tests.cage.conftest import Room
from tests.support.run_executor import SimpleCapability

READS = (SimpleCapability("fs:read"),)
WRITES = (SimpleCapability("fs:read"), SimpleCapability("fs:write"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A root with keys, credentials and the product's home in it."""
    for name in (
        "notes/a.txt",
        "other/b.txt",
        ".ssh/id",
        ".aws/credentials",
        ".aws/config",
        ".config/app/credentials.env",
        ".config/app/settings",
        "share/metnos/private/metnos.db",
        "share/metnos/files/one/own.txt",
        "someone/.gnupg/key",
        "someone/plain.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="ascii")
    return tmp_path


def document(home: Path, *paths: Path, roots: tuple[Path, ...] = ()) -> dict[str, Any]:
    return {
        "roots": [str(root) for root in roots or (home, home / "share/metnos/files/one")],
        "paths": [str(path) for path in paths],
        "home": str(home),
        "product_home": str(home / "share/metnos"),
        "workspace": str(home / "share/metnos/files/one"),
    }


def test_call_without_file_capability_gets_no_file(home: Path):
    scope = kernel_scope(document(home), (), mutating=False, preview=False)

    assert scope == KernelScope()


def test_reading_call_gets_exactly_its_paths(home: Path):
    path = home / "notes/a.txt"

    scope = kernel_scope(document(home, path), READS, mutating=False, preview=False)

    assert scope == KernelScope(read=(str(path),))


def test_path_outside_the_roots_is_not_opened(home: Path):
    scope = kernel_scope(
        document(home, Path("/etc/hostname"), roots=(home / "notes",)),
        READS,
        mutating=False,
        preview=False,
    )

    assert scope == KernelScope(read=(str(home / "notes"),))


def test_changing_call_gets_the_root_of_its_paths_and_its_preview_nothing_to_write(home: Path):
    call = document(home, home / "notes/new.txt", roots=(home / "notes", home / "other"))

    run = kernel_scope(call, WRITES, mutating=True, preview=False)
    preview = kernel_scope(call, WRITES, mutating=True, preview=True)

    assert run == KernelScope(write=(str(home / "notes"),))
    assert preview == KernelScope(read=(str(home / "notes"),))


def test_forbidden_places_in_a_root_are_found(home: Path):
    call = document(home)
    closed = Scope((), call["home"], call["product_home"], call["workspace"])

    assert set(forbidden_below(str(home), closed)) == {
        str(home / name)
        for name in (
            ".ssh",
            ".aws/credentials",
            ".config/app/credentials.env",
            "share/metnos",
            "someone/.gnupg",
        )
    }


FORBIDDEN = (".ssh/id", ".aws/credentials", ".config/app/credentials.env", "someone/.gnupg/key")
OPEN = ("notes/a.txt", ".aws/config", ".config/app/settings", "someone/plain.txt")


async def test_kernel_closes_forbidden_places_inside_an_open_root(room: Room, home: Path):
    code = """
    def run(c):
        seen = []
        for path in c.args["names"]:
            try:
                with open(path) as file:
                    seen.append(file.read())
            except PermissionError:
                seen.append(None)
        return {"ok": True, "content": seen}
    """
    own = "share/metnos/files/one/own.txt"
    names = [*FORBIDDEN, "share/metnos/private/metnos.db", *OPEN, own]

    observation = await room.run(
        dedent(code),
        {"names": [str(home / name) for name in names]},
        capabilities="fs:read",
        document=document(home),
    )

    assert observation.content == [None] * 5 + [*OPEN, own]


async def test_preview_can_write_nothing(room: Room, tmp_path: Path):
    code = """
    def run(c):
        open(c.roots[0] + "/new.txt", "w").close()
        return {"ok": True}
    def preview(c): return run(c)
    """
    about: dict[str, Any] = {
        "roots": [tmp_path],
        "capabilities": "fs:write",
        "is_mutating": True,
    }

    preview = await room.run(dedent(code), mode="preview", **about)
    there = (tmp_path / "new.txt").exists()
    run = await room.run(dedent(code), **about)

    assert not preview.ok
    assert not there
    assert run.ok
    assert (tmp_path / "new.txt").exists()


async def test_path_that_became_a_link_is_not_opened(room: Room, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("canary", encoding="ascii")
    root = tmp_path / "root"
    root.mkdir()
    (root / "folder").symlink_to(outside)
    path = root / "folder/secret"
    call = {"roots": [str(root)], "paths": [str(path)]}

    observation = await room.run(
        "def run(c): return {'ok': True, 'content': open(c.args['path']).read()}",
        {"path": str(path)},
        capabilities="fs:read",
        document=call,
    )

    assert not observation.ok


async def test_child_is_not_told_where_the_product_lives(room: Room, home: Path):
    observation = await room.run(
        """
import sys
def run(c):
    frame = sys._getframe(1)
    while frame and "frame" not in frame.f_locals:
        frame = frame.f_back
    return {"ok": True, "content": sorted(frame.f_locals["frame"]["call"])}
""",
        capabilities="fs:read",
        document=document(home),
    )

    assert not {"product_home", "workspace", "paths"} & set(observation.content)
