"""Updates that Telegram brings: the same inbox, nothing without the secret or a commit."""

from __future__ import annotations

import json
import socket
import sqlite3
import urllib.error
import urllib.request

import pytest

from bot.telegram.webhook import MAX_BYTES
from tests.telegram.conftest import World

SECRET = "a-secret-that-only-telegram-knows"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def hooked(world: World) -> World:
    """A world whose bot is brought its updates."""
    port = free_port()
    world.know("alice", "bob")
    world.env |= {
        "METNOS_WEBHOOK_URL": f"http://127.0.0.1:{port}/hook",
        "METNOS_WEBHOOK_PORT": str(port),
        "METNOS_WEBHOOK_SECRET": SECRET,
    }
    return world


def post(world: World, body: bytes, secret: str | None = SECRET, path: str = "/hook") -> int:
    url = f"http://127.0.0.1:{world.env['METNOS_WEBHOOK_PORT']}{path}"
    headers = {} if secret is None else {"X-Telegram-Bot-Api-Secret-Token": secret}
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, body, headers), timeout=45
        ) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as exc:
        return exc.code


def message(world: World, text: str, update_id: int = 7) -> bytes:
    sender = world.tg.users[world.names["alice"]]
    chat = {"id": sender["id"], "type": "private"}
    said = {"message_id": 900, "date": 1, "chat": chat, "from": sender, "text": text}
    return json.dumps({"update_id": update_id, "message": said}).encode()


def test_messages_that_are_brought_are_answered_in_order_and_asked_for_by_nobody(hooked):
    hooked.start_bot()
    for n in range(5):
        hooked.say("alice", f"echo {n}")
    hooked.expect("alice", "^4$")

    assert hooked.texts("alice") == [str(n) for n in range(5)]
    assert not hooked.calls("getUpdates")
    assert hooked.tg.webhook["secret"] == SECRET
    hooked.assert_clean()


def test_control_lane_works_while_a_turn_runs(hooked):
    hooked.start_bot()
    hooked.say("alice", "slow 600 mai")
    hooked.expect("alice", kind="action")
    hooked.say("alice", "/status")
    hooked.expect("alice", "slow 600 mai")
    hooked.say("alice", "/stop")

    hooked.expect("alice", "fermato")


@pytest.mark.parametrize("secret", [None, "", "wrong", SECRET + "x", SECRET[:-1], "é" * 20])
def test_without_the_secret_nothing_is_stored(hooked, secret):
    hooked.start_bot()
    raw = None if secret is None else secret.encode().decode("latin-1")

    assert post(hooked, message(hooked, "echo mio"), raw) == 403

    assert hooked.rows("SELECT count(*) FROM inbox") == [(0,)]


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        (b"{", "/hook", 400),
        (b"[]", "/hook", 400),
        (b'{"update_id": "x"}', "/hook", 400),
        (b'{"update_id": 1, "x": "' + b"y" * MAX_BYTES + b'"}', "/hook", 413),
        (b"{}", "/elsewhere", 404),
    ],
    ids=["no-json", "no-object", "no-number", "too-much", "elsewhere"],
)
def test_what_is_no_update_is_refused(hooked, body, path, status):
    hooked.start_bot()

    assert post(hooked, body, path=path) == status

    hooked.say("alice", "echo eccomi")
    hooked.expect("alice", "^eccomi$")


def test_update_brought_twice_is_worked_once(hooked):
    hooked.start_bot()
    body = message(hooked, "echo una volta")

    assert [post(hooked, body), post(hooked, body)] == [200, 200]

    hooked.expect("alice", "^una volta$")
    hooked.say("alice", "echo fine")
    hooked.expect("alice", "^fine$")
    assert hooked.texts("alice") == ["una volta", "fine"]


def test_nothing_is_acknowledged_before_the_commit(hooked):
    hooked.start_bot()
    hooked.say("alice", "echo prima")
    hooked.expect("alice", "^prima$")
    blocker = sqlite3.connect(hooked.home / "private" / "metnos.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")

    status = post(hooked, message(hooked, "echo dopo", 8))
    blocker.execute("ROLLBACK")
    blocker.close()

    assert status == 503
    assert post(hooked, message(hooked, "echo dopo", 8)) == 200
    hooked.expect("alice", "^dopo$")


def test_change_of_mode_loses_nothing_in_either_direction(hooked):
    hooked.start_bot()
    hooked.say("alice", "echo portato")
    hooked.expect("alice", "^portato$")
    hooked.stop_bot()
    hooked.say("alice", "echo mentre era spento")
    url = hooked.env.pop("METNOS_WEBHOOK_URL")
    hooked.tg.polls_seen -= 1  # a refused poll is not counted by the fake
    hooked.start_bot()
    hooked.expect("alice", "^mentre era spento$")
    assert hooked.tg.webhook is None
    hooked.say("alice", "echo chiesto")
    hooked.expect("alice", "^chiesto$")
    hooked.stop_bot()
    hooked.say("alice", "echo ancora spento")
    hooked.env["METNOS_WEBHOOK_URL"] = url
    hooked.start_bot()
    hooked.expect("alice", "^ancora spento$")

    assert hooked.texts("alice") == [
        "portato", "mentre era spento", "chiesto", "ancora spento"
    ]  # fmt: skip


def test_webhook_that_somebody_takes_away_is_set_again_and_named(hooked):
    hooked.env["TEST_WEBHOOK_CHECK_S"] = "1"
    hooked.start_bot()
    hooked._run(hooked.tg.m_deleteWebhook({}))
    hooked._wait(lambda: hooked.tg.webhook is not None, 45, "a new webhook")
    hooked.say("alice", "echo eccomi")

    hooked.expect("alice", "^eccomi$")
    assert "another program took" in hooked.tail(200)


@pytest.mark.parametrize("secret", ["", "short"])
def test_bot_does_not_start_without_a_secret(hooked, secret):
    hooked.env["METNOS_WEBHOOK_SECRET"] = secret

    with pytest.raises(AssertionError, match="METNOS_WEBHOOK_SECRET"):
        hooked.start_bot()

    assert not hooked.calls()


def test_port_that_is_taken_is_said(hooked):
    with socket.socket() as other:
        other.bind(("127.0.0.1", int(hooked.env["METNOS_WEBHOOK_PORT"])))
        other.listen()

        with pytest.raises(AssertionError, match="METNOS_WEBHOOK_PORT"):
            hooked.start_bot()
