"""People who go on talking while the engine dies again and again, and what must hold then.

A person asks for one thing after the other: to be told a word, to have lines written, a file
deleted (agreed to by tap or by word, or refused), a question answered, a change taken back. What
became of it is read from the world, the journal, the log and the chat, and must be one story.
"""

from __future__ import annotations

import json
import random
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.messages import Role
from tests.acceptance.mortal import Engine, Nursery, Plan
from tests.acceptance.scenes import turn_lines
from tests.acceptance.town import LONG, Town, open_town
from tests.support.scripted_model import Ask, Rule
from tests.support.world import REPO

REPEATED = "(ripetuto: forse lo hai già ricevuto)\n\n"
LINE = "riga\n"
OLD = "vecchio\n"
KINDS = ("tell", "write", "write", "two", "yes", "typed", "no", "ask", "undo write", "undo delete")


def _write(name: str, content: str = LINE) -> tuple[str, dict[str, Any]]:
    return (
        "write_files",
        {"path": f"{name}.md", "content": content, "mode": "append"},
    )


def _named(make: Callable[[str], tuple[str, dict[str, Any]]]) -> Callable[[Ask], Any]:
    return lambda ask: [make(re.findall(r"\b[a-z]+\d+\b", ask.user)[0])]


QUESTION = {"fields": [{"var": "cosa", "prompt": "Che cosa?", "kind": "choice",
                        "options": ["rosso", "verde"]}]}  # fmt: skip
RULES = [
    Rule(user="dimmi", text=lambda ask: f"Ecco: {ask.user.split()[1]}."),
    Rule(user="scrivi una riga", after=0, calls=_named(_write)),
    Rule(user="scrivi due righe", after=0, calls=_named(lambda n: _write(n))),
    Rule(user="scrivi due righe", after=1, calls=_named(lambda n: _write(f"{n}bis"))),
    Rule(
        user="elimina",
        after=0,
        calls=_named(lambda n: ("delete_files", {"paths": [f"{n}.txt"]})),
    ),
    Rule(
        user="scrivi il colore",
        after=0,
        calls=_named(lambda n: ("read_files", {"paths": [f"{n}.txt"]})),
    ),
    Rule(user="scrivi il colore", after=1, calls=[("get_inputs", QUESTION)]),
    Rule(user="scrivi il colore", after=2, calls=_named(lambda n: _write(n))),
    Rule(user="scrivi|elimina", text=lambda ask: f"Bene: {ask.user.split()[-1]}."),
]


@dataclass
class Mission:
    """One thing a person wanted. `agreed`: what they answered, None when nothing was asked."""

    name: str
    kind: str
    agreed: bool | None = None


