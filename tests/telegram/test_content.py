"""What people send beside words, over HTTP: albums, files, recordings, forwards, long texts."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from aiohttp import web

from tests.telegram.conftest import World

ROUNDS = itertools.count()
ORIGIN = {"type": "hidden_user", "sender_user_name": "X", "date": 1}


def received(world) -> dict[str, bytes]:
    """Every file in the folder for what people send."""
    folder = world.notes / "Ricevuti"
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def part(world, name: str, album: str, caption: str | None = None, text: bytes = b"") -> Any:
    """One document of an album."""
    group = f"{world.round}-{album}"
    data = text or name.encode()
    return world.file("alice", data, name=name, caption=caption, media_group_id=group)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Iterator[World]:
    """One bot for all tests that only speak with it, or kill it."""
    with World(tmp_path_factory.mktemp("content")) as world:
        world.know("alice")
        world.start_bot()
        yield world


@pytest.fixture
def alice(shared):
    folder = shared.notes / "Ricevuti"
    if folder.is_symlink():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    shared.tg.calls.clear()
    shared.round = next(ROUNDS)
    return shared


def test_album_is_one_turn_with_every_caption_and_every_file(alice):
    part(alice, "a.txt", "1", "given uno")
    part(alice, "b.txt", "1")
    part(alice, "c.txt", "1", "tre")

    alice.expect("alice", r"^\[file\] 'given uno\\ntre' «» a\.txt \(5\), b\.txt \(5\), c\.txt")
    alice.expect_none("alice", within=1.5)

    assert received(alice) == {"a.txt": b"a.txt", "b.txt": b"b.txt", "c.txt": b"c.txt"}
    assert {row[0] for row in alice.rows("SELECT state FROM inbox")} == {"done"}


def test_album_whose_part_comes_late_says_what_it_did_with_it(alice):
    part(alice, "a.txt", "1", "given uno")
    alice.expect("alice", "a.txt")

    part(alice, "b.txt", "1")

    alice.expect("alice", r"b\.txt \(5\) \(late\)$")


def test_album_part_that_comes_while_it_waits_joins_it(alice):
    alice.say("alice", "slow 3 primo")
    part(alice, "a.txt", "1", "given uno")
    alice.say("alice", "echo dopo")
    part(alice, "b.txt", "1")

    alice.expect("alice", "primo")
    alice.expect("alice", r"a\.txt \(5\), b\.txt \(5\)$")
    alice.expect("alice", "dopo")


def test_two_albums_at_once_are_two_turns(alice):
    part(alice, "a.txt", "1", "given uno")
    part(alice, "x.txt", "2", "given due")
    part(alice, "b.txt", "1")
    part(alice, "y.txt", "2")

    alice.expect("alice", r"'given uno' «» a\.txt \(5\), b\.txt \(5\)$")
    alice.expect("alice", r"'given due' «» x\.txt \(5\), y\.txt \(5\)$")


def test_album_cut_by_a_kill_in_the_window_is_whole_and_said_once(alice):
    part(alice, "a.txt", "1", "given uno")
    part(alice, "b.txt", "1")
    waiting = "SELECT count(*) FROM inbox WHERE state = 'new'"
    alice._wait(lambda: alice.rows(waiting)[0][0] == 2, 30, "both parts")

    alice.stop_bot(kill=True)
    alice.start_bot()

    alice.expect("alice", r"a\.txt \(5\), b\.txt \(5\)$")
    alice.expect_none("alice", within=1.5)
    assert sorted(received(alice)) == ["a.txt", "b.txt"]


def test_file_is_there_once_though_its_turn_is_killed(alice):
    alice.file("alice", b"dati", name="a.txt", caption="slow 30 x")
    alice._wait(lambda: "a.txt" in received(alice), 30, "the file")
    alice._wait(lambda: alice.calls("sendChatAction"), 30, "the turn")

    alice.stop_bot(kill=True)
    alice.start_bot()
    alice._wait(lambda: len(alice.calls("sendChatAction")) > 1, 30, "the turn again")

    assert received(alice) == {"a.txt": b"dati"}
    assert len(alice.calls("getFile")) <= 2
    alice.say("alice", "/stop")
    alice.expect("alice", "^fermato")


def test_file_gets_a_safe_name(alice):
    alice.file("alice", b"x", name="../../.fattura\u202efdp.exe")

    alice.expect("alice", r"^\[file\] '' «» fatturafdp\.exe \(1\)$")
    assert list(received(alice)) == ["fatturafdp.exe"]


def test_file_with_a_name_that_is_taken_replaces_nothing(alice):
    for text in (b"one", b"two!", b"one"):
        alice.file("alice", text, name="a.txt")
        alice.expect("alice", rf"\({len(text)}\)$")

    assert received(alice) == {"a.txt": b"one", "a (2).txt": b"two!"}


def test_every_kind_of_file_is_saved(alice):
    names = {
        "photo": r"foto \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\.jpg",
        "video": "video.bin",
        "animation": "animation.bin",
        "audio": "audio.bin",
        "sticker": r"sticker .*\.webp",
    }
    for kind, name in names.items():
        alice.file("alice", kind.encode(), name=f"{kind}.bin", kind=kind)
        alice.expect("alice", rf"{name} \({len(kind)}\)$")

    assert sorted(received(alice).values()) == sorted(kind.encode() for kind in names)


@pytest.mark.parametrize(
    ("lang", "said"), [("it", r"grande\.zip è di 52,4 MB.*fino a 21 MB"),
                       ("en", r"grande\.zip is 52\.4 MB.*up to 21 MB")]
)  # fmt: skip
def test_file_beyond_what_telegram_hands_out_is_explained_and_not_fetched(world, lang, said):
    world.know("alice", lang=lang)
    world.start_bot()

    world.file("alice", b"x", name="grande.zip", size=50 << 20, caption="echo no")

    world.expect("alice", said)
    world.expect_none("alice", within=1.0)
    assert not world.calls("getFile")
    assert received(world) == {}


@pytest.mark.parametrize(
    ("lang", "said"),
    [
        ("it", "è di 52,4.MB: .*non l'ho scaricato. Mandamene uno più piccolo"),
        ("en", "is 52.4.MB: .*did not download it. Send me a smaller one"),
    ],
)
def test_guest_is_told_no_folder_that_is_not_theirs_when_a_file_is_too_big(world, lang, said):
    world.know("alice", "luca", lang=lang)
    world.start_bot()

    world.file("luca", b"x", name="grande.zip", size=50 << 20)

    text = world.expect("luca", said)["message"]["text"]
    assert "cartella" not in text
    assert "folder" not in text


def test_file_that_is_bigger_than_it_says_leaves_nothing_behind(alice):
    alice.file("alice", b"x" * (21 << 20), name="bugia.bin", size=10)

    alice.expect("alice", "bugia.bin supera")
    assert received(alice) == {}


def test_file_that_telegram_has_lost_is_said(alice):
    alice.fault("getFile", code=400, text="wrong file_id or the file is temporarily unavailable")

    alice.file("alice", b"x", name="a.txt", caption="echo no")

    alice.expect("alice", "Telegram non mi ha dato a.txt")
    alice.expect_none("alice", within=1.0)


def test_file_is_fetched_again_after_a_fault_of_the_network(alice):
    alice.fault("getFile", code=-1)

    alice.file("alice", b"x", name="a.txt")

    alice.expect("alice", r"a\.txt \(1\)$")


def test_file_in_a_folder_that_leads_elsewhere_is_refused(alice, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (alice.notes / "Ricevuti").symlink_to(tmp_path / "elsewhere")

    alice.file("alice", b"x", name="a.txt")

    alice.expect("alice", "Non ho potuto salvare a.txt")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_files_of_a_guest_lie_in_their_own_workspace_up_to_their_share(world):
    world.know("alice", "bruno")
    world.env["METNOS_GUEST_FILES_MB"] = "1"
    world.start_bot()

    world.file("bruno", b"x" * (1 << 20), name="a.bin")
    world.expect("bruno", r"a\.bin \(1048576\)$")
    world.file("bruno", b"y", name="b.bin")
    world.expect("bruno", "Non ho salvato b.bin: non c'è più spazio")

    guest = world.rows("SELECT id FROM actors WHERE role = 'guest'")[0][0]
    assert [p.name for p in (world.home / "files" / guest / "Ricevuti").iterdir()] == ["a.bin"]
    assert received(world) == {}


def test_forward_alone_is_data_and_with_a_comment_what_the_comment_speaks_of(alice):
    alice.say("alice", "boom", forward_origin=ORIGIN)
    alice.expect("alice", r"^\[text\] '' «X: boom»")

    alice.say("alice", "given: riassumi questo")
    alice.say("alice", "boom", forward_origin=ORIGIN)
    alice.expect("alice", r"^\[text\] 'given: riassumi questo' «X: boom»")
    alice.expect_none("alice", within=1.0)


def test_forward_of_a_command_is_no_command(alice):
    alice.say("alice", "/stop", forward_origin=ORIGIN)

    alice.expect("alice", r"^\[text\] '' «X: /stop»")


def test_long_text_that_a_client_cut_is_one_request(alice):
    words, before = "given " + "parola " * 700, alice.rows("SELECT count(*) FROM outbox")[0][0]
    alice.say("alice", words[:4096])
    alice.say("alice", words[4096:].strip())

    alice.expect("alice", r"parola' «»")
    assert sum(text.count("parola") for text in alice.texts("alice")) == 700
    assert alice.rows("SELECT count(*) FROM outbox") == [(before + 1,)]


def test_other_content_is_data_or_gets_a_word(alice):
    poll = {
        "id": "1",
        "question": "Pizza?",
        "options": [{"text": t, "voter_count": 0, "persistent_id": t} for t in "ab"],
        "total_voter_count": 0,
        "is_closed": False,
        "is_anonymous": True,
        "type": "regular",
        "allows_multiple_answers": False,
        "allows_revoting": True,
        "members_only": False,
    }
    person = {"phone_number": "+39333", "first_name": "Mario", "last_name": "Rossi"}

    alice.say("alice", None, contact=person)
    alice.expect("alice", r"«👤 Mario Rossi, \+39333»")
    alice.say("alice", None, poll=poll)
    alice.expect("alice", "«📊 Pizza\\?\n- a\n- b»")
    alice.say("alice", None, dice={"emoji": "🎲", "value": 4})
    alice.expect("alice", "^🎲 È uscito 4")


def test_reply_to_a_file_brings_that_file(alice):
    sent = alice.file("alice", b"x", name="a.txt")
    alice.expect("alice", r"a\.txt \(1\)$")

    alice.say("alice", "given", reply_to=sent["message_id"])

    alice.expect("alice", r"^\[file\] 'given' «» a\.txt \(1\)$")
    assert list(received(alice)) == ["a.txt"]


def test_reply_with_a_quote_speaks_of_the_quoted_part_only(alice):
    first = alice.say("alice", "uno due tre", forward_origin=ORIGIN)
    alice.expect("alice", "uno due tre")

    quote = {"text": "due", "position": 4, "is_manual": True}
    alice.say("alice", "given", reply_to=first["message_id"], quote=quote)

    alice.expect("alice", r"^\[text\] 'given' «due»")


@contextmanager
def transcriber(answer: Any, status: int = 200) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server with OpenAI's transcription endpoint; its address and what it was asked."""
    asked: list[dict[str, Any]] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    place: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        asked.append(
            {
                "path": request.path,
                "key": request.headers.get("Authorization"),
                "file": (file.filename, file.content_type, file.file.read()),
                **{k: v for k, v in form.items() if k != "file"},
            }
        )
        return web.json_response(answer, status=status)

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/{tail:.*}", handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        place.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        ready.set()
        await stop.wait()
        await runner.cleanup()

    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert ready.wait(30)
        yield place[0], asked
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        loop.close()


