"""What runs in the child of a call: a keeper that outlives the executor, and the executor itself.

This module is compiled by the engine and handed over as code, so it must not import `core` or
anything but the quickest built-in modules. It does, in this order:

1. the *keeper* (first process) asks to be told when the engine dies and adopts orphans;
2. it forks the *worker*, which gets its own session, limits, a fenced import system, and then
   runs the verified bytes of the executor;
3. the keeper waits, ends whatever the worker left behind (daemons too: it adopted them), and
   leaves with the worker's exit code, or 128 + signal.

The result is the one JSON document on descriptor 1. `_json`'s own encoder is used because
importing `json` costs more than the rest of the call.
"""

from __future__ import annotations

import builtins
import marshal
import posix
import sys
import time
from _json import encode_basestring, make_encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping
    from typing import Any
else:
    import _signal

ENDED_BY_ENGINE = 120
NO_CAGE = 113
OUT_OF_MEMORY = 112
KILL_ROUNDS = 3000
MODULE_GROUP = "executors"


def main(frame: dict[str, Any]) -> None:
    """Keep one call: fork the worker, wait for it, leave nothing behind. Does not return."""
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGTERM, _signal.SIGCHLD})
    try:
        prctl = load_prctl()
        prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: daemons the worker leaves become our children
        prctl(1, _signal.SIGTERM)  # PR_SET_PDEATHSIG: the engine is gone, so is the call
    except (ImportError, OSError):
        posix._exit(NO_CAGE)
    if posix.getppid() != frame["engine_pid"]:
        posix._exit(ENDED_BY_ENGINE)
    keeper = posix.getpid()
    worker = posix.fork()
    if worker == 0:
        try:
            prctl(1, _signal.SIGKILL)
            if posix.getppid() == keeper:
                work(frame)
        except MemoryError:
            posix._exit(OUT_OF_MEMORY)
        finally:
            posix._exit(1)
    null = posix.open("/dev/null", posix.O_RDWR)
    for fd in (0, 1, 2, frame["progress_fd"], frame["broker_fd"]):
        if fd is not None:
            posix.dup2(null, fd)
    posix._exit(keep(worker))


def keep(worker: int) -> int:
    """Wait for the worker or for the order to end it; returns the exit code to leave with."""
    status = None
    while status is None:
        if _signal.sigwait({_signal.SIGTERM, _signal.SIGCHLD}) == _signal.SIGTERM:
            end_all(worker)
            return ENDED_BY_ENGINE
        while True:
            try:
                pid, code = posix.waitpid(-1, posix.WNOHANG)
            except ChildProcessError:
                break
            if pid == worker:
                status = code
            if pid == 0:
                break
    end_all(worker)
    if posix.WIFSIGNALED(status):
        return 128 + posix.WTERMSIG(status)
    return posix.WEXITSTATUS(status)


def end_all(worker: int) -> None:
    """Kill the worker's group and then every process that descends from this one."""
    for attempt in range(KILL_ROUNDS):
        try:
            while posix.waitpid(-1, posix.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        kill(-worker)
        for pid in descendants():
            kill(pid)
        time.sleep(0.0005 if attempt < 20 else 0.002)


def kill(pid: int) -> None:
    try:  # noqa: SIM105 - `contextlib` costs milliseconds here
        posix.kill(pid, _signal.SIGKILL)
    except OSError:
        pass


def descendants() -> list[int]:
    parents: dict[int, int] = {}
    for name in posix.listdir("/proc"):
        if name.isdecimal():
            try:
                fd = posix.open(f"/proc/{name}/stat", posix.O_RDONLY | posix.O_CLOEXEC)
            except OSError:
                continue
            try:
                fields = posix.read(fd, 4096).rpartition(b")")[2].split()
            except OSError:
                continue
            finally:
                posix.close(fd)
            if len(fields) > 1 and fields[0] != b"Z":
                parents[int(name)] = int(fields[1])
    found = {posix.getpid()}
    grown = True
    while grown:
        grown = False
        for pid, parent in parents.items():
            if parent in found and pid not in found:
                found.add(pid)
                grown = True
    return sorted(found - {posix.getpid()})


def load_prctl() -> Any:
    """`prctl` from the C library, without the cost of importing all of `ctypes`."""
    import _ctypes

    class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]
        _type_ = "i"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = Int

    address = _ctypes.dlsym(_ctypes.dlopen(None, 2), "prctl")  # type: ignore[arg-type]
    function = Function(address)

    def prctl(option: int, value: int) -> None:
        if function(option, int(value), 0, 0, 0) != 0:
            raise OSError("prctl refused")

    return prctl


# -- the worker ------------------------------------------------------------------------------