@dataclass
class Person:
    """Somebody with a chat of their own, who says the next thing when the last has its answer."""

    town: Town
    name: str
    folder: Path
    missions: list[Mission] = field(default_factory=list)
    said: int = 0
    answers: int = 0
    patience_s: float = 2 * LONG
    _going: Iterator[Callable[[], bool]] | None = None
    _until: Callable[[], bool] | None = None
    _since: float = 0.0
    _begun: int = 0
    _asked_at: int = 0
    _looked_at: float = 0.0

    def step(self, next_kind: Callable[[], str] | None) -> bool:
        """Go on if what is waited for has come; False when nothing is under way or to begin."""
        if self._until is not None:
            if not self._until():
                assert time.monotonic() < self._since + self.patience_s, self._stuck()
                return True
            self._until = None
            self.answers += 1
        if self._going is None:
            if next_kind is None:
                return False
            mission = Mission(f"{self.name}{len(self.missions)}", next_kind())
            self.missions.append(mission)
            self._going = self._walk(mission)
        try:
            self._until, self._since = next(self._going), time.monotonic()
        except StopIteration:
            self._going = None
        return True

    def _walk(self, mission: Mission) -> Iterator[Callable[[], bool]]:
        name, notes = mission.name, self.folder
        match mission.kind:
            case "tell":
                yield self._say(f"dimmi {name}")
            case "write":
                yield self._say(f"scrivi una riga in {name}.md")
            case "two":
                yield self._say(f"scrivi due righe in {name}.md e {name}bis.md")
            case "undo write":
                yield self._say(f"scrivi una riga in {name}.md")
                yield self._say("annulla l'ultima operazione")
            case "ask":
                (notes / f"{name}.txt").write_text(OLD, encoding="utf-8")
                yield self._say(f"scrivi il colore di {name}.txt in {name}.md")
                yield from self._answer(mission, "^verde$", "verde")
            case "yes" | "no" | "typed" | "undo delete":
                (notes / f"{name}.txt").write_text(OLD, encoding="utf-8")
                yield self._say(f"elimina {name}.txt")
                button = "^✋" if mission.kind == "no" else "^✅"
                yield from self._answer(mission, button, "sì" if mission.kind == "typed" else "")
                if mission.kind == "undo delete":
                    yield self._say("annulla l'ultima operazione")

    def _answer(self, mission: Mission, button: str, word: str) -> Iterator[Callable[[], bool]]:
        card = max(self._cards(), default=0)
        if card < self._asked_at:
            return  # the turn came to another end
        mission.agreed = button != "^✋"
        if word and mission.kind == "typed":
            yield self._do(lambda: self.town.telegram.say(self.name, word))
        else:
            press = self.town.telegram.press
            yield self._do(lambda: press(self.name, button, message_id=card))

    def _say(self, text: str) -> Callable[[], bool]:
        self._begun += 1
        self._asked_at = self._last_id()
        return self._do(lambda: self.town.telegram.say(self.name, text))

    def _do(self, act: Callable[[], object]) -> Callable[[], bool]:
        """Act, and wait for the end of the turn or for its question."""
        seen, cards = self._last_id(), self._cards()
        self.said += 1
        act()

        def answered() -> bool:
            if self._cards() - cards:
                return True
            return any(number > seen for number, _ in self._messages()) and self._has_ended()

        return answered

    def _has_ended(self) -> bool:
        chat = f"telegram:{self.town.telegram.names[self.name]}:"
        count = f"SELECT count(*) FROM turns WHERE state = 'closed' AND conversation = '{chat}'"
        if time.monotonic() < self._looked_at + 0.05:
            return False
        self._looked_at = time.monotonic()
        try:
            return bool(self.town.rows(count)[0][0] >= self._begun)
        except sqlite3.OperationalError:  # between two engines
            return False

    def _messages(self) -> list[tuple[int, str]]:
        chat = self.town.telegram.tg.chats[self.town.telegram.names[self.name]]
        mine, messages = self.town.telegram.tg.me["id"], dict(chat["messages"])
        return [
            (number, message.get("text") or "")
            for number, message in sorted(messages.items())
            if message["from"]["id"] == mine
        ]

    def _last_id(self) -> int:
        chat = self.town.telegram.tg.chats[self.town.telegram.names[self.name]]
        return max(dict(chat["messages"]), default=0)

    def _cards(self) -> set[int]:
        chat = self.town.telegram.tg.chats[self.town.telegram.names[self.name]]
        return {n for n, m in dict(chat["messages"]).items() if _has_buttons(m)}

    def _stuck(self) -> str:
        return f"{self.missions[-1]}: no answer\n{self.town.telegram.transcript(30)}"


# The buttons of a question; what is offered after a death has others.
_ANSWERS = re.compile("✅ Sì|✋ No|verde")


def _has_buttons(message: dict[str, Any]) -> bool:
    rows = (message.get("reply_markup") or {}).get("inline_keyboard") or []
    return any(_ANSWERS.match(button["text"]) for row in rows for button in row)


