"""A call as a process of its own, not a fork of a zygote: started, read, bounded, ended.

For `METNOS_UNSAFE_NO_CAGE`, and for bubblewrap. Ending asks the process's keeper (see `keeper`) to
kill everything below it, and kills the keeper when that takes too long.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from core.execution.cage.streams import OnProgress, Outcome, Streams, finish, sealed

END_GRACE_S = 3.0
ENVIRONMENT = {"LANG": "C.UTF-8"}
_HOLDER_ROUNDS = 500


async def run_child(
    argv: Sequence[str],
    build: Callable[[int], bytes],
    *,
    max_output: int,
    timeout_s: float,
    on_progress: OnProgress | None = None,
    broker_fd: int | None = None,
    inner: bool = False,
) -> Outcome:
    """Start a child, give it `build(progress_fd)` as standard input, and wait for its end.

    A copy of `broker_fd` is handed to it under the same number. `inner`: its child is the first
    process of a namespace, so that killing that one ends everything, and then it too. At most
    `max_output` bytes are kept. When this task is cancelled the child and all below it are ended
    first. Raises `OSError` when no child can be started.
    """
    streams = Streams(max_output=max_output, on_progress=on_progress)
    try:
        handed = () if broker_fd is None else (broker_fd,)
        child = _Child(argv, build, streams, handed=handed, inner=inner)
        try:
            stopped = await streams.wait(timeout_s)
        finally:
            await finish(asyncio.ensure_future(child.end()))
        return streams.outcome(child.returncode, stopped)
    finally:
        streams.close()


class _Child:
    def __init__(
        self,
        argv: Sequence[str],
        build: Callable[[int], bytes],
        streams: Streams,
        *,
        handed: tuple[int, ...],
        inner: bool,
    ) -> None:
        self._streams = streams
        self._inner = inner
        self._exited = asyncio.Event()
        out, err, progress = streams.theirs
        stdin = sealed(build(progress))
        try:
            # No preexec_fn: it would forbid vfork, and limits are set by the child's own keeper.
            self._process = subprocess.Popen(
                argv,
                stdin=stdin,
                stdout=out,
                stderr=err,
                pass_fds=(progress, *handed),
                start_new_session=True,
                cwd="/",
                env=ENVIRONMENT,
            )
        finally:
            os.close(stdin)
        try:
            self._pidfd = os.pidfd_open(self._process.pid)
        except OSError:
            self._process.kill()
            self._process.wait()
            raise
        streams.hand_over()
        streams.watch(self._pidfd, self._on_exit)

    @property
    def returncode(self) -> int:
        return self._process.returncode

    async def end(self) -> None:
        """End it, with all below it, if it still runs."""
        if not self._exited.is_set():
            if not (self._inner and _kill_children(self._process.pid)):
                self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # somebody may have stopped the keeper
            try:
                async with asyncio.timeout(END_GRACE_S):
                    await self._exited.wait()
            except TimeoutError:
                self._signal(signal.SIGKILL)
                await self._exited.wait()
        if self._process.returncode < 0:
            # Somebody killed the keeper, so nobody has cleaned up below it.
            for _ in range(_HOLDER_ROUNDS):
                if not _kill_holders(self._streams.pipes):
                    break
                await asyncio.sleep(0.002)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def _on_exit(self) -> None:
        self._process.wait()
        self._streams.drain()
        self._streams.unwatch(self._pidfd)
        self._exited.set()
        self._streams.settled.set()


def _kill_children(pid: int) -> int:
    """Kill the children of a process that waits for them; how many there were."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return 0
    for child in children:
        with contextlib.suppress(OSError):
            os.kill(int(child), signal.SIGKILL)
    return len(children)


def _kill_holders(pipes: frozenset[str]) -> int:
    """Kill every other process that holds one of these pipes; how many there were.

    Without threads on purpose: while this loop's thread is here it starts no process, so no child
    between fork and exec can be taken for a holder.
    """
    found = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal() or int(folder.name) == os.getpid():
            continue
        if _holds(folder / "fd", pipes):
            found += 1
            with contextlib.suppress(OSError):
                os.kill(int(folder.name), signal.SIGKILL)
    return found


def _holds(folder: Path, pipes: frozenset[str]) -> bool:
    try:
        links = list(folder.iterdir())
    except OSError:
        return False
    for link in links:
        with contextlib.suppress(OSError):
            if str(link.readlink()) in pipes:
                return True
    return False
