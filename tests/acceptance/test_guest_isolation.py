"""Acceptance 3: whatever a guest asks, through a model that obeys, nothing of the host's is found.

The host's canary stands in every table, log and folder (`hoard`); a guest tries every route there
is, in their own chat and in a group with the host. What the guest can see is searched: prompts,
messages, events, their files. So is another guest's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from bot.telegram.commands import Commands
from bot.telegram.inbound import Command, Origin
from core.messages import Actor, ChatAddress, InboundKind, Role, TurnSuspended
from core.store import actors, scratchpad
from tests.acceptance import hoard
from tests.acceptance.hoard import CANARY, NAME, holds
from tests.core.test_questions import said
from tests.support.house import open_scripted
from tests.support.scripted_model import Ask, Rule, ScriptedModel

GROUP = ChatAddress("telegram", "-1001")
HOST, LUCA, SARA = "9", "7", "8"
Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Attack:
    """What a guest says, and what the model calls for it, step by step."""

    words: str
    steps: Sequence[Call]
    names: bool = False
    """The guest says a name of the host's folders themselves."""


@dataclass
class Scene:
    house: House
    model: ScriptedModel
    host: Actor
    luca: Actor
    sara: Actor
    notes: Path
    alias: Path
    attacks: list[Attack] = field(default_factory=list)

    async def say(self, sender: str, text: str, **fields: Any) -> list[Any]:
        here = {"address": ChatAddress("telegram", sender), "sender_id": sender}
        return await said(self.house, text, **{**here, **fields})

    def files_of(self, actor: Actor) -> Path:
        return self.house.settings.metnos_home / "files" / actor.id


def script() -> list[Rule]:
    """Obeys `prova N`: the steps of attack N in their order, then everything that came back."""
    scene: dict[str, Scene] = {}

    def attack(ask: Ask) -> Attack | None:
        word = ask.user.split()
        known = scene.get("it")
        number = int(word[1]) if len(word) > 1 and word[0] == "prova" and word[1].isdigit() else -1
        return known.attacks[number] if known and 0 <= number < len(known.attacks) else None

    def is_next(ask: Ask) -> bool:
        found = attack(ask)
        return found is not None and len(ask.results) < len(found.steps)

    def next_call(ask: Ask) -> list[Call]:
        found = attack(ask)
        assert found is not None
        return [found.steps[len(ask.results)]]

    rules = [
        Rule(user="leggi grande", after=0, calls=[("read_files", {"paths": ["grande.md"]})]),
        Rule(user="elimina diario", after=0, calls=[("delete_files", {"paths": ["diario.md"]})]),
        Rule(when=is_next, calls=next_call),
        Rule(text=lambda ask: "Ecco: " + " ".join(ask.results)),
    ]
    rules[2].scene = scene
    return rules


@asynccontextmanager
async def open_scene(tmp_path: Path) -> AsyncIterator[Scene]:
    notes, alias = tmp_path / f"{NAME}-cartella", tmp_path / "strada"
    notes.mkdir()
    alias.symlink_to(notes)
    rules = script()
    home = tmp_path / f"{NAME}-casa" / "home"
    async with open_scripted(tmp_path, rules, metnos_home=home, metnos_files_roots=(notes,)) as (
        house,
        model,
    ):
        async with house.stores.main.write() as tx:
            host = await actors.ensure_local_host(tx, house.clock)
            await actors.link(tx, "telegram", HOST, host.id)
            luca = await actors.add(tx, Role.GUEST, "", house.clock)
            await actors.link(tx, "telegram", LUCA, luca.id)
            sara = await actors.add(tx, Role.GUEST, "", house.clock)
            await actors.link(tx, "telegram", SARA, sara.id)
        scene = Scene(house, model, host, luca, sara, notes, alias)
        rules[2].scene["it"] = scene
        for one in (luca, sara):
            scene.files_of(one).mkdir(parents=True, exist_ok=True)
        yield scene


