"""Bar S8: taps that are forged, foreign, replayed, late or doubled consume nothing; the right one
is consumed exactly once. Over the fake Bot API and the real handlers."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.lives import LINE, OLD, Lives, open_lives
from tests.acceptance.scenes import repetitions, turn_lines
from tests.acceptance.town import LONG
from tests.support.executors import home_settings, install_unit, tree_unit

# What happens between a question and the right tap.
BETWEEN = ("expired", "changed", "restart", "withdrawn", "nothing", "answered", "refused")
TAPS_A_ROUND = 18


class Attack:
    """One question after the other, each tapped in every wrong way and then in the right one."""

    def __init__(self, lives: Lives, seed: int) -> None:
        self.lives, self.town = lives, lives.town
        self.tg, self.rng = lives.town.telegram, random.Random(seed)
        self.taps = 0
        self.rounds = 0
        self.versions = 0
        self.seen: Counter[str] = Counter()

    def tap(self, who: str, data: str, chat: str, message: dict[str, Any] | None = None) -> str:
        self.taps += 1
        return str(self.tg.tap(who, data, chat=chat, message=message))

    def worked(self) -> None:
        """Wait until every tap was heard and worked; taps of strangers are never stored."""
        self.town.wait_for(
            lambda: (
                not any(
                    n for name, n in self.town.open_rows().items() if name in {"inbox", "outbox"}
                )
            ),
            timeout=LONG,
            what="the end of the taps",
        )

    def stored(self, before: int, count: int) -> None:
        self.town.wait_for(
            lambda: self.town.rows("SELECT count(*) FROM inbox")[0][0] >= before + count,
            timeout=LONG,
            what="the taps",
        )
        self.worked()

    def inbox(self) -> int:
        return int(self.town.rows("SELECT count(*) FROM inbox")[0][0])

    def round(self, kind: str, between: str) -> None:
        """One question: what was consumed before the right tap, by it, and after it."""
        name = f"anna{self.rounds}"
        self.rounds += 1
        notes = self.lives.people[0].folder
        (notes / f"{name}.txt").write_text(OLD, encoding="utf-8")
        wish = f"elimina {name}.txt"
        if kind == "choice":
            wish = f"scrivi il colore di {name}.txt in {name}.md"
        self.tg.say("anna", wish)
        card = self.tg.expect("anna", buttons=["^✅" if kind == "yes" else "^verde$"],
                              timeout=LONG)["message"]  # fmt: skip
        self.worked()
        buttons = [b for row in card["reply_markup"]["inline_keyboard"] for b in row]
        token = next(b["callback_data"] for b in buttons if b["text"][:1] in {"✅", "v"})
        turn_id = self.town.rows("SELECT id FROM turns ORDER BY rowid DESC LIMIT 1")[0][0]

        self._wrong_ones(token, card)
        assert self.state_of(turn_id) == "open", f"{kind}: consumed by a wrong tap"
        assert self.done_of(turn_id, name) == 0
        self._happens(between, turn_id, card, buttons)
        before = self.inbox()
        for _ in range(2):  # twice within a millisecond
            self.tap("anna", token, "anna", card)
        self.stored(before, 2)
        for _ in range(2):  # and again, when all is over
            self.tap("anna", token, "anna", card)
        self.stored(before, 4)
        self._is_right(kind, between, turn_id, name)
        self.seen[between] += 1

    def _wrong_ones(self, token: str, card: dict[str, Any]) -> None:
        """None of these may do anything: forged, foreign, a stranger's, from a forwarded copy."""
        before = self.inbox()
        forged = self.rng.choice(["", "yes", token[:-1], token.swapcase(), token + "x",
                                  "".join(self.rng.choices("abcXYZ019_-", k=22))])  # fmt: skip
        for data in (forged, token[::-1], f"{token}\0", "../" + token, "✅ Sì"):
            self.tap("anna", data, "anna", card)
        for _ in range(3):
            self.tap("eva", token, "anna", card)
        self.tap("bruno", token, "bruno")
        self.tap("bruno", token, "anna", card)
        self.tap("eva", token, "eva")
        forward = {**card, "message_id": card["message_id"] + 5000, "forward_date": 1}
        self.tap("anna", token, "anna", forward)
        by_other = {**card, "from": {"id": 99, "is_bot": True, "first_name": "Other"}}
        self.tap("bruno", token, "bruno", by_other)
        self.stored(before, 9)

    def _happens(
        self, between: str, turn_id: str, card: dict[str, Any], buttons: list[dict[str, Any]]
    ) -> None:
        match between:
            case "restart":
                assert self.lives.engine is not None
                self.lives.engine.kill()
                self.lives.start()
            case "changed":
                self.versions += 1
                for tool in ("delete_files", "write_files"):
                    files = tree_unit(tool)
                    note = f"# another version: {self.versions}\n".encode()
                    files["main.py"] += note
                    install_unit(home_settings(self.town.tmp), tool, files)
            case "withdrawn":
                self.town.execute("UPDATE actors SET autonomy = 'read_only' WHERE role = 'host'")
            case "expired":
                self.town.execute(
                    f"UPDATE suspensions SET expires_at = 1 WHERE turn_id = '{turn_id}'"
                )
            case "answered" | "refused":
                before = self.inbox()
                first = buttons[0] if between == "answered" else buttons[-1]
                self.tap("anna", first["callback_data"], "anna", card)
                self.stored(before, 1)

    def state_of(self, turn_id: str) -> str:
        rows = self.town.rows(f"SELECT state FROM suspensions WHERE turn_id = '{turn_id}'")
        assert len(rows) == 1
        return str(rows[0][0])

    def done_of(self, turn_id: str, name: str) -> int:
        """How often the change was made: in the world, and not otherwise than in the journal."""
        notes = self.lives.people[0].folder
        written = notes / f"{name}.md"
        made = written.read_text(encoding="utf-8").count(LINE) if written.exists() else 0
        made += not (notes / f"{name}.txt").exists()
        journal = self.town.rows(f"SELECT state FROM effects WHERE turn_id = '{turn_id}'")
        assert journal.count(("done",)) == made, (journal, made)
        return made

    def _is_right(self, kind: str, between: str, turn_id: str, name: str) -> None:
        self.town.wait_for(
            lambda: (
                self.town.rows(f"SELECT state FROM turns WHERE id = '{turn_id}'") == [("closed",)]
            ),
            timeout=LONG,
            what=f"the end of {kind}, {between}",
        )
        # The program that a choice leads to was not promised when it was asked.
        stopped = {"withdrawn", "expired", "refused", *(["changed"] if kind == "yes" else [])}
        wanted = 0 if between in stopped else 1
        # Taken once or run out once, whatever came of it: one line for what went on.
        segments = [line for line in turn_lines(self.town.home) if line["turn_id"] == turn_id]
        assert [line["segment"] for line in segments] == [1, 2], (kind, between)
        assert self.done_of(turn_id, name) == wanted, (kind, between)
        assert self.state_of(turn_id) not in {"open", "claimed"}, (kind, between)
        answer = self.town.rows(f"SELECT answer FROM turns WHERE id = '{turn_id}'")[0][0]
        assert answer.strip(), "an end without a word"
        if between == "withdrawn":
            self.town.execute("UPDATE actors SET autonomy = 'supervised' WHERE role = 'host'")


