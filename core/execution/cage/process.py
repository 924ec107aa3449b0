"""The cage: one executor call in a process of its own, from verified bytes to an observation.

Behind the one method `run` stand the zygotes, whose forks are closed in by Landlock and seccomp
before any foreign code; without a cage a call is refused, unless the host said otherwise. Knows
nothing of policy: what comes here has been allowed.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import marshal
import os
import platform
import signal
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal

from core.egress.broker import Broker as EgressBroker
from core.egress.rules import opens_network
from core.errors import ErrorCode
from core.execution.cage import wire, worker
from core.execution.cage.bubble import MISSING, BubbleFailed, find_bubblewrap, run_in_bubble
from core.execution.cage.child import run_child
from core.execution.cage.forked import run_forked
from core.execution.cage.frame import LOADER, build_frame, build_plain
from core.execution.cage.packages import PackageMissing, Packages, resolve
from core.execution.cage.preloading import PRELOADED, light_packages, warm_names
from core.execution.cage.program import Broker, OutputLimits, Program, ProgramManifest, SdkFiles
from core.execution.cage.scope import kernel_scope
from core.execution.cage.status import NOT_LINUX, Isolation, cage_status
from core.execution.cage.streams import OnProgress, Outcome
from core.execution.cage.zygotes import Zygote
from core.observation import Effects, Observation
from core.redaction import mask_values

log = logging.getLogger(__name__)

Mode = Literal["run", "preview"]
_LIMIT_SIGNALS = frozenset({128 + signal.SIGXCPU, 128 + signal.SIGXFSZ})
_SHORT_OF = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_PARSE_INLINE_BYTES = 262_144
# Told to the kernel's scope, not to the child.
NOT_TOLD = frozenset({"paths", "product_home", "workspace", "masks"})
PROGRAMS = frozenset({"code:exec"})
HEAVY_IDLE_S = 600.0


class Weight(IntEnum):
    """The two zygotes: one that always waits, one with declared packages while it is needed."""

    LIGHT = 0
    HEAVY = 1


class Refused(Exception):
    """No process can be had for this call; the text says why, in English."""


class ProcessCage:
    """Runs calls, at most `max_parallel` at once, the others in order of arrival.

    `python` must be of the same version as the engine's: code travels compiled. `unsafe` runs
    calls as plain processes that nothing closes in: the host's explicit way out. `broker` connects
    for those that may use the network; no call connects by itself.
    """

    def __init__(
        self,
        *,
        python: Path = Path(sys.executable),
        max_parallel: int | None = None,
        unsafe: bool = False,
        broker: Broker | None = None,
    ) -> None:
        self._argv: tuple[str, ...] = (str(python), "-I", "-S", "-c", LOADER)
        self._slots = asyncio.Semaphore(max_parallel or max(4, os.cpu_count() or 1))
        self._unsafe = unsafe
        self._broker: Broker = broker or EgressBroker()
        self._zygotes: dict[Weight, Zygote] = {}

    @property
    def zygote_pids(self) -> tuple[int, ...]:
        """The processes that wait for calls."""
        return tuple(one.pid for _, one in sorted(self._zygotes.items()) if one.alive)

    def start(self, sdk: SdkFiles) -> None:
        """Start the light zygote ahead of the first call; what does not work is said there."""
        if not self._unsafe and platform.system() == "Linux":
            try:
                self._zygote(Packages(), sdk)
            except OSError as exc:
                log.warning("no zygote could be started", extra={"why": str(exc)})

    async def isolation(self) -> Isolation:
        """What a call would find now, by the waiting zygote or, without one, by a new try."""
        if self._unsafe:
            return Isolation.OFF
        zygote = self._zygotes.get(Weight.LIGHT)
        try:
            if zygote is not None and zygote.alive:
                status = await zygote.greet()
            else:
                status = await asyncio.to_thread(cage_status, Path(self._argv[0]))
        except OSError:
            return Isolation.MISSING
        return Isolation.ACTIVE if status.available else Isolation.MISSING

    def close(self) -> None:
        """End the zygotes and every call that runs. Twice is fine."""
        for zygote in self._zygotes.values():
            zygote.close()

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

        `call` is the call document (JSON values only); `paths`, `product_home` and `workspace` in
        it narrow what the kernel opens and are not told to the child; its errors are logged
        without the texts in `masks`, which it is not told either. `timeout_s` and `limits`
        default to the manifest's; the time counts from the start of the process, not from the wait
        for a slot. In `preview` mode `content` is what `preview(call)` returned, and nothing can
        be written. `effects` is `unknown` when a mutating executor was reached in `run` mode and
        did not say how it ended.

        Cancelled: the process and all below it are ended first, then the cancellation goes on.
        """
        manifest = executor.manifest
        bounds = limits or manifest.limits
        seconds = manifest.timeout_s if timeout_s is None else timeout_s
        starts = any(capability.name in PROGRAMS for capability in manifest.capabilities)
        try:
            packages = resolve(tuple(manifest.requires))
        except PackageMissing as exc:
            return Observation.failed(
                ErrorCode.SANDBOX_UNAVAILABLE, f"package {exc} is not installed", package=str(exc)
            )
        scope = kernel_scope(
            call,
            manifest.capabilities,
            mutating=manifest.is_mutating,
            preview=mode == "preview",
        )
        frame = build_frame(
            manifest.name,
            executor.files,
            {**{name: call[name] for name in call if name not in NOT_TOLD}, "mode": mode},
            packages=packages,
            limits=bounds,
            more={
                "scope": {
                    "read": (*scope.read, *packages.site_dirs),
                    "list": scope.list,
                    "write": scope.write,
                }
            },
        )
        start = self._plain if self._unsafe else self._caged
        if starts:
            start = partial(self._bubble, scope=scope, call=call)
        async with self._slots, AsyncExitStack() as stack:
            way_out: int | None = None
            if opens_network(manifest.capabilities):
                way_out = await stack.enter_async_context(self._broker.serve(executor, call))
            try:
                outcome = await start(
                    frame,
                    executor,
                    sdk,
                    packages,
                    broker=way_out,
                    max_output=bounds.output_bytes,
                    timeout_s=seconds,
                    on_progress=on_progress,
                )
            except Refused as exc:
                return Observation.failed(ErrorCode.SANDBOX_UNAVAILABLE, str(exc))
            except OSError as exc:
                short = exc.errno in _SHORT_OF
                code = ErrorCode.RESOURCE_LIMIT if short else ErrorCode.SANDBOX_UNAVAILABLE
                return Observation.failed(code, "no process could be started")
            except ValueError:
                return Observation.failed(ErrorCode.INVALID_ARGS, "arguments are no JSON")
        if outcome.errors:
            text = outcome.errors.decode("utf-8", "replace")
            text = mask_values(text, call.get("masks", ()))
            log.debug("executor wrote errors", extra={"tool": manifest.name, "errors": text})
        if len(outcome.output) > _PARSE_INLINE_BYTES:
            return await asyncio.to_thread(_read, outcome, manifest, mode, seconds, bounds)
        return _read(outcome, manifest, mode, seconds, bounds)

    async def _caged(
        self,
        frame: Mapping[str, Any],
        executor: Program,
        sdk: SdkFiles,
        packages: Packages,
        **bounds: Any,
    ) -> Outcome:
        """In a fork of a zygote; of a new one when the first went away before the call began."""
        if platform.system() != "Linux":
            raise Refused(NOT_LINUX)
        data = marshal.dumps(dict(frame))
        # Looked up first: a zygote that waits may end for want of calls meanwhile.
        heavy = _weight(packages) is Weight.HEAVY
        warm = warm_names(executor, sdk, packages) if heavy else ()
        for attempt in (1, 2):
            zygote = self._zygote(packages, sdk)
            with zygote.busy():
                status = await zygote.greet()
                if not status.available:
                    raise Refused("; ".join(status.reasons))
                try:
                    outcome = await run_forked(
                        zygote, data, warm=warm, site_dirs=packages.site_dirs, **bounds
                    )
                except (BrokenPipeError, ConnectionResetError):  # it ended just before
                    if attempt == 2:
                        raise
                    zygote.close()
                    continue
            if not outcome.lost or outcome.begun or outcome.stopped:
                break
            zygote.close()
        return outcome

    async def _plain(
        self,
        frame: Mapping[str, Any],
        executor: Program,
        sdk: SdkFiles,
        packages: Packages,
        *,
        broker: int | None,
        **bounds: Any,
    ) -> Outcome:
        def build(progress_fd: int) -> bytes:
            more = {"progress_fd": progress_fd, "broker_fd": broker}
            return build_plain({**frame, **more}, sdk.files)

        return await run_child(self._argv, build, broker_fd=broker, **bounds)

    async def _bubble(
        self,
        frame: Mapping[str, Any],
        executor: Program,
        sdk: SdkFiles,
        packages: Packages,
        **bounds: Any,
    ) -> Outcome:
        """Behind bubblewrap, for what starts programs; without it never, `unsafe` or not."""
        bwrap = await asyncio.to_thread(find_bubblewrap, self._argv[0])
        if bwrap is None:
            raise Refused(MISSING)
        try:
            return await run_in_bubble(
                bwrap, self._argv, frame, sdk.files, site_dirs=packages.site_dirs, **bounds
            )
        except BubbleFailed as exc:
            raise Refused(str(exc)) from None

    def _zygote(self, packages: Packages, sdk: SdkFiles) -> Zygote:
        """The zygote for these packages, started anew when it ended or `_sdk` is another one."""
        weight = _weight(packages)
        zygote = self._zygotes.get(weight)
        if zygote is not None:
            if zygote.alive and zygote.sdk_files == sdk.files:
                return zygote
            zygote.retire()
        idle_s = HEAVY_IDLE_S if weight is Weight.HEAVY else 0.0
        made = Zygote(
            self._argv, sdk.files, packages=light_packages(), preload=PRELOADED, idle_s=idle_s
        )
        self._zygotes[weight] = made
        return made