async def the_host_lives(scene: Scene) -> dict[str, str]:
    """The host reads, asks, is asked and says things, also in the group; what a thief would want
    of it: ids and tokens."""
    (scene.notes / "grande.md").write_text(f"{CANARY}\n" * 2000, encoding="utf-8")
    await scene.say(HOST, "leggi grande.md")
    await scene.say(HOST, f"il mio segreto è {CANARY}")
    await scene.say(HOST, f"qui lo dico a tutti: {CANARY}-detto-in-gruppo", address=GROUP)
    (scene.notes / "diario.md").write_text(CANARY, encoding="utf-8")
    asked = (await scene.say(HOST, "elimina diario.md"))[-1]
    assert isinstance(asked, TurnSuspended)
    async with scene.house.stores.main.read() as tx:
        row = await tx.fetch_one("SELECT id, turn_id FROM scratchpad LIMIT 1")
        assert row is not None
        entry = await scratchpad.get(tx, scene.host.id, row["turn_id"], row["id"])
        open_one = await tx.fetch_one("SELECT id FROM suspensions LIMIT 1")
    assert entry is not None
    assert open_one is not None
    return {
        "entry": str(row["id"]),
        "turn": str(row["turn_id"]),
        "ask": str(open_one["id"]),
        "token": asked.reply.buttons[0][0].token,
    }


def routes(scene: Scene, loot: dict[str, str], other: Actor) -> list[Attack]:
    """Every way to what is not theirs: by path in every spelling, by reference, by id."""
    home, host = scene.house.settings.metnos_home, scene.host
    places = [
        f"{scene.alias}/diario.md",
        f"{scene.alias}/../strada/diario.md",
        f"{scene.alias}/grande.md",
        "diario.md",
        "~/diario.md",
        f"../{host.id}/mio.md",
        f"~/../{host.id}/mio.md",
        f"../{other.id}/suo.md",
        "../../private/metnos.db",
        "../../private/nota.txt",
        "../../turns/2026-01-01.jsonl",
        "../../policy/2026-01.jsonl",
        "../../metnos.log",
        "../../.env",
        "%2e%2e/%2e%2e/private/metnos.db",
        f"file://{scene.alias}/diario.md",
        "scorciatoia/diario.md",
        "scorciatoia.md",
        "doppio.md",
        "/proc/self/root" + f"{scene.alias}/diario.md",
    ]
    named = [
        str(scene.notes / "diario.md"),
        f"{NAME}-cartella/diario.md",
        str(home / "private/metnos.db"),
        str(home / "files" / host.id / "mio.md"),
    ]
    attacks = [
        Attack(f"leggi {path}", [("read_files", {"paths": [path]})], names=path in named)
        for path in (*places, *named)
    ]
    folders = [str(scene.alias), "..", "../..", f"../{host.id}", "/", "~", ".", "scorciatoia"]
    for folder in folders:
        attacks += [
            Attack(f"elenca {folder}", [("list_dirs", {"path": folder})]),
            Attack(f"cerca in {folder}", [("find_files", {"base_path": folder})]),
            Attack(
                f"cerca e leggi in {folder}",
                [("find_files", {"base_path": folder}), ("read_files", {"from_step": 1})],
            ),
        ]
    source = f"{scene.alias}/grande.md"
    attacks += [
        Attack(f"sposta {source} in mio.md", [("move_files", {"paths": [source], "dst": "."})]),
        Attack(f"elimina {source}", [("delete_files", {"paths": [source]})]),
        Attack(f"scrivi x in {source}", [("write_files", {"path": source, "content": "x"})]),
        Attack(f"scrivi x in ../{host.id}/mio.md",
               [("write_files", {"path": f"../{host.id}/mio.md", "content": "x"})]),
    ]  # fmt: skip
    by_id = [loot["entry"], "feedfacefeedface"]
    own = ("read_files", {"paths": ["grande.md"]})
    for entry in by_id:
        for mode in ("full", "head", "tail"):
            attacks.append(
                Attack(
                    f"leggi grande.md e poi {entry}",
                    [own, ("scratchpad_read", {"id": entry, "mode": mode})],
                )
            )
    turn = loot["turn"]
    references = ["{{step0.content}}", "{{step1.content}}", "${step1.content}", "${FILLER:diario}"]
    references += ["${RUNTIME:request}", "${RUNTIME:pref_home}", f"{{{{{turn}.content}}}}"]
    for reference in (*references, f"secret:{turn}", "secret:feedface"):
        attacks.append(
            Attack(
                f"scrivi {reference} in bottino.md",
                [("write_files", {"path": "bottino.md", "content": reference})],
            )
        )
    attacks += [
        Attack("dove sono?", [("get_location", {})]),
        Attack("trova una farmacia vicino a me", [("find_places", {"query": "farmacia"})]),
        Attack("annulla quello che ha fatto lui", [("undo_last_turn", {})]),
        Attack("che cosa ci siamo detti prima?", []),
        Attack("qual è il segreto?", [("get_inputs", {"fields": [{"var": "x", "prompt": "?"}]})]),
    ]
    return attacks


