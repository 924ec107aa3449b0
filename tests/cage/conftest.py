"""A cage whose processes can be recognised, so that a test can say that none is left."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from core.egress.rules import Right
from core.execution.cage import frame
from core.execution.cage.process import Mode, ProcessCage
from core.observation import Observation
from tests.support.run_executor import (
    SimpleCapability,
    SimpleLimits,
    SimpleManifest,
    SimpleProgram,
    SimpleSdk,
    call_document,
    read_sdk,
)


class Room:
    """Runs a piece of code as an executor in a marked cage; `unsafe`: as a plain process."""

    def __init__(self, *, unsafe: bool = False) -> None:
        self.token = f"room-{secrets.token_hex(8)}"
        self.cage = ProcessCage(unsafe=unsafe)
        self.cage._argv = (*self.cage._argv, self.token)  # seen in /proc as part of the command
        self.sdk: SimpleSdk = read_sdk()

    async def run(
        self,
        code: str | bytes,
        args: dict[str, Any] | None = None,
        *,
        mode: Mode = "run",
        files: dict[str, bytes] | None = None,
        memory_mb: int = 256,
        cpu_s: int = 5,
        output_bytes: int = 1_048_576,
        file_mb: int = 1,
        private_hosts: tuple[str, ...] = (),
        roots: Sequence[Path] = (),
        capabilities: str | Sequence[Right] = (),
        document: Mapping[str, Any] | None = None,
        on_progress: Any = None,
        **manifest: Any,
    ) -> Observation:
        body = code if isinstance(code, bytes) else code.encode()
        limits = SimpleLimits(memory_mb, cpu_s, output_bytes, file_mb)
        program = SimpleProgram(
            SimpleManifest(
                **{"name": "get_now", "timeout_s": 30.0, **manifest},
                limits=limits,
                capabilities=(
                    tuple(map(SimpleCapability, capabilities.split()))
                    if isinstance(capabilities, str)
                    else tuple(capabilities)
                ),
            ),
            {"main.py": body, **(files or {})},
        )
        call = call_document("get_now", args or {}, private_hosts=private_hosts, roots=roots)
        call |= document or {}
        return await self.cage.run(program, self.sdk, call, mode=mode, on_progress=on_progress)

    def left(self) -> list[int]:
        """The processes of this room that still live, the waiting zygotes not counted."""
        waiting = self.cage.zygote_pids
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal():
                try:
                    line = (folder / "cmdline").read_bytes()
                except OSError:
                    continue
                if self.token.encode() in line and int(folder.name) not in waiting:
                    found.append(int(folder.name))
        return found


@pytest.fixture(scope="session")
def shared_room() -> Iterator[Room]:
    """One room for the whole run: its zygotes are started once."""
    made = Room()
    yield made
    made.cage.close()


@pytest.fixture
def room(shared_room: Room) -> Iterator[Room]:
    yield shared_room
    assert shared_room.left() == []


@pytest.fixture
def own_room() -> Iterator[Room]:
    """A room whose zygotes may come to harm."""
    made = Room()
    yield made
    assert made.left() == []
    made.cage.close()


@pytest.fixture
def open_room() -> Iterator[Room]:
    """Without a cage."""
    made = Room(unsafe=True)
    yield made
    assert made.left() == []


Mutant = Callable[[str, str, str], None]


@pytest.fixture
def mutant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mutant]:
    """Changes a module of the cage as the processes get it: `mutant(module, right, wrong)`."""
    sources: dict[str, str] = {}
    real = frame._own_code

    def own_code(name: str) -> CodeType:
        module = name.rpartition(".")[2]
        return compile(sources[module], name, "exec") if module in sources else real(name)

    def change(module: str, right: str, wrong: str) -> None:
        path = Path(frame.__file__).with_name(f"{module}.py")
        source = sources.get(module, path.read_text(encoding="utf-8"))
        assert right in source, right
        sources[module] = source.replace(right, wrong)
        frame._parts.cache_clear()

    monkeypatch.setattr(frame, "_own_code", own_code)
    yield change
    frame._parts.cache_clear()