def attack(lives: Lives, taps: int, seed: int = 1) -> Attack:
    lives.town.telegram.user("eva")
    attack = Attack(lives, seed)
    while attack.taps < taps:
        kind = ("yes", "choice")[attack.rounds % 2]
        attack.round(kind, BETWEEN[attack.rounds % len(BETWEEN)])
    return attack


@pytest.mark.timeout(900)
def test_of_all_taps_each_question_takes_exactly_one(tmp_path: Path) -> None:
    taps = repetitions(500, least=60)
    began = time.monotonic()
    with open_lives(tmp_path, "anna", "bruno") as lives:
        done = attack(lives, taps)

        assert lives.town.is_sound()
    print(
        f"\nS8: {done.taps} taps on {done.rounds} questions ({dict(done.seen)}), "
        f"each consumed exactly once, {time.monotonic() - began:.0f} s"
    )


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "mutant",
    [
        "takes_of_anybody",
        *(
            pytest.param(name, marks=pytest.mark.soak)
            for name in ("takes_twice", "forgets_the_time")
        ),
    ],
)
def test_engine_without_the_check_is_caught_by_the_same_taps(tmp_path: Path, mutant: str) -> None:
    with (
        open_lives(tmp_path, "anna", "bruno", mutant=mutant) as lives,
        pytest.raises(AssertionError, match=r"consumed|choice|yes|changed"),
    ):
        attack(lives, 2 * len(BETWEEN) * (TAPS_A_ROUND + 1))
