"""S12 in small: after many induced failures the secrets of the house stand nowhere.

The bot's token and the model's key are canaries; everything the home holds, the log at its most
talkative, what people were sent and the children's arguments and environments are searched.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from bot.app import open_house, secrets_of
from core import logs
from core.messages import Role
from core.store import actors
from tests.acceptance.scenes import files_holding, turn_lines
from tests.acceptance.town import LONG, Town, open_town
from tests.support.executors import home_settings, manifest_toml, signed_executor
from tests.support.fakeapi import TOKEN
from tests.support.house import ask, house_settings
from tests.support.model_servers import serving
from tests.support.scripted_model import Rule

KEY = "canarykey0f9e8d7c6b5a4"
SECRETS = (KEY, TOKEN, TOKEN.partition(":")[2])
SLEEPS = """
import time


def run(call):
    time.sleep(2)
    return {"ok": True, "content": 1}
"""
CRASHES = """
import os


def run(call):
    raise RuntimeError(repr(dict(os.environ)) + repr(vars(call)))
"""


def children_of(pid: int) -> Iterator[Path]:
    """The /proc folders of all processes below this one."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            yield folder
            yield from children_of(int(folder.name))


def holding(data: bytes) -> list[str]:
    return [secret for secret in SECRETS if secret.encode() in data]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    rules = [
        Rule(user="errore (500|429|401|404|503)", status=500, times=3),
        Rule(user="tronca", text="a metà", cut=True),
        Rule(user="dorme", after=0, calls=[("get_texts", {})]),
        Rule(user="rompe", after=0, calls=[("list_texts", {})]),
        Rule(user="chiave", after=0, calls=[("read_files", {"paths": ["~/.ssh/id_rsa"]})]),
        Rule(user="ambiente", after=0, calls=[("read_files", {"paths": ["/proc/self/environ"]})]),
        Rule(user="archivio", after=0, calls=[("find_files", {"base_path": "~/home/private"})]),
        Rule(user="pagina", after=0, calls=[("get_urls", {"urls": ["http://127.0.0.1:9/x"]})]),
        Rule(user="lento", text="tardi", delay=30),
        Rule(text="Ecco."),
    ]
    options = {
        "METNOS_LLM_API_KEY": KEY,
        "METNOS_LOG_LEVEL": "DEBUG",
        "METNOS_LOG_FILE": str(tmp_path / "home/metnos.log"),
        "METNOS_FILES_ROOTS": str(tmp_path),
    }
    with open_town(tmp_path, rules, **options) as town:
        town.telegram.forks = False  # its environment is looked at
        yield town


