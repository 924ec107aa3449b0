"""The cage: one executor call in a fresh process, from verified bytes to an observation.

Behind the one method `run` stand, later, a zygote, Landlock and seccomp. A call whose manifest has
a right to the network gets a line to the egress broker, and no other way out. Knows nothing of
policy: what comes here has been allowed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

from core.egress.broker import Broker
from core.egress.rules import Right, opens_network
from core.errors import ErrorCode
from core.execution.cage import bootstrap, wire
from core.execution.cage.child import OnProgress, Outcome, run_child
from core.execution.cage.frame import LOADER, Limits, build_frame
from core.execution.cage.packages import PackageMissing, resolve
from core.observation import Effects, Observation

log = logging.getLogger(__name__)

Mode = Literal["run", "preview"]
_LIMIT_SIGNALS = frozenset({128 + signal.SIGXCPU, 128 + signal.SIGXFSZ})
_SHORT_OF = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_PARSE_INLINE_BYTES = 262_144


class OutputLimits(Limits, Protocol):
    """Everything a manifest limits for one call."""

    @property
    def output_bytes(self) -> int: ...


class ProgramManifest(Protocol):
    """What the cage needs to know of a manifest."""

    @property
    def name(self) -> str: ...
    @property
    def is_mutating(self) -> bool: ...
    @property
    def requires(self) -> tuple[str, ...]: ...
    @property
    def capabilities(self) -> Sequence[Right]: ...
    @property
    def provenance(self) -> str: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def limits(self) -> OutputLimits: ...


class Program(Protocol):
    """A loaded executor: its manifest and its verified bytes by path inside its folder."""

    @property
    def manifest(self) -> ProgramManifest: ...
    @property
    def files(self) -> Mapping[str, bytes]: ...


class SdkFiles(Protocol):
    """The verified bytes of `_sdk`, by path inside its folder."""

    @property
    def files(self) -> Mapping[str, bytes]: ...


class ProcessCage:
    """Runs calls, at most `max_parallel` at once, the others in order of arrival.

    `python` must be of the same version as the engine's: code travels compiled. `broker` connects
    for those that may use the network.
    """

    def __init__(
        self,
        *,
        python: Path = Path(sys.executable),
        max_parallel: int | None = None,
        broker: Broker | None = None,
    ) -> None:
        self._broker = broker or Broker()
        self._argv: tuple[str, ...] = (str(python), "-I", "-S", "-c", LOADER)
        self._slots = asyncio.Semaphore(max_parallel or max(4, os.cpu_count() or 1))

    async def run(
        self,
        executor: Program,
        sdk: SdkFiles,
        call: Mapping[str, Any],
        *,
        mode: Mode = "run",
        timeout_s: float | None = None,
        limits: OutputLimits | None = None,
        on_progress: OnProgress | None = None,
    ) -> Observation:
        """Run one call and say what came of it; never raises for the call's own failure.

        `call` is the call document (JSON values only). `timeout_s` and `limits` default to the
        manifest's; the time counts from the start of the process, not from the wait for a slot.
        In `preview` mode `content` is what `preview(call)` returned. `effects` is `unknown` when a
        mutating executor was reached in `run` mode and did not say how it ended.

        Cancelled: the process and all below it are ended first, then the cancellation goes on.
        """
        manifest = executor.manifest
        bounds = limits or manifest.limits
        seconds = manifest.timeout_s if timeout_s is None else timeout_s
        try:
            packages = resolve(tuple(manifest.requires))
        except PackageMissing as exc:
            return Observation.failed(
                ErrorCode.SANDBOX_UNAVAILABLE, f"package {exc} is not installed", package=str(exc)
            )

        async with self._slots:
            try:
                async with self._way_out(executor, call) as broker_fd:

                    def build(progress_fd: int) -> bytes:
                        return build_frame(
                            manifest.name,
                            executor.files,
                            sdk.files,
                            {**call, "mode": mode},
                            packages=packages,
                            limits=bounds,
                            progress_fd=progress_fd,
                            broker_fd=broker_fd,
                        )

                    outcome = await run_child(
                        self._argv,
                        build,
                        max_output=bounds.output_bytes,
                        timeout_s=seconds,
                        on_progress=on_progress,
                        broker_fd=broker_fd,
                    )
            except OSError as exc:
                short = exc.errno in _SHORT_OF
                code = ErrorCode.RESOURCE_LIMIT if short else ErrorCode.SANDBOX_UNAVAILABLE
                return Observation.failed(code, "no process could be started")
            except ValueError:
                return Observation.failed(ErrorCode.INVALID_ARGS, "arguments are no JSON")
        if outcome.errors:
            text = outcome.errors.decode("utf-8", "replace")
            log.debug("executor wrote errors", extra={"tool": manifest.name, "errors": text})
        if len(outcome.output) > _PARSE_INLINE_BYTES:
            return await asyncio.to_thread(_read, outcome, manifest, mode, seconds, bounds)
        return _read(outcome, manifest, mode, seconds, bounds)

    @asynccontextmanager
    async def _way_out(
        self, executor: Program, call: Mapping[str, Any]
    ) -> AsyncIterator[int | None]:
        """The child's line to the broker, for as long as the call lasts; None without a right."""
        if not opens_network(executor.manifest.capabilities):
            yield None
            return
        async with self._broker.serve(executor, call) as broker_fd:
            yield broker_fd


def _read(
    outcome: Outcome, manifest: ProgramManifest, mode: Mode, seconds: float, bounds: OutputLimits
) -> Observation:
    code = outcome.returncode
    open_end = outcome.begun and mode == "run" and manifest.is_mutating
    effects = Effects.UNKNOWN if open_end else Effects.NONE

    def failed(error: ErrorCode, detail: str, **params: Any) -> Observation:
        return Observation.failed(error, detail, effects=effects, **params)

    if outcome.stopped == "output":
        most = bounds.output_bytes
        return failed(ErrorCode.OUTPUT_TOO_LARGE, f"more than {most} bytes", bytes=most)
    if outcome.stopped == "timeout":
        return failed(ErrorCode.TIMEOUT, f"no answer in {seconds:g} s", seconds=seconds)
    if code == bootstrap.NO_CAGE and not outcome.begun:
        return failed(ErrorCode.SANDBOX_UNAVAILABLE, "the limits could not be applied")
    if code == bootstrap.OUT_OF_MEMORY:
        return failed(ErrorCode.RESOURCE_LIMIT, "out of memory")
    if code in _LIMIT_SIGNALS:
        return failed(ErrorCode.RESOURCE_LIMIT, "out of processor time")
    try:
        document = wire.decode(outcome.output)
        observation = wire.to_observation(
            document,
            mutating=manifest.is_mutating,
            external=manifest.provenance == "external",
            mode=mode,
        )
    except wire.BadOutput as exc:
        if code == 0 and outcome.output.strip():
            return failed(ErrorCode.BAD_OUTPUT, str(exc))
        return failed(ErrorCode.EXECUTOR_CRASHED, _ending(code))
    if code != 0 and observation.ok:
        return failed(ErrorCode.EXECUTOR_CRASHED, _ending(code))
    return observation


def _ending(code: int) -> str:
    number = -code if code < 0 else code - 128
    if number > 0 and number in {int(known) for known in signal.Signals}:
        return f"ended by {signal.Signals(number).name}"
    return f"ended without a result, exit code {code}"
