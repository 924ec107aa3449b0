"""Bar S9: a thousand codes guessed by a stranger over Telegram: five are looked at, and nobody
becomes the host without the code of the local terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.messages import Role
from core.store.pairing import MAX_FAILED_SENDER
from tests.acceptance.scenes import repetitions
from tests.acceptance.town import LONG, open_town
from tests.support.scripted_model import Rule

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def guess(number: int) -> str:
    signs = [ALPHABET[(number * 7919 + place * 104729) % 32] for place in range(8)]
    return "".join(signs)


@pytest.mark.timeout(300)
def test_thousand_guesses_are_five_and_the_right_code_comes_too_late(tmp_path: Path) -> None:
    tries = repetitions(1000, least=200)
    with open_town(tmp_path, [Rule(text="Ecco.")]) as town:
        tg = town.telegram
        tg.start_bot()
        town.pair_all(["anna"], Role.HOST)
        tg.user("eva")
        host = town.rows("SELECT id FROM actors WHERE role = 'host'")
        right = town.code(Role.HOST)
        guest = town.code(Role.GUEST)
        for number in range(tries):
            command = ("/start", "/pair", "/START", "/pair@fake_test_bot")[number % 4]
            tg.say("eva", f"{command} {guess(number)}")
        tg.say("eva", f"/start {right}")
        tg.say("eva", f"/pair {guest}")
        tg.say("eva", "/start")
        tg.say("anna", "ci sei?")
        town.wait_for(lambda: "Ecco." in town.texts("anna"), timeout=LONG, what="the host")
        town.settle()

        [(evaluated,)] = town.rows(
            f"SELECT failed FROM pairing_attempts WHERE sender_id = '{tg.names['eva']}'"
        )
        unused = town.rows("SELECT role FROM pairing_codes WHERE used_at IS NULL ORDER BY role")
        words = len(town.texts("eva"))
        print(f"\nS9: {tries} guesses, {evaluated} looked at, {words} words to the guesser")
        assert evaluated <= MAX_FAILED_SENDER
        assert unused == [("guest",), ("host",)], "the right codes were not even looked at"
        assert town.rows("SELECT id FROM actors WHERE role = 'host'") == host
        assert town.rows("SELECT count(*) FROM actors") == [(1,)]
        assert len(town.model.asked) == 1
        assert words <= MAX_FAILED_SENDER + 2


@pytest.mark.timeout(180)
def test_nobody_is_the_host_without_the_code_of_the_terminal(tmp_path: Path) -> None:
    """On a home without a host every stranger stays one, whatever they send first."""
    with open_town(tmp_path, [Rule(text="Ecco.")]) as town:
        tg = town.telegram
        tg.start_bot()
        for name, words in {
            "primo": "/start",
            "secondo": "ciao",
            "terzo": "/pair",
            "quarto": "/start host",
            "quinto": "/pair --host",
        }.items():
            tg.user(name)
            tg.say(name, words)
            tg.expect(name, ".", timeout=LONG)
        town.settle()

        assert town.rows("SELECT count(*) FROM actors") == [(0,)]
        assert town.model.asked == []
        tg.user("anna")
        tg.say("anna", f"/start {town.code(Role.HOST)}")
        tg.expect("anna", ".", timeout=LONG)
        assert town.rows("SELECT role FROM actors") == [("host",)]
