"""The bundled model, served by a child process of its own on loopback.

`LocalServer` is the parent's side. `python -m core.llm.local_server` is the child's: it reads its
orders from standard input, so that the key stands in no argument list and no environment, and
ends with its parent. Only the child loads the inference library.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from core.errors import ModelMissing, ModelReplyInvalid, ModelTimeout, ModelUnreachable
from core.llm.chat_template import fence_template

if TYPE_CHECKING:  # the child imports none of this: it would cost it time and memory
    import httpx

    from core.config import TierSettings
    from core.llm.client import ChatReply, ChatRequest
    from core.llm.wire import HttpModel

PACKAGE = "xllamacpp"
# -P: the current folder is not searched, so that a folder named `core` in it is not run.
CHILD = (sys.executable, "-P", "-m", "core.llm.local_server")
_INSTALL = f"{sys.executable} -m pip install 'xllamacpp>=2026.10'"
_START_S = 240.0
_STOP_S = 1.5


def runtime_missing() -> str | None:
    """The one command that installs what serves the model, or None when it is there."""
    return None if importlib.util.find_spec(PACKAGE) else _INSTALL


@dataclass(frozen=True, slots=True)
class _Running:
    process: asyncio.subprocess.Process
    client: httpx.AsyncClient
    wire: HttpModel
    tier: TierSettings


class LocalServer:
    """A `ChatModel` that keeps its own server: started when first asked, and again if it died.

    One request at a time, as there is one slot: waiting for it counts against no time limit.
    """

    def __init__(
        self,
        model: Path,
        *,
        log_file: Path,
        context: int = 8192,
        command: Sequence[str] = CHILD,
    ) -> None:
        """Starts nothing. `context` is in tokens; `command` is another child in tests."""
        self._path, self._log_file, self._context = model, log_file, context
        self._command = tuple(command)
        self._process: asyncio.subprocess.Process | None = None
        self._now: _Running | None = None
        self._starting, self._slot = asyncio.Lock(), asyncio.Lock()
        self._stopping = False

    async def __aenter__(self) -> LocalServer:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def pid(self) -> int | None:
        """The child's process id while it lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def settings(self) -> TierSettings:
        """The tier that this server is. Address and key are real only while it runs."""
        return self._now.tier if self._now else _tier("http://127.0.0.1:9", "", self._path.stem)

    async def start(self) -> TierSettings:
        """Start the child and wait until it answers, some seconds; at once when it runs already.

        Raises `ModelMissing` when the package or the file is not there, `ModelUnreachable` when
        the child dies (its words are in the log file), `ModelTimeout` after four minutes.
        """
        return (await self._run()).tier

    async def name(self) -> str:
        return self._path.stem

    async def complete(self, request: ChatRequest) -> ChatReply:
        """See `ChatModel.complete`; raises what `start` raises, too."""
        async with self._slot:
            return await (await self._run()).wire.complete(request)

    async def warm(self, request: ChatRequest) -> float:
        """Let the server read a prompt, so that what later ones share with it is read already.

        Returns the seconds that it took. The reply is thrown away.
        """
        started = time.monotonic()
        with contextlib.suppress(ModelReplyInvalid):
            await self.complete(replace(request, max_tokens=1))
        return time.monotonic() - started

    async def stop(self) -> None:
        """End the child within two seconds, whatever it is doing. Safe to call twice."""
        self._stopping = True
        try:
            # Without the lock: a start that is under way ends when its child does.
            await _end(self._process)
            async with self._starting:
                await self._shut()
        finally:
            self._stopping = False

    async def _run(self) -> _Running:
        async with self._starting:
            if self._now is not None and self.pid is not None:
                return self._now
            await self._shut()
            if self._stopping:
                raise ModelUnreachable("the bundled model is being stopped", host="127.0.0.1")
            if self._command == CHILD and (mend := runtime_missing()) is not None:
                raise ModelMissing(f"{PACKAGE} is not installed: run `{mend}`", mend=mend)
            if not self._path.is_file():
                mend = "metnos model pull"
                raise ModelMissing(f"the bundled model is not here: run `{mend}`", mend=mend)
            try:
                async with asyncio.timeout(_START_S):
                    self._now = await self._spawn()
            except TimeoutError as exc:
                raise ModelTimeout("the bundled model did not start", seconds=_START_S) from exc
            finally:
                if self._now is None:
                    await self._shut()
            return self._now

    async def _spawn(self) -> _Running:
        import httpx

        from core.llm.openai_wire import OpenAiDialect
        from core.llm.wire import HttpModel

        key = secrets.token_urlsafe(32)
        self._process = process = await self._child()
        orders = {
            "model": str(self._path),
            "key": key,
            "context": self._context,
            "parent": os.getpid(),
        }
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("the child was started without pipes")
        with contextlib.suppress(ConnectionError):  # a child that died is noticed below
            process.stdin.write(json.dumps(orders).encode() + b"\n")
            await process.stdin.drain()
        try:
            address = str(json.loads(await process.stdout.readline())["address"])
        except (ValueError, LookupError, TypeError) as exc:
            why = _ending(await process.wait())
            raise ModelUnreachable(
                f"the bundled model ended at its start ({why}); see {self._log_file.name}",
                host="127.0.0.1",
            ) from exc
        tier = _tier(f"{address}/v1", key, self._path.stem)
        client = httpx.AsyncClient(trust_env=False)
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if (await client.get(f"{address}/health", timeout=5)).status_code == 200:
                    break
            if process.returncode is not None:
                await client.aclose()
                raise ModelUnreachable("the bundled model ended", host="127.0.0.1")
            await asyncio.sleep(0.1)
        return _Running(
            process, client, HttpModel(tier, OpenAiDialect(compact=True), client), tier
        )

    async def _child(self) -> asyncio.subprocess.Process:
        self._log_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        log = os.open(self._log_file, flags, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=_environment(),
                start_new_session=True,
            )
        finally:
            os.close(log)

    async def _shut(self) -> None:
        now, self._now = self._now, None
        process, self._process = self._process, None
        if now is not None:
            await now.client.aclose()
        await _end(process)
        if process is not None:
            # Closes our ends of its pipes now, not when the garbage is collected.
            getattr(process, "_transport").close()  # noqa: B009


