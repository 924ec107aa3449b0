"""The bundled model's process: started, keyed, warmed, ended with its parent. The child is a
stand-in that answers at once; tests marked `llm` use the real one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from core.errors import ModelMissing, ModelReplyInvalid, ModelUnreachable
from core.llm import local_server
from core.llm.chat_template import fence_template
from core.llm.local_model import find_model
from core.llm.local_server import CHILD, LocalServer, runtime_missing
from tests.support import processes
from tests.support.model_servers import ask

FAKE = """
import http.server, json, os, signal, sys, threading, time
orders = json.loads(sys.stdin.readline())
mode = sys.argv[1]
if mode == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "dies":
    sys.stderr.write("no such tensor\\n"); raise SystemExit(3)
if mode == "slow":
    time.sleep(60)
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def do_GET(self):
        self.answer(200, {"status": "ok"})
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Bearer " + orders["key"]:
            return self.answer(401, {"error": {"code": "key"}})
        if mode == "crashes":
            os._exit(1)
        said = {"limit": asked["max_tokens"], "argv": sys.argv, "env": sorted(os.environ)}
        message = {"content": "" if asked["max_tokens"] == 1 else json.dumps(said)}
        done = "length" if asked["max_tokens"] == 1 else "stop"
        self.answer(200, {"choices": [{"message": message, "finish_reason": done}]})
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(json.dumps({"address": "http://127.0.0.1:%d" % server.server_port}), flush=True)
server.serve_forever()
"""


@pytest.fixture
def fake(tmp_path):
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    (tmp_path / "fake.py").write_text(FAKE)

    def make(mode: str = "well") -> LocalServer:
        command = (sys.executable, str(tmp_path / "fake.py"), mode)
        log_file = tmp_path / "logs" / "model.log"
        return LocalServer(tmp_path / "tiny.gguf", log_file=log_file, command=command)

    return make


async def _until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():  # noqa: ASYNC110  another process is waited for
            await asyncio.sleep(0.01)


async def test_server_starts_when_first_asked_and_keeps_its_key_to_itself(fake, monkeypatch):
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123:secret")
    server = fake()
    try:
        reply = await server.complete(ask(max_tokens=77))
        settings = await server.start()
    finally:
        await server.stop()

    said = json.loads(reply.text)
    key = settings.api_key.get_secret_value()
    assert said["limit"] == 77
    assert "TELEGRAM_BOT_TOKEN" not in said["env"]
    assert key not in str(said)
    assert key not in repr(settings)
    assert settings.base_url.startswith("http://127.0.0.1:")
    assert settings.local


async def test_server_asked_by_many_starts_once(fake):
    server = fake()
    try:
        await asyncio.gather(*(server.complete(ask()) for _ in range(5)))
        first = server.pid
        await server.complete(ask())
        assert server.pid == first
    finally:
        await server.stop()


async def test_warm_reads_the_prompt_with_one_token_and_drops_the_reply(fake):
    async with fake() as server:
        assert await server.warm(ask()) > 0
        with pytest.raises(ModelReplyInvalid):
            await server.complete(ask(max_tokens=1))


async def test_server_whose_child_died_starts_another(fake):
    async with fake() as server:
        first = server.pid
        os.kill(first, signal.SIGKILL)
        await _until(lambda: server.pid is None)
        await server.complete(ask())

        assert server.pid not in {None, first}


async def test_server_whose_child_crashes_on_a_request_is_unreachable(fake):
    async with fake("crashes") as server:
        with pytest.raises(ModelUnreachable):
            await server.complete(ask())


@pytest.mark.parametrize("mode", ["well", "deaf", "slow"])
async def test_stop_ends_the_child_also_a_deaf_one(fake, mode):
    server = fake(mode)
    task = asyncio.create_task(server.start())
    await _until(lambda: server.pid is not None and (mode == "slow" or task.done()))
    pid = server.pid

    started = time.monotonic()
    await server.stop()

    assert time.monotonic() - started < 20  # it would stay for 60
    assert not Path(f"/proc/{pid}").exists()
    assert server.pid is None
    await asyncio.gather(task, return_exceptions=True)
    await server.stop()


async def test_start_when_the_child_dies_names_the_log_that_holds_its_words(fake, tmp_path):
    server = fake("dies")
    with pytest.raises(ModelUnreachable, match=r"exit status 3.*model\.log"):
        await server.start()

    log = tmp_path / "logs" / "model.log"
    assert "no such tensor" in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


async def test_start_when_the_file_is_missing_says_what_brings_it(fake, tmp_path):
    (tmp_path / "tiny.gguf").unlink()
    with pytest.raises(ModelMissing, match="metnos model pull"):
        await fake().start()


async def test_start_when_the_package_is_missing_says_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(local_server, "PACKAGE", "no_such_package_here")
    server = LocalServer(tmp_path / "m.gguf", log_file=tmp_path / "log")
    with pytest.raises(ModelMissing, match="pip install") as caught:
        await server.start()

    assert runtime_missing() == caught.value.params["mend"]


def test_child_whose_parent_is_another_ends_at_once(tmp_path):
    orders = json.dumps({"model": "none", "key": "k", "context": 1, "parent": 1}).encode()
    done = subprocess.run(CHILD, input=orders + b"\n", capture_output=True, timeout=120)

    assert done.returncode == 1
    assert done.stdout == b""


def _gguf(path: Path, template: str) -> Path:
    text = template.encode()
    key = b"tokenizer.chat_template"
    path.write_bytes(b"GGUF" + key + struct.pack("<IQ", 8, len(text)) + text + b"rest")
    return path


def test_fence_template_replaces_the_tags(tmp_path):
    stored = "within <tool_call></tool_call> XML tags:\n<tool_call>\n{}\n</tool_call>"

    assert fence_template(_gguf(tmp_path / "m", stored)) == (
        "within a ```json fenced block:\n```json\n{}\n```"
    )


@pytest.mark.parametrize(
    "data", [b"", b"GGUF", b"tokenizer.chat_template" + struct.pack("<IQ", 8, 1 << 40)]
)
def test_fence_template_of_a_strange_file_is_empty(tmp_path, data):
    path = tmp_path / "m"
    path.write_bytes(data)

    assert fence_template(path) == ""


# -- the real model -----------------------------------------------------------------------------


@pytest.fixture
def real(tmp_path):
    named = os.environ.get("METNOS_TEST_MODEL")
    path = Path(named) if named else find_model(Path.home() / ".local/share/metnos")
    if path is None or not path.is_file() or runtime_missing():
        pytest.skip("the bundled model is not on this machine (METNOS_TEST_MODEL=…/file.gguf)")
    return LocalServer(path, log_file=tmp_path / "model.log")


@pytest.mark.llm
@pytest.mark.timeout(300)
async def test_real_model_fills_a_schema_and_calls_a_tool(real):
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    }
    async with real:
        filled = await real.complete(ask("Che ore sono a Tokyo?", schema=schema, max_tokens=40))
        called = await real.complete(ask("What time is it? Use get_now.", tools=["get_now"]))

    assert list(json.loads(filled.text)) == ["city"]
    assert "\n" not in filled.text
    assert [call.name for call in called.tool_calls] == ["get_now"]


@pytest.mark.llm
@pytest.mark.timeout(300)
def test_real_child_ends_with_a_parent_that_was_killed(real, tmp_path):
    script = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from core.llm.local_server import LocalServer\n"
        "async def main():\n"
        f"    s = LocalServer(Path({str(real._path)!r}), log_file=Path({str(tmp_path / 'l')!r}))\n"
        "    await s.start()\n    print(s.pid, flush=True)\n    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = processes.start([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()

    deadline = time.monotonic() + 60
    while Path(f"/proc/{child}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
