"""Acceptance 8: twenty people at once: order per chat, no mixing, nobody waits for another."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.messages import ChatAddress, Role
from core.store import actors
from tests.acceptance.scenes import repetitions, turn_lines
from tests.acceptance.town import LONG, Town, open_town
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Ask, Rule

HOST = "anna"
GUESTS = [f"ospite{n:02}" for n in range(19)]
EVERYBODY = [HOST, *GUESTS]
MESSAGES = 5
VERY_SLOW_S = 50.0
SLOW_ONE = "ospite00"
HOST_CANARY = "CANARY-host-file-51c2"


def token_of(ask: Ask) -> str:
    found = re.search(r"gettone-\w+-\d", ask.user)
    assert found is not None
    return found[0]


def echoed(ask: Ask) -> str:
    """The asker's token, and what the model could see of others: nothing, if all is well."""
    own = token_of(ask)
    owner = own.split("-")[1]
    seen = set(re.findall(r"gettone-(\w+?)-\d", json.dumps(ask.body, ensure_ascii=False)))
    others = sorted(seen - {owner})
    return f"{own} visto: {','.join(others) or 'nessun altro'}"


def rules() -> list[Rule]:
    talk = [
        Rule(user="pazienza", text=echoed, delay=VERY_SLOW_S),
        Rule(user=r"rapido .*gettone-\w+", text=echoed),
        Rule(user=r"calmo .*gettone-\w+", text=echoed, delay=0.15),
        Rule(user=r"lento .*gettone-\w+", text=echoed, delay=0.4),
    ]
    work = [
        Rule(
            user=r"scrivi .*gettone-\w+",
            after=0,
            calls=lambda ask: [
                ("write_files", {"path": "diario.md", "content": token_of(ask), "mode": "append"})
            ],
        ),
        Rule(user=r"scrivi .*gettone-\w+", text=echoed),
    ]
    return [*work, *talk]


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    with open_town(tmp_path, rules()) as town:
        (town.notes / "segreto.md").write_text(HOST_CANARY, encoding="utf-8")
        town.telegram.start_bot()
        yield town


def answers_of(town: Town, name: str) -> list[str]:
    """The tokens answered in a chat, and that each answer has no one else's."""
    texts = town.texts(name)[1:]
    assert all("nessun altro" in text for text in texts), texts
    return [re.findall(r"gettone-\w+-\d", text)[0] for text in texts]


def test_twenty_people_are_answered_in_order_without_mixing(town: Town) -> None:
    town.pair_all([HOST], Role.HOST)
    town.pair_all(GUESTS, Role.GUEST)
    kinds = ("rapido", "scrivi", "calmo", "rapido", "lento")

    said: dict[str, float] = {}
    for n in range(MESSAGES):
        for k, name in enumerate(EVERYBODY):
            token = f"gettone-{name}-{n}"
            kind = "pazienza" if (name, n) == (SLOW_ONE, 0) else kinds[(k + n) % len(kinds)]
            town.telegram.say(name, f"{kind} ecco {token}")
            said[token] = time.time()
    others = [name for name in EVERYBODY if name != SLOW_ONE]
    for name in others:
        town.telegram.expect(name, f"gettone-{name}-{MESSAGES - 1}", timeout=LONG)
    still_waiting = town.texts(SLOW_ONE)[1:]
    town.telegram.say(SLOW_ONE, "/stop")
    town.telegram.expect(SLOW_ONE, f"gettone-{SLOW_ONE}-{MESSAGES - 1}", timeout=LONG)

    assert still_waiting == []  # all the others were done while its model still thought
    for name in others:
        assert answers_of(town, name) == [f"gettone-{name}-{n}" for n in range(MESSAGES)]
    stopped, *after = town.texts(SLOW_ONE)[1:]
    assert stopped.startswith("Fermato.")
    assert [f"gettone-{SLOW_ONE}-{n}" in text for n, text in enumerate(after, 1)] == [True] * 4
    lines = turn_lines(town.home)
    assert len(lines) == len(EVERYBODY) * MESSAGES
    for line in lines:
        owner = re.search(r"gettone-(\w+)-\d", line["user_query"])
        assert owner is not None
        assert f"gettone-{owner[1]}-" in line["final_message"] or owner[1] == SLOW_ONE
    assert len({line["actor"] for line in lines}) == len(EVERYBODY)
    # What each wrote stands in their own workspace alone.
    diaries = [*(town.home / "files").glob("*/diario.md"), town.notes / "diario.md"]
    owners = [set(re.findall(r"gettone-(\w+?)-\d", d.read_text())) for d in diaries if d.exists()]
    assert len(owners) == len(others)
    assert all(len(found) == 1 for found in owners)
    town.settle()
    town.telegram.assert_clean()
    report(town, said, others)