async def _end(process: asyncio.subprocess.Process | None) -> None:
    if process is None or process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_STOP_S):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _tier(base_url: str, key: str, model: str) -> TierSettings:
    from core.config import TierSettings

    return TierSettings.model_validate(
        {
            "base_url": base_url,
            "api_key": key or None,
            "model": model,
            "local": True,
            "max_tokens": 512,
            "first_token_timeout_s": 150,
            "total_timeout_s": 240,
            "retries": 1,
        }
    )


def _environment() -> dict[str, str]:
    """What the child needs of ours: where this package and its libraries are, and no secrets."""
    kept = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG")
    root = str(Path(__file__).resolve().parents[2])
    return {**{k: os.environ[k] for k in kept if k in os.environ}, "PYTHONPATH": root}


def _ending(code: int) -> str:
    if code == -signal.SIGILL:
        return "this processor lacks an instruction that it needs"
    return f"signal {-code}" if code < 0 else f"exit status {code}"


# -- the child ----------------------------------------------------------------------------------


def serve() -> NoReturn:
    """Read the orders, load the model, say where it is served, and serve until ended."""
    orders = json.loads(sys.stdin.buffer.readline())
    _end_with(int(orders["parent"]))
    # The library writes to standard output, too: only one line there is ours.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    os.nice(5)  # the bot shall answer others while the model thinks
    server = _load(orders)
    answer.write(json.dumps({"address": server.listening_address}) + "\n")
    answer.close()
    while True:
        signal.pause()


def _load(orders: dict[str, Any]) -> Any:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = orders["model"]
    params.model_alias = {Path(orders["model"]).stem}
    params.n_ctx, params.n_parallel, params.n_gpu_layers = orders["context"], 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _threads()
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [orders["key"]]
    params.use_jinja, params.cache_prompt, params.cache_ram_mib = True, True, 512
    params.verbosity, params.ui = 1, False
    template = fence_template(Path(orders["model"]))
    if template:
        params.chat_template = template
    return xllamacpp.Server(params)


def _threads() -> int:
    # Every processor of a small machine; of a larger one half, where two are most often one core.
    affinity = getattr(os, "sched_getaffinity", None)
    processors = len(affinity(0)) if affinity else os.cpu_count() or 1
    return processors if processors <= 4 else processors // 2


def _end_with(parent: int) -> None:
    """End when the parent does: by the kernel's signal, and by the end of standard input."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    def watch() -> None:
        # Unbuffered: a thread inside a buffered read would hold its lock at exit.
        while os.read(0, 4096):
            pass
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    serve()
