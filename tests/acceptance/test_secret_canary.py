"""S12: what a person types into a secret field stands nowhere, whatever becomes of the turn.

Over the fake Bot API, with the log at its most talkative: after an answered form, a kill with the
secret in a running child, an expiry, a cancel and a late answer, every byte of the home, the
prompts, what was sent and the child's arguments and environment are searched.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.app import open_house
from bot.console.app import build_app
from core.messages import Role
from core.store import actors, console
from tests.acceptance.scenes import files_holding, turn_lines
from tests.acceptance.test_canary import children_of
from tests.acceptance.test_console import crawl
from tests.acceptance.town import LONG, Town, open_town
from tests.console.conftest import ORIGIN, browser
from tests.support.executors import home_settings, manifest_toml, signed_executor
from tests.support.scripted_model import Rule

CANARIES = {name: f"canary-{name}-4f2a9" for name in ("user", "word", "killed", "late", "cut")}
FIELDS = [
    {"var": "user", "prompt": "Che nome?", "kind": "secret"},
    {"var": "word", "prompt": "Che parola d'ordine?", "kind": "secret"},
]
ARGS = "\n".join(
    f"""[args.properties.{name}]
type = "string"
description = {{ it = "{name}", en = "{name}" }}
x-metnos-type = "secret"
"""
    for name in ("user", "word")
)
# As careless as an executor can be, and slow where it is told so.
CODE = """
import hashlib, sys, time


def run(call):
    word = call.args["word"]
    sys.stderr.write("the word is " + word)
    if "killed" in word:
        time.sleep(20)
    both = (call.args["user"] + " " + word).encode()
    return {"ok": True, "content": {"seen": hashlib.sha256(both).hexdigest(), "said": word}}
"""
RULES = [
    Rule(user="posta", after=0, calls=[("get_inputs", {"fields": FIELDS})]),
    Rule(
        user="posta",
        after=1,
        calls=[("read_messages", {"user": "{{step1.user}}", "word": "{{step1.word}}"})],
    ),
    Rule(user="posta", after=2, text="Letta."),
    Rule(text="Ecco."),
]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    options = {
        "METNOS_LOG_LEVEL": "DEBUG",
        "METNOS_LOG_FILE": str(tmp_path / "home/metnos.log"),
    }
    with open_town(tmp_path, RULES, **options) as town:
        town.telegram.forks = False  # its environment is looked at
        yield town


def test_secrets_of_a_form_stand_nowhere(town: Town) -> None:
    tg = town.telegram
    tg.start_bot()
    town.pair_all(["anna"], Role.HOST)
    signed_executor(
        home_settings(town.tmp), manifest_toml("read_messages", args=ARGS, timeout_s=60), CODE
    )

    def ask() -> None:
        tg.say("anna", "leggi la posta", reply_to=0)
        tg.expect("anna", "^Che nome", timeout=LONG)
        town.wait_for(
            lambda: town.rows("SELECT 1 FROM kv WHERE key LIKE 'telegram.standing:%'"),
            timeout=LONG,
            what="the question noted",
        )

    def type_in(name: str, *, reply: bool = True) -> None:
        tg.say("anna", CANARIES[name], reply_to=None if reply else 0)
        tg.expect("anna", CANARIES[name], kind="delete", timeout=LONG)

    def assert_nowhere() -> None:
        prompts = json.dumps([asked.body for asked in town.model.asked], ensure_ascii=False)
        sent = "\n".join(town.texts("anna"))
        for canary in CANARIES.values():
            assert files_holding(town.home, canary) == []
            assert canary not in prompts
            assert canary not in sent

    # A whole form, once as replies and once as plain messages.
    for reply in (True, False):
        ask()
        type_in("user", reply=reply)
        tg.expect("anna", "^Che parola", timeout=LONG)
        type_in("word", reply=reply)
        tg.expect("anna", "Letta", timeout=LONG)
    both = f"{CANARIES['user']} {CANARIES['word']}"
    told = json.loads(town.model.asked[-1].results[-1])["content"]
    assert told == {"seen": hashlib.sha256(both.encode()).hexdigest(), "said": "•••"}
    assert_nowhere()

    # A cancel after the first field.
    ask()
    type_in("cut")
    tg.expect("anna", "^Che parola", timeout=LONG)
    tg.say("anna", "annulla")
    tg.expect("anna", "lasci", timeout=LONG)
    town.settle()
    assert_nowhere()

    # An expiry after the first field, and the answer that comes too late.
    ask()
    type_in("cut")
    asked = tg.expect("anna", "^Che parola", timeout=LONG)
    town.wait_for(lambda: not town.open_rows()["outbox"], timeout=LONG, what="the question out")
    tg.stop_bot()
    town.execute("UPDATE suspensions SET expires_at = 1 WHERE state = 'open'")
    tg.start_bot()
    tg.expect("anna", "in tempo", timeout=LONG)
    before = len(town.model.asked)
    tg.say("anna", CANARIES["late"], reply_to=asked["message"]["message_id"])
    tg.expect("anna", CANARIES["late"], kind="delete", timeout=LONG)
    tg.expect("anna", "non vale più|in tempo|scadut", timeout=LONG)
    town.settle()
    assert len(town.model.asked) == before
    assert_nowhere()

    # A kill while the child works with the secret.
    ask()
    type_in("user")
    tg.expect("anna", "^Che parola", timeout=LONG)
    tg.say("anna", CANARIES["killed"])
    town.wait_for(
        lambda: any(children_of(tg.proc.pid)),
        timeout=LONG,
        what="the child",
    )
    town.wait_for(
        lambda: town.rows("SELECT count(*) FROM suspensions WHERE state = 'claimed'") == [(1,)],
        timeout=LONG,
        what="the answer taken",
    )
    looked = 0
    for folder in [*children_of(tg.proc.pid), Path(f"/proc/{tg.proc.pid}")]:
        for name in ("cmdline", "environ"):
            try:
                data = (folder / name).read_bytes()
            except OSError:
                continue
            looked += 1
            assert not any(canary.encode() in data for canary in CANARIES.values())
    assert looked >= 4
    tg.stop_bot(kill=True)
    assert_nowhere()
    tg.start_bot()
    tg.expect("anna", "interrott|Non ho cambiato|riavvi", timeout=LONG)
    town.settle()
    assert town.rows("SELECT count(*) FROM secret_answers") == [(0,)]
    tg.stop_bot()
    assert_nowhere()
    assert not any(c.encode() in (town.tmp / "bot.log").read_bytes() for c in CANARIES.values())
    print(f"\ncanary: {len(turn_lines(town.home))} lines, {len(CANARIES)} secrets, 0 found")
    seen = asyncio.run(pages_of(town))
    assert len(seen) > 12
    assert not any(canary in page for canary in CANARIES.values() for page in seen)


async def pages_of(town: Town) -> list[str]:
    """Every page of the console, as its host finds it."""
    async with open_house(home_settings(town.tmp), "test") as house:
        app = build_app(house)
        async with house.stores.main.write() as tx:
            host = await actors.find_host(tx)
            assert host is not None
            secret = await console.make_link(tx, host.id, house.clock.now())
        async with browser(app) as client:
            entered = await client.post("/enter", data={"key": secret}, headers={"origin": ORIGIN})
            assert entered.status_code == 303
            return [page.text for page in await crawl(client)]