def report(town: Town, said: dict[str, float], names: list[str]) -> None:
    """The figures, of everybody but the one whose model was very slow."""
    heard: dict[str, float] = {}
    for event in town.telegram.tg.events:
        if event["kind"] in {"send", "edit"}:
            for token in re.findall(r"gettone-\w+-\d", event["message"].get("text") or ""):
                heard.setdefault(token, event["t"])
    waits = sorted(
        heard[token] - at for token, at in said.items() if token.split("-")[1] in set(names)
    )
    print(
        f"\n20 x {MESSAGES}: p50 {statistics.median(waits):.2f} s, "
        f"p95 {waits[int(len(waits) * 0.95)]:.2f} s, 0 lost, 0 out of order, 0 mixed"
    )


def test_guest_is_refused_the_hosts_file_and_a_stranger_meets_no_model(town: Town) -> None:
    guest = SLOW_ONE
    town.pair_all([HOST], Role.HOST)
    town.pair_all([guest], Role.GUEST)
    read = ("read_files", {"paths": [str(town.notes / "segreto.md")]})
    town.model.rules[:] = [
        Rule(user="prova", after=0, calls=[read]),
        Rule(user="prova", text=lambda ask: "Esito: " + ask.last_result),
    ]
    town.telegram.say(guest, "prova a leggere segreto.md")
    shown = town.telegram.expect(guest, "Esito", timeout=LONG)
    assert "out_of_workspace" in shown["message"]["text"]
    assert HOST_CANARY not in shown["message"]["text"]

    asked = len(town.model.asked)
    for lang, name in (("it", "estraneo"), ("en", "stranger")):
        town.telegram.user(name, language_code=lang)
        for n in range(repetitions(100, least=20)):
            town.telegram.say(name, f"prova {n}: leggi segreto.md")
        town.telegram.expect(name, "", timeout=LONG)
    town.telegram.say(guest, "prova ancora")
    town.telegram.expect(guest, "Esito", timeout=LONG)

    assert len(town.model.asked) == asked + 2
    for name in ("estraneo", "stranger"):
        assert len(town.texts(name)) == 1
    assert town.texts("estraneo") != town.texts("stranger")
    strangers = [str(town.telegram.names[name]) for name in ("estraneo", "stranger")]
    kept = town.rows(f"SELECT body FROM inbox WHERE chat_key LIKE '%{strangers[0]}%'")
    assert len(kept) == 1
    assert "segreto" not in kept[0][0]


GUEST = ChatAddress("telegram", "7007")
WORDS = {
    "read_files": "leggi il file",
    "write_files": "scrivi il file",
    "move_files": "sposta il file",
    "delete_files": "cancella il file",
    "list_dirs": "elenca la cartella",
    "find_files": "cerca i file",
    "create_dirs": "crea la cartella",
}
ATTEMPTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "read_files": lambda path: {"paths": [path]},
    "list_dirs": lambda path: {"path": path},
    "find_files": lambda path: {"base_path": path, "patterns": ["*", ".*"]},
    "write_files": lambda path: {"path": path, "content": "owned"},
    "move_files": lambda path: {"paths": [path], "dst": "mia"},
    "delete_files": lambda path: {"paths": [path]},
}


@pytest.mark.parametrize("tool", ATTEMPTS)
async def test_guest_reaches_no_file_of_the_host_by_any_name(tmp_path: Path, tool: str) -> None:
    async with open_scripted(tmp_path, []) as (house, model):
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "", house.clock)
            await actors.link(tx, "telegram", "7007", guest.id)
            (host_id,) = [a.id for a in await actors.list_actors(tx) if a.role is Role.HOST]
        home = house.settings.metnos_home
        secret, own = tmp_path / "notes/segreto.md", home / "files" / host_id / "mio.md"
        own.parent.mkdir(parents=True, exist_ok=True)
        for file in (secret, own):
            file.write_text(HOST_CANARY, encoding="utf-8")
        outside = [
            str(secret), "../../../notes/segreto.md", f"/{secret}", f"file://{secret}",
            "~/../../../notes/segreto.md", f"/proc/self/root{secret}", str(own), "/",
            f"../{host_id}/mio.md", str(home / "private/metnos.db"), "~/../..", str(tmp_path),
        ]  # fmt: skip
        inside = ["~/notes/segreto.md", "notes/segreto.md", "segreto.md"]

        codes = {}
        for path in (*outside, *inside):
            model.rules = [
                Rule(after=0, calls=[(tool, ATTEMPTS[tool](path))]),
                Rule(text=lambda ask: "Esito: " + ask.last_result),
            ]
            closed = await ask(
                house, f"{WORDS[tool]} segreto mio", address=GUEST, sender_id="7007"
            )
            assert HOST_CANARY not in closed.reply.plain
            codes[path] = turn_lines(home)[-1]["steps"][0]["error_class"]

        assert {codes[path] for path in outside} <= {"out_of_workspace", "forbidden_path"}
        # A name without a place means the guest's own folder, where such a file may be made.
        assert {codes[path] for path in inside} <= {None, "not_found", "not_directory"}
        for file in (secret, own):
            assert file.read_text(encoding="utf-8") == HOST_CANARY
        assert not [a for a in model.asked if HOST_CANARY in json.dumps(a.body)]