def _weight(packages: Packages) -> Weight:
    return Weight.LIGHT if packages.names <= light_packages().names else Weight.HEAVY


def _read(
    outcome: Outcome, manifest: ProgramManifest, mode: Mode, seconds: float, bounds: OutputLimits
) -> Observation:
    code = outcome.returncode
    open_end = outcome.begun and mode == "run" and manifest.is_mutating
    effects = Effects.UNKNOWN if open_end else Effects.NONE

    def failed(error: ErrorCode, detail: str, **params: Any) -> Observation:
        return Observation.failed(error, detail, effects=effects, **params)

    if outcome.lost and not outcome.begun:
        return failed(ErrorCode.SANDBOX_UNAVAILABLE, "the process that starts calls went away")
    if outcome.stopped == "output":
        most = bounds.output_bytes
        return failed(ErrorCode.OUTPUT_TOO_LARGE, f"more than {most} bytes", bytes=most)
    if outcome.stopped == "timeout":
        return failed(ErrorCode.TIMEOUT, f"no answer in {seconds:g} s", seconds=seconds)
    if code == worker.NO_CAGE and not outcome.begun:
        return failed(
            ErrorCode.SANDBOX_UNAVAILABLE, "the cage could not be closed around the call"
        )
    if code == worker.OUT_OF_MEMORY:
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
