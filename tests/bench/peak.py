"""What the processes of calls hold in RAM at most, and how much of a processor they take: seen
from outside, by looking often."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.bench.figures import cpu_s


class Peak:
    """Looks at the children of the waiting processes (`waiting`) as long as it is entered.

    `kib`: the most that one of them held, what it shares with the waiting one included;
    `own_kib`: without that; `cpu_s`: the longest processor time of one since it was entered.
    """

    def __init__(self, waiting: Callable[[], Iterable[int]], *, every_s: float = 0.002) -> None:
        self.kib = self.own_kib = 0
        self.cpu_s = 0.0
        self._waiting, self._every_s = waiting, every_s
        self._over = threading.Event()

    def __enter__(self) -> Peak:
        self.cpu_s = 0.0
        self._over.clear()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            for pid in self._waiting():
                for child in children_of(pid):
                    self._look(child)

    def _look(self, pid: int) -> None:
        try:
            status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
            used, _ = cpu_s(pid)
        except OSError:
            return  # it has ended
        self.kib = max(self.kib, _kib(status, "VmHWM:"))
        self.own_kib = max(self.own_kib, _kib(rollup, "Private_Dirty:"))
        self.cpu_s = max(self.cpu_s, used)


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that still are; none of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8")
    except OSError:
        return []
    return [int(child) for child in text.split()]


def _kib(text: str, name: str) -> int:
    line = next((x for x in text.splitlines() if x.startswith(name)), f"{name} 0")
    return int(line.split()[1])