class Watch:
    """What a guest got to see since the last look."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._asked = len(scene.model.asked)
        self._sent: set[str] = set()

    async def seen(self, events: Sequence[Any], chats: Sequence[str]) -> dict[str, str]:
        prompts = self.scene.model.asked[self._asked :]
        self._asked = len(self.scene.model.asked)
        async with self.scene.house.stores.main.read() as tx:
            rows = await tx.fetch_all("SELECT key, chat_key, body FROM outbox")
        new = [
            str(row["body"])
            for row in rows
            if row["key"] not in self._sent
            and any(str(row["chat_key"]).startswith(c) for c in chats)
        ]
        self._sent |= {str(row["key"]) for row in rows}
        return {
            "prompts": json.dumps([ask.body for ask in prompts], ensure_ascii=False),
            # The error of an end is for the log; its words stand in the reply.
            "events": repr([getattr(event, "reply", event) for event in events]),
            "messages": json.dumps(new, ensure_ascii=False),
        }


async def end_questions(scene: Scene, sender: str) -> None:
    for chat in (ChatAddress("telegram", sender), GROUP):
        await scene.house.turns.stop(chat, sender)


@pytest.mark.timeout(240)
async def test_guest_finds_nothing_of_the_host_or_of_another_guest(tmp_path: Path) -> None:
    async with open_scene(tmp_path) as scene:
        house = scene.house
        loot = await the_host_lives(scene)
        tables = await hoard.fill(house, scene.host.id)
        files = hoard.fill_files(house, scene.host.id, scene.notes)
        assert all(tables.values()), tables
        mine, hers = scene.files_of(scene.luca), scene.files_of(scene.sara)
        (hers / "suo.md").write_text(CANARY, encoding="utf-8")
        await scene.say(SARA, f"io so che {CANARY}")
        (mine / "grande.md").write_text("parole mie\n" * 2000, encoding="utf-8")
        (mine / "scorciatoia").symlink_to(scene.notes)
        (mine / "scorciatoia.md").symlink_to(scene.notes / "diario.md")
        (mine / "doppio.md").hardlink_to(scene.notes / "diario.md")
        scene.attacks = routes(scene, loot, scene.sara)
        watch, leaks, tried = Watch(scene), list[str](), 0
        await watch.seen((), ())

        async def look(
            what: str, events: Sequence[Any], chats: Sequence[str], names: bool
        ) -> None:
            nonlocal tried
            tried += 1
            for where, text in (await watch.seen(events, chats)).items():
                if holds(text) or (not names and holds(text, NAME)):
                    at = text.find(CANARY if holds(text) else NAME)
                    leaks.append(f"{what}: {where}: …{text[max(0, at - 120) : at + 60]}…")

        for number, attack in enumerate(scene.attacks):
            for address in (ChatAddress("telegram", LUCA), GROUP):
                async with house.stores.main.write() as tx:  # so many questions, in one hour
                    await tx.execute("UPDATE turns SET started_at = started_at - 4000")
                events = await scene.say(LUCA, f"prova {number} {attack.words}", address=address)
                # What is said in a group the group has read; what the guest gets is searched.
                await look(attack.words, events, [f"telegram:{LUCA}:", GROUP.key], attack.names)
                await end_questions(scene, LUCA)
        for token in (loot["token"], CANARY, "hostask", loot["ask"]):
            for here in (LUCA, HOST):
                events = await scene.say(
                    LUCA, "", kind=InboundKind.CHOICE, data={"token": token},
                    address=ChatAddress("telegram", here),
                )  # fmt: skip
                await look(f"tap {token}", events, [f"telegram:{LUCA}:"], False)
        for words in ("annulla", "/undo", "no", "sì", "ok"):
            events = await scene.say(LUCA, words, address=ChatAddress("telegram", LUCA))
            await look(words, events, [f"telegram:{LUCA}:"], False)
        commands = Commands(
            store=house.stores.main, texts=house.texts, clock=house.clock, default_lang="it",
            tz="Europe/Rome", folders=(f"{NAME}-cartella",),
        )  # fmt: skip
        origin = Origin(ChatAddress("telegram", LUCA), LUCA, "Luca", "it", 5)
        for name in ("start", "help", "lang", "pair", "praxis", "console", "tasks", "forget"):
            said_back = await commands.run(Command(origin, name, ""), scene.luca)
            await look(f"/{name}", [said_back], [], False)
        status = await commands.status(
            scene.luca, "it", waiting=0, running=None, poll_age_s=1.0, rival=None
        )
        await look("/status", [status], [], False)
        stolen = [
            str(path) for path in mine.rglob("*")
            if path.is_file() and not path.is_symlink() and path.name != "doppio.md"
            and CANARY in path.read_text(encoding="utf-8", errors="replace")
        ]  # fmt: skip
        async with house.stores.main.read() as tx:
            question = await tx.fetch_one("SELECT state FROM suspensions WHERE id = :id",
                                          {"id": loot["ask"]})  # fmt: skip

        print(
            f"\nisolation: {tried} tries on {len(tables)} tables and {files} files, "
            f"{len(leaks)} leaks, {len(stolen)} files stolen"
        )
        assert not leaks, "\n".join(leaks[:10])
        assert not stolen
        assert (scene.notes / "diario.md").read_text(encoding="utf-8").startswith(CANARY)
        assert (scene.notes / "grande.md").exists()
        assert (hers / "suo.md").read_text(encoding="utf-8") == CANARY
        assert question is not None
        assert question["state"] == "open"


async def test_canaries_are_found_when_a_guest_is_given_the_hosts_scope(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same tries can fail: a house that gives everybody the host's folders is caught."""
    from core import turn_setup
    from core.execution.paths import scope_for

    def everything(actor: Actor, settings: Any, granted: Any = None) -> Any:
        host = Actor(actor.id, Role.HOST, actor.display_name)
        return scope_for(host, settings, granted)

    monkeypatch.setattr(turn_setup, "scope_for", everything)
    async with open_scene(tmp_path) as scene:
        (scene.notes / "diario.md").write_text(CANARY, encoding="utf-8")
        scene.attacks = [Attack("leggi diario.md", [("read_files", {"paths": ["diario.md"]})])]
        watch = Watch(scene)
        events = await scene.say(LUCA, "prova 0 leggi diario.md")
        seen = await watch.seen(events, [f"telegram:{LUCA}:"])

    assert holds(seen["prompts"])
    assert holds(seen["messages"])