class Lives:
    """A town whose engine is forked, may die at any step, and is started again."""

    def __init__(self, town: Town, nursery: Nursery, *, mutant: str = "") -> None:
        self.town, self._nursery, self._mutant = town, nursery, mutant
        self.plan = Plan(town.tmp / "plan")
        self.engine: Engine | None = None
        self.deaths = 0
        self.people: list[Person] = []

    def start(self) -> None:
        """Start an engine; it may die at any moment from now on."""
        self.engine = self._nursery.start(
            {**self.town.env, **self.town.telegram.bot_env()},
            plan=self.town.tmp / "plan",
            log=self.town.tmp / "bot.log",
            mutant=self._mutant,
        )

    def meet(self, *names: str) -> None:
        """Pair the host, then guests, each with a folder of their own."""
        self.start()
        for name in names:
            self.town.pair_all([name], Role.GUEST if self.people else Role.HOST)
            folder = self.town.notes
            if self.people:
                uid = self.town.telegram.names[name]
                rows = self.town.rows(f"SELECT actor_id FROM identities WHERE sender_id = '{uid}'")
                folder = self.town.home / "files" / str(rows[0][0])
                folder.mkdir(exist_ok=True)
            self.people.append(Person(self.town, name, folder))
        self.town.settle()

    def keep_alive(self, rearm: Callable[[], None]) -> bool:
        """Start the engine again if it is gone; True when it was."""
        assert self.engine is not None
        if not self.engine.is_gone():
            return False
        self.deaths += 1
        rearm()
        self.start()
        return True

    def go(
        self,
        kind: Callable[[], str],
        *,
        until: Callable[[], bool],
        rearm: Callable[[], None],
        on_idle: Callable[[], None] | None = None,
        patience_s: float = 2 * LONG,
        disarms: bool = True,
    ) -> None:
        """Let people talk until enough is enough, and then until each has an answer; with
        `disarms` undisturbed. Fails when somebody waits longer than `patience_s` for one."""
        for person in self.people:
            person.patience_s = patience_s
        while not until():
            self.keep_alive(rearm)
            for person in self.people:
                person.step(kind)
            if on_idle is not None:
                on_idle()
            time.sleep(0.004)
        if disarms:
            self.plan.disarm()
            rearm = self.plan.disarm
        while sum(person.step(None) for person in self.people):
            self.keep_alive(rearm)
            time.sleep(0.004)
        end = time.monotonic() + patience_s
        while self._is_open():
            self.keep_alive(rearm)
            assert time.monotonic() < end, self.town.open_rows()
            time.sleep(0.02)

    def _is_open(self) -> bool:
        try:
            return any(self.town.open_rows().values())
        except sqlite3.OperationalError:  # between two engines
            return True

    # -- what must hold ---------------------------------------------------------------------------

    def check(self) -> Counter[str]:
        """Everything that R1 asks for; figures of what was seen."""
        town = self.town
        assert town.is_sound()
        assert not any(town.open_rows().values()), town.open_rows()
        assert town.rows("SELECT count(*) FROM inbox WHERE state = 'dead'") == [(0,)]
        assert town.rows("SELECT count(*) FROM outbox WHERE state = 'dead'") == [(0,)]
        worked = town.rows("SELECT count(*) FROM inbox WHERE state = 'done'")[0][0]
        said = sum(person.said for person in self.people) + len(self.people)
        assert worked == said, f"{said} updates, {worked} worked"
        figures = Counter(updates=said, deaths=self.deaths)
        figures += self._check_sending()
        lines = self._check_log()
        for person in self.people:
            for mission in person.missions:
                figures[self._check_mission(person, mission, lines)] += 1
        return figures

    def _check_sending(self) -> Counter[str]:
        """Nothing was said twice without a mark, and every end was said."""
        found: Counter[str] = Counter()
        for person in self.people:
            texts = [text for _, text in person._messages()]
            found["marked"] += sum(text.startswith(REPEATED) for text in texts)
            unmarked = Counter(
                text
                for text in texts
                if re.search(rf"{person.name}\d", text) and not text.startswith(REPEATED)
            )
            doubled = {text: count for text, count in unmarked.items() if count > 1}
            assert not doubled, f"said twice without a mark: {doubled}"
        silent = self.town.rows(
            """SELECT request FROM turns WHERE NOT EXISTS (SELECT 1 FROM outbox
               WHERE key LIKE turns.id || ':final%' AND state = 'sent')"""
        )
        assert silent == [], f"never told: {silent}"
        return found

    def _check_log(self) -> dict[str, dict[str, Any]]:
        """A line for each segment, and no two; the last line of each turn."""
        lines = [line for line in turn_lines(self.town.home) if line["channel"] == "telegram"]
        keys = Counter((line["turn_id"], line["segment"]) for line in lines)
        assert set(keys.values()) <= {1}, [key for key, count in keys.items() if count > 1]
        last: dict[str, dict[str, Any]] = {}
        for line in lines:
            last[line["turn_id"]] = line
        turns = {row[0] for row in self.town.rows("SELECT id FROM turns")}
        assert turns == set(last)
        return last

    def _check_mission(
        self, person: Person, mission: Mission, lines: dict[str, dict[str, Any]]
    ) -> str:
        name = mission.name
        turns = self.town.rows(
            f"""SELECT id, final_kind, answer FROM turns
                WHERE request LIKE '% {name}.%' OR request = 'dimmi {name}'"""
        )
        assert len(turns) == 1, f"{mission}: {len(turns)} turns"
        turn_id, kind, answer = turns[0]
        effects = {
            row[0]: row[1:]
            for row in self.town.rows(
                f"SELECT step, tool, state, summary_json FROM effects WHERE turn_id = '{turn_id}'"
            )
        }
        undone = self.town.rows(
            f"""SELECT state FROM effects WHERE tool = 'undo_last_turn'
                AND json_extract(summary_json, '$.undoes') = '{turn_id}'"""
        )
        undo = None if not undone else "done" if ("done",) in undone else "unsure"
        if mission.kind in {"yes", "typed", "no", "undo delete"}:
            assert not effects or mission.agreed, f"{mission}: done without a yes"
        wanted = {"tell": 0, "no": 0, "two": 2}.get(mission.kind, 1)
        if kind == "answer" and mission.kind != "no":
            done = [e for e in effects.values() if e[1] == "done"]
            assert len(done) == wanted, f"{mission}: {effects} and yet an answer"
        told = lines[turn_id]["steps"]
        for step in told:
            if step["tool"] in {"write_files", "delete_files"} and step["effects"] != "none":
                assert name in answer, f"{mission}: not told: {answer!r}"
        said = sorted((s["tool"], s["effects"]) for s in told if s["effects"] != "none")
        made = sorted(tuple(e[:2]) for e in effects.values() if e[1] != "failed")
        assert said == made, f"{mission}: {made} in the journal, {said} in the log"
        self._check_world(person, mission, effects, undo)
        return f"{kind}{' undone' if undo else ''}"

    def _check_world(
        self,
        person: Person,
        mission: Mission,
        effects: dict[int, tuple[str, str, str]],
        undo: str | None,
    ) -> None:
        """The files are as the journal says: every change once, or not at all."""
        notes, name = person.folder, mission.name
        for step, (tool, state, summary) in effects.items():
            if tool == "write_files":
                about = json.loads(summary) or {"targets": [str(notes / f"{name}.md")]}
                target = Path(about["targets"][0])
                text = target.read_text(encoding="utf-8") if target.exists() else ""
                there, allowed = text.count(LINE), _allowed(state, undo)
                assert text == LINE * there, f"{mission}: {text!r}"
                assert there in allowed, f"{mission} {step}: {there} lines, {state}, undo {undo}"
            elif tool == "delete_files":
                there = int((notes / f"{name}.txt").exists())
                assert 1 - there in _allowed(state, undo), f"{mission}: {state}, undo {undo}"
        for stray in (path for path in notes.glob("*.md") if path.stem in {name, f"{name}bis"}):
            known = any(stray.name in (e[2] or "") for e in effects.values())
            assert known or self._mutant, f"{mission}: {stray.name} is in no journal"
        if mission.kind in {"yes", "typed", "no", "undo delete"}:
            kept = [p for p in notes.rglob(f"{name}.txt") if p.read_text("utf-8") == OLD]
            assert len(kept) == 1, f"{mission}: {kept}"
            assert effects or (notes / f"{name}.txt").exists(), f"{mission}: gone"


def _allowed(state: str, undo: str | None) -> set[int]:
    """How often the change may stand in the world."""
    if undo == "unsure" or state in {"unknown", "started"}:
        return {0, 1}
    return {1} if state == "done" and undo is None else {0}


@contextmanager
def open_lives(
    tmp: Path, *people: str, mutant: str = "", rules: Sequence[Rule] = RULES
) -> Iterator[Lives]:
    """A town with its people, and an engine that has met them."""
    nursery = Nursery(REPO)
    with open_town(tmp, rules) as town:
        lives = Lives(town, nursery, mutant=mutant)
        try:
            lives.meet(*people)
            yield lives
        finally:
            lives.plan.disarm()
            if lives.engine is not None:
                lives.engine.kill()
            nursery.close()


def chosen(rng: random.Random) -> str:
    return rng.choice(KINDS)
