"""The last process of a call: it runs the verified bytes and writes the one document.

Shared by the cage's forks and by the plain process of a machine without a cage. It must not import
`core` or anything but the quickest modules. `_json`'s own encoder is used because importing `json`
costs more than the rest of a plain call.
"""

from __future__ import annotations

import builtins
import posix
import sys
import time
from _json import encode_basestring, make_encoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NO_CAGE = 113
OUT_OF_MEMORY = 112
MODULE_GROUP = "executors"


def answer(frame: dict[str, Any]) -> None:
    """Run the executor of a confined process and write its answer; leaves the process.

    Tells the engine first that foreign code begins.
    """
    posix.write(frame["progress_fd"], b"begun\n")
    try:
        document, code = run(frame)
        text = encode(document)
        if sys.stdout is not None:
            sys.stdout.flush()
        write_all(1, text)
    except MemoryError:
        code = OUT_OF_MEMORY
    posix._exit(code)


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
        return sdk_result.told(failure), 0
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