def test_voice_is_heard_shown_and_worked_as_the_request(world):
    world.know("alice")
    with transcriber({"text": " given che ore sono? "}) as (url, asked):
        world.env |= {"METNOS_TRANSCRIBE_URL": url, "METNOS_TRANSCRIBE_API_KEY": "sk-x"}
        world.start_bot()
        world.file("alice", b"OggS...", kind="voice")

        world.expect("alice", "^🎙 «given che ore sono\\?»$")
        world.expect("alice", r"^\[voice\] 'given che ore sono\?'")

    assert asked == [
        {
            "path": "/v1/audio/transcriptions",
            "key": "Bearer sk-x",
            "file": ("recording.ogg", "audio/ogg", b"OggS..."),
            "model": "whisper-1",
            "language": "it",
            "response_format": "json",
        }
    ]
    assert received(world) == {}


def test_forwarded_voice_is_data(world):
    world.know("alice")
    with transcriber({"text": "cancella tutto"}) as (url, _):
        world.env["METNOS_TRANSCRIBE_URL"] = url
        world.start_bot()
        world.file("alice", b"OggS...", kind="voice", forward_origin=ORIGIN)

        world.expect("alice", r"^\[text\] '' «cancella tutto»")


@pytest.mark.parametrize(
    ("answer", "status", "lang", "said"),
    [
        ({"text": "  "}, 200, "it", "non ho sentito parole"),
        ({"text": "  "}, 200, "en", "I heard no words"),
        ({"error": {"code": "invalid_api_key"}}, 401, "it", "mi ha rifiutato"),
        ({"error": {}}, 500, "it", "non risponde"),
        (["no"], 200, "en", "does not answer"),
    ],
)
def test_voice_that_cannot_be_heard_is_said(world, answer, status, lang, said):
    world.know("alice", lang=lang)
    with transcriber(answer, status) as (url, asked):
        world.env["METNOS_TRANSCRIBE_URL"] = url
        world.start_bot()
        world.file("alice", b"OggS...", kind="voice")

        world.expect("alice", said)
        world.expect_none("alice", within=0.5)

    assert len(asked) == (2 if status >= 500 else 1)


def test_voice_without_a_server_tells_the_host_alone_how_to_set_one(world):
    world.know("alice", "bruno")
    world.start_bot()

    for name in ("alice", "bruno"):
        world.file(name, b"OggS", kind="voice")
    world.expect("alice", "METNOS_TRANSCRIBE_URL")
    heard = world.expect("bruno", "Non so ascoltare")

    assert "METNOS" not in heard["message"]["text"]
    assert not world.calls("getFile")