def work(frame: dict[str, Any]) -> None:
    """Run the executor and write its one document; leaves the process, never returns."""
    progress_fd = frame["progress_fd"]
    try:
        posix.setsid()
        posix.umask(0o077)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGTERM, _signal.SIGCHLD})
        null = posix.open("/dev/null", posix.O_RDONLY)
        posix.dup2(null, 0)
        posix.close(null)
        posix.set_blocking(progress_fd, False)
        limit(frame["limits"])
        sys.dont_write_bytecode = True
        raise_fence(frame)
    except (OSError, ValueError):
        posix._exit(NO_CAGE)
    posix.write(progress_fd, b"begun\n")
    try:
        document, code = run(frame)
        text = encode(document)
        if sys.stdout is not None:
            sys.stdout.flush()
        write_all(1, text)
    except MemoryError:
        code = OUT_OF_MEMORY
    posix._exit(code)


def raise_fence(frame: dict[str, Any]) -> None:
    space: dict[str, Any] = {"__name__": "metnos_fence"}
    exec(marshal.loads(frame["fence"]), space)  # noqa: S102, S302 - our own code, from the engine
    space["install"](frame)


def limit(limits: Mapping[str, int]) -> None:
    """Set the kernel's limits; `limits` maps the names of RLIMIT constants to numbers."""
    import resource

    for name, value in limits.items():
        which = getattr(resource, name)
        _, hard = resource.getrlimit(which)
        most = value + 1 if name == "RLIMIT_CPU" else value
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)
        resource.setrlimit(which, (min(value, most), most))


def run(frame: dict[str, Any]) -> tuple[Any, int]:
    """Import the executor and call it. Returns the document for the engine and the exit code."""
    mode = frame["call"].get("mode", "run")
    try:
        from executors._sdk import call as sdk_call
        from executors._sdk import result as sdk_result
    except (ImportError, SyntaxError) as exc:
        return crashed(exc, begun=False), 1
    try:
        program = builtins.__import__(frame["main"], fromlist=["run"])
        sys.modules["main"] = program
        function = getattr(program, mode, None)
        if function is None:
            return sdk_result.failure("unsupported", f"main.py has no {mode}()"), 0
        call = sdk_call.Call(frame["call"], progress=Progress(frame["progress_fd"]))
        return function(call), 0
    except sdk_result.Failure as failure:
        return sdk_result.failure(failure.code, failure.detail, **failure.params), 0
    except MemoryError as exc:
        exc.__traceback__ = None  # lets go of what the frames hold, so that the answer fits
        return {
            "ok": False,
            "error": {"code": "resource_limit", "detail": "out of memory"},
            "metadata": {"effects": "unknown"},
        }, 1
    except BaseException as exc:  # this is the edge: SystemExit and KeyboardInterrupt end here too
        known = sdk_result.from_exception(exc)
        document = crashed(exc, begun=True)
        if known is not None and known.code != "internal":
            error = sdk_result.failure(known.code, known.detail, **known.params)["error"]
            document["error"] = error
        return document, 1


def crashed(exc: BaseException, *, begun: bool) -> dict[str, Any]:
    """Where it broke: the type and the line. The text of the exception may hold anything."""
    where, trace = "", exc.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(MODULE_GROUP + "/"):
            where = f" at {file}:{trace.tb_lineno}"
        trace = trace.tb_next
    if isinstance(exc, ImportError) and exc.name:
        where = f" of {exc.name!r}{where}: not in the standard library, `_sdk` or `requires`"
    if isinstance(exc, SyntaxError):
        where = f" at {exc.filename}:{exc.lineno}"
    try:
        sys.excepthook(type(exc), exc, exc.__traceback__)
    except BaseException:
        where += " "
    detail = f"{type(exc).__name__}{where}"
    return {
        "ok": False,
        "error": {"code": "executor_crashed", "detail": detail},
        "metadata": {"effects": "unknown" if begun else "none"},
    }


class Progress:
    """Writes progress lines, at most ten a second; drops what does not fit."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._last = 0.0

    def __call__(self, done: int | None, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last < 0.1 and (done is None or done != total):
            return
        self._last = now
        numbers = [f"{int(n)}" if n is not None else "-" for n in (done, total)]
        try:
            posix.write(self._fd, " ".join(numbers).encode() + b"\n")
        except OSError:
            return


def encode(document: Any) -> bytes:
    """The document as one line of UTF-8 JSON without NaN. Lone surrogates become '?'."""
    try:
        encoder = make_encoder({}, refuse, encode_basestring, None, ":", ",", False, False, False)
        text = "".join(encoder(document, 0))
    except (TypeError, ValueError, RecursionError) as exc:
        detail = f"{type(exc).__name__}: the result is no JSON"
        text = (
            '{"ok":false,"metadata":{"effects":"unknown"},'
            f'"error":{{"code":"bad_output","detail":"{detail}"}}}}'
        )
    return text.encode("utf-8", "replace")


def refuse(value: object) -> Any:
    raise TypeError(type(value).__name__)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[posix.write(fd, view) :]
