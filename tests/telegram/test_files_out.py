"""Files that go out: as pictures, documents and albums, once, and in words where they cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.telegram.conftest import World

PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    return folder


@pytest.fixture
def world(world: World) -> World:
    world.know("alice")
    world.start_bot()
    return world


def sent(world: World, kind: str) -> list[dict]:
    messages = world.tg.chats[world.names["alice"]]["messages"]
    return [messages[n] for n in sorted(messages) if kind in messages[n]]


def test_file_follows_the_words_byte_by_byte_under_its_name(world, folder):
    data = os.urandom(300_000)
    (folder / "relazione è.pdf").write_bytes(data)

    world.say("alice", f"files {folder}")
    words = world.expect("alice", "Eccoli")
    file = world.expect("alice", has="document")

    assert words["n"] < file["n"]
    assert world.download(file) == data
    assert file["message"]["document"]["file_name"] == "relazione è.pdf"
    assert "caption" not in file["message"]
    world.assert_clean()


def test_small_pictures_are_an_album_of_photos_and_the_rest_one_of_documents(world, folder):
    for n in range(3):
        (folder / f"{n}.png").write_bytes(PNG + bytes([n]))
        (folder / f"{n}.txt").write_text(f"testo {n}")
    (folder / "grande.png").write_bytes(PNG + bytes(3 * 2**20))

    world.say("alice", f"files {folder}")
    world._wait(lambda: len(sent(world, "document")) == 4, 45, "four documents")

    photos, documents = sent(world, "photo"), sent(world, "document")
    assert len(photos) == 3
    assert len({m["media_group_id"] for m in photos}) == 1
    assert len({m["media_group_id"] for m in documents}) == 1
    assert [m["document"]["file_name"] for m in documents] == [
        "0.txt", "1.txt", "2.txt", "grande.png",
    ]  # fmt: skip
    assert world.texts("alice")[0] == "Eccoli."
    world.assert_clean()


def test_more_than_ten_files_are_more_than_one_album(world, folder):
    for n in range(13):
        (folder / f"{n:02}.txt").write_text(f"testo {n}")

    world.say("alice", f"files {folder}")
    world._wait(lambda: len(sent(world, "document")) == 13, 45, "thirteen documents")

    groups = [m["media_group_id"] for m in sent(world, "document")]
    assert [groups.count(group) for group in dict.fromkeys(groups)] == [10, 3]


def test_picture_that_telegram_cannot_read_goes_as_a_document(world, folder):
    (folder / "rotta.png").write_bytes(b"no picture at all")

    world.say("alice", f"files {folder}")
    file = world.expect("alice", has="document")

    assert world.download(file) == b"no picture at all"
    assert len(sent(world, "document")) == 1


def test_file_over_fifty_megabytes_is_told_with_its_place(world, folder):
    with (folder / "film.mkv").open("wb") as file:
        file.truncate(51 * 2**20)
    (folder / "nota.txt").write_text("ciao")

    world.say("alice", f"files {folder}")
    told = world.expect("alice", r"film\.mkv")
    file = world.expect("alice", has="document")

    assert world.download(file) == b"ciao"
    assert "al massimo 50 MB" in told["message"]["text"].replace("\u00a0", " ")
    assert str(folder / "film.mkv") in told["message"]["text"]
    assert len(world.calls("sendDocument")) == 1


@pytest.mark.parametrize("trick", ["link", "folder", "second name", "gone", "empty"])
def test_what_is_not_the_file_that_was_meant_is_never_sent(world, folder, tmp_path, trick):
    """What stands under the path when it is sent, whatever was there when it was decided on."""
    secret = tmp_path / "secret.txt"
    secret.write_text("canary")
    path = folder / "nota.txt"
    match trick:
        case "link":
            path.symlink_to(secret)
        case "folder":
            path.mkdir()
        case "second name":
            os.link(secret, path)
        case "gone":
            (folder / "nota.txt").symlink_to(tmp_path / "nowhere")
        case "empty":
            path.touch()

    world.say("alice", f"files {folder}")
    told = world.expect("alice", r"nota\.txt")

    assert "Non ho potuto mandare" in told["message"]["text"]
    assert not sent(world, "document")


def test_file_behind_a_folder_that_became_a_link_is_not_sent(world, folder, tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "nota.txt").write_text("canary")
    folder.rmdir()
    folder.symlink_to(real)

    world.say("alice", f"files {folder}")

    world.expect("alice", "Non ho potuto mandare nota")
    assert not sent(world, "document")


@pytest.mark.parametrize("code", [500, 429])
def test_file_whose_send_failed_is_tried_again_without_its_words(world, folder, code):
    (folder / "nota.txt").write_text("ciao")
    world.fault("sendDocument", code=code, **({"retry_after": 2} if code == 429 else {}))

    world.say("alice", f"files {folder}")
    world.expect("alice", has="document")
    world.say("alice", "echo dopo")
    world.expect("alice", "^dopo$")

    assert [
        m.get("text") for m in world.tg.chats[world.names["alice"]]["messages"].values()
    ].count("Eccoli.") == 1
    assert len(sent(world, "document")) == 1


def test_file_whose_send_is_unclear_is_repeated_once_and_says_so(world, folder):
    (folder / "nota.txt").write_text("ciao")
    world.fault("sendDocument", code=-1, after=True)

    world.say("alice", f"files {folder}")
    again = world.expect("alice", "ripetuto", timeout=60)
    world.say("alice", "echo dopo")
    world.expect("alice", "^dopo$")

    assert "document" in again["message"]
    assert len(sent(world, "document")) == 2
    assert world.texts("alice").count("Eccoli.") == 1