def test_secrets_stand_nowhere_after_many_failures(town: Town) -> None:
    tg = town.telegram
    tg.start_bot()
    town.pair_all(["anna"], Role.HOST)
    town.pair_all(["bruno"], Role.GUEST)
    settings = home_settings(town.tmp)
    signed_executor(settings, manifest_toml("get_texts"), SLEEPS)
    signed_executor(settings, manifest_toml("list_texts"), CRASHES)

    said = {"anna": 1, "bruno": 1}

    def say(request: str, *, wait: bool = True) -> None:
        # Two people in turn: one chat gets one message a second.
        name = min(said, key=lambda name: said[name])
        tg.say(name, request)
        said[name] += 1
        if wait:
            heard(name, request)

    def heard(name: str, what: str) -> None:
        town.wait_for(lambda: len(town.texts(name)) >= said[name], timeout=LONG, what=what)

    say("dorme", wait=False)
    town.wait_for(lambda: list(children_of(tg.proc.pid)), timeout=LONG, what="the child")
    seen = 0
    for folder in children_of(tg.proc.pid):
        for name in ("cmdline", "environ"):
            try:
                assert not holding((folder / name).read_bytes()), (folder, name)
            except OSError:
                continue
            seen += 1
    assert seen
    say("errore 500")
    say("tronca")
    for request in ("rompe", "chiave", "ambiente", "archivio", "pagina", f"che cos'è {TOKEN}?"):
        say(request)
    for code in (500, 502, -1):
        tg.fault("sendMessage", code=code, times=1)
        tg.fault("getUpdates", code=code, times=1)
        say(f"guasto {code}")
    tg.fault("sendMessage", code=429, retry_after=1, times=1)
    say("aspetta")
    tg.raw("message", {"message_id": 1})
    tg.say("anna", "lento")
    town.wait_for(lambda: "lento" in town.model.asked[-1].user, timeout=LONG, what="the slow one")
    tg.say("anna", "/stop")
    said["anna"] += 1
    heard("anna", "the stop")
    tg.say("anna", "lento")
    town.wait_for(lambda: town.open_rows()["inbox"], timeout=LONG, what="a row")
    town.restart()
    tg.say("anna", "/stop")
    town.settle()
    beside = [
        town.cli(*words, check=False)
        for words in (["doctor"], ["turns", "list"], ["turns", "list", "--json"])
    ]
    tg.stop_bot()
    wrong = {"TELEGRAM_BOT_TOKEN": TOKEN[:-4] + "0000", "METNOS_ENGINE": "none"}
    env, town.env = town.env, {**town.env, **wrong}
    beside.append(town.cli("run", check=False))
    town.env = env

    failures = [line for line in turn_lines(town.home) if line["final_kind"] == "error"]
    found = {secret: files_holding(town.home, secret) for secret in SECRETS}
    print(f"\ncanary: {len(turn_lines(town.home))} turns, {len(failures)} failed; {found}")
    assert found[KEY] == []
    # What a person wrote stands in the inbox for its week, and nowhere else.
    assert {name for names in found.values() for name in names} <= {
        "private/metnos.db", "private/metnos.db-wal",
    }  # fmt: skip
    bodies = [body for (body,) in town.rows("SELECT body FROM inbox") if "che cos" not in body]
    assert not holding(json.dumps(bodies).encode())
    for table in ("outbox", "turns", "effects", "kv", "usage", "scratchpad"):
        assert not holding(repr(town.rows(f"SELECT * FROM {table}")).encode()), table
    assert not holding((town.tmp / "bot.log").read_bytes())
    for name in said:
        assert not holding("\n".join(town.texts(name)).encode())
    for ran in beside:
        assert not holding((ran.stdout + ran.stderr).encode())
        assert "Traceback" not in ran.stdout + ran.stderr


@pytest.mark.parametrize("status", [200, 400, 401, 500])
async def test_key_that_a_server_says_back_is_not_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
) -> None:
    """Servers put the key they were given into their errors."""

    async def echoes(request: web.Request) -> web.StreamResponse:
        text = f"Incorrect API key provided: {request.headers['Authorization']}"
        return web.json_response({"error": {"message": text}}, status=status)

    before = list(logging.getLogger().handlers)
    async with serving(echoes) as server:
        settings = house_settings(
            tmp_path, base_url=server.url, metnos_llm_api_key=KEY, metnos_log_level="DEBUG"
        )
        file = settings.metnos_home / "metnos.log"
        logs.configure("DEBUG", file=file, secrets=secrets_of(settings))
        try:
            async with open_house(settings, "test") as house:
                async with house.stores.main.write() as tx:
                    await actors.ensure_local_host(tx, house.clock)
                closed = await ask(house, "ciao")
        finally:
            root = logging.getLogger()
            for handler in set(root.handlers) - set(before):
                root.removeHandler(handler)
                handler.close()
            root.handlers[:] = before

    assert any(KEY in h.get("authorization", "") for h in server.headers)
    assert closed.final_kind.value == "error"
    assert KEY not in closed.reply.plain
    assert files_holding(settings.metnos_home, KEY) == []
    out, err = capsys.readouterr()
    assert KEY not in out + err
