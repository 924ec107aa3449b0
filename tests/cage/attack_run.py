"""Runs every attack in the cage and outside of it, as whoever runs this; prints JSON as a program.

    python -m tests.cage.attack_run FOLDER none|broker [NAME ...]

Needs nothing but the standard library, so that any interpreter of the machine will do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.egress.broker import Broker
from core.egress.connector import connect
from core.egress.rules import Reach
from core.execution.cage.process import ProcessCage
from tests.cage.attacks import ATTACKS, Attack
from tests.support.run_executor import (
    SimpleCapability,
    SimpleManifest,
    SimpleProgram,
    call_document,
    read_sdk,
)


@contextlib.contextmanager
def targets(folder: Path) -> Iterator[dict[str, Any]]:
    """Files, sockets and a process that an attack may go for."""
    root, outside = folder / "root", folder / "outside"
    name = f"metnos-{folder.name}-{os.getpid()}"
    with contextlib.ExitStack() as stack:
        (folder / "socket").unlink(missing_ok=True)
        sockets = []
        for family, kind, address in (
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, "\0" + name),
            (socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + name + "-datagram"),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(folder / "socket")),
        ):
            made = stack.enter_context(socket.socket(family, kind))
            made.bind(address)
            if kind == socket.SOCK_STREAM:
                made.listen(64)
            sockets.append(made)
        victim = stack.enter_context(
            subprocess.Popen(["sleep", "300"], env={"VICTIM": "canary"}, start_new_session=True)
        )
        stack.callback(victim.kill)
        yield {
            "root": str(root),
            "outside": str(outside),
            "secret": str(outside / "secret.txt"),
            "victim_file": str(outside / "victim"),
            "victim": victim.pid,
            "tcp": sockets[0].getsockname()[1],
            "udp": sockets[1].getsockname()[1],
            "abstract": name,
            "socket": str(folder / "socket"),
        }


def lay_out(folder: Path) -> None:
    """The files as they stand before each attack."""
    root, outside = folder / "root", folder / "outside"
    for place in (root, outside):
        place.mkdir(exist_ok=True, parents=True)
        for path in place.iterdir():
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            else:
                path.unlink()
    for path in (outside / "secret.txt", outside / "movable", outside / "victim"):
        path.write_text("canary", encoding="ascii")
    (outside / "removable").write_text("x", encoding="ascii")
    (root / "own.txt").write_text("own", encoding="ascii")
    (root / "link").symlink_to(outside / "secret.txt")


class CarelessBroker(Broker):
    """Connects to wherever it is asked: the broker of the counter-proof."""

    async def open(self, reach: Reach, host: object, port: object, *, timeout_s: float) -> Any:
        return await connect([str(host)], int(str(port)), timeout_s=timeout_s)


async def run_attack(
    cage: ProcessCage,
    attack: Attack,
    args: dict[str, Any],
    *,
    network: bool,
    programs: bool = False,
) -> bool | None:
    """Whether it got through; None when the process died of it."""
    names = ["fs:write", *(["network:http"] if network else [])]
    names += ["code:exec"] if programs else []
    manifest = SimpleManifest(
        "get_now",
        is_mutating=True,
        capabilities=tuple(SimpleCapability(name) for name in names),
    )
    document = call_document("get_now", args, roots=[args["root"]])
    program = SimpleProgram(manifest, {"main.py": attack.code.encode()})
    seen = await cage.run(program, read_sdk(), document)
    return bool(seen.content) if seen.ok else None


def fitting(*, network: bool) -> list[Attack]:
    """The attacks that make sense for this user and this right to the network."""
    root = os.geteuid() == 0
    return [a for a in ATTACKS if (root or not a.root) and (network or not a.broker)]


async def try_all(
    folder: Path, attacks: Sequence[Attack], *, network: bool
) -> dict[str, dict[str, bool | None]]:
    """By attack: did it get through in the `cage`, and `outside` of one. `network`: as executors
    that may reach any host of the web, with the real broker in the cage."""
    caged = ProcessCage()
    plain = ProcessCage(unsafe=True, broker=CarelessBroker())
    found: dict[str, dict[str, bool | None]] = {}
    lay_out(folder)
    with targets(folder) as args:
        for attack in attacks:
            outcomes = {}
            for place, cage in (("cage", caged), ("outside", plain)):
                lay_out(folder)
                outcomes[place] = await run_attack(cage, attack, args, network=network)
            found[attack.name] = outcomes
    caged.close()
    return found


def main() -> None:
    folder, profile, *names = sys.argv[1:]
    network = profile == "broker"
    chosen = [a for a in fitting(network=network) if not names or a.name in names]
    found = asyncio.run(try_all(Path(folder).resolve(), chosen, network=network))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
