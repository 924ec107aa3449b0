"""Files that people send: names that do nothing, places that stay theirs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import CallRefused, ErrorCode
from core.execution import incoming
from core.execution.incoming import Incoming, safe_name
from core.i18n import Texts
from core.messages import Actor, Role

HOST = Actor("a" * 32, Role.HOST, "Anna")
GUEST = Actor("b" * 32, Role.GUEST, "guest_b")
MOST = 1 << 20


@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/cron.d/job", "job"),
        (".bashrc", "bashrc"),
        ("..", "file"),
        ("", "file"),
        ("....pdf", "pdf"),
        (".metnos-trash", "metnos-trash"),
        ("fattura\u202efdp.exe", "fatturafdp.exe"),
        ("a\x00b\nc\u2028.txt", "abc.txt"),
        ("\ud800x.txt", "x.txt"),
        ("  bolletta   luce.pdf ", "bolletta luce.pdf"),
        ("tutto*?.txt", "tutto__.txt"),
        ("C:disk.txt", "C_disk.txt"),
        ("~root", "root"),
        ("-rf", "rf"),
        ("perche\u0301.txt", "perché.txt"),
        ("👩‍👧.jpg", "👩👧.jpg"),
        ("archivio.tar.gz", "archivio.tar.gz"),
        ("frase lunga. con un punto", "frase lunga. con un punto"),
    ],
)
def test_safe_name(name: str, saved: str) -> None:
    assert safe_name(name) == saved


@pytest.mark.parametrize("name", ["x" * 500 + ".pdf", "è" * 500, "😀" * 200 + ".jpeg", "a." * 300])
def test_safe_name_of_a_long_one_fits_and_keeps_its_ending(name: str) -> None:
    saved = safe_name(name)

    assert 0 < len(saved.encode()) <= 150
    assert saved.endswith(name[-4:]) or "." not in name or name.endswith(".")


def house(tmp_path: Path, **settings: object) -> Incoming:
    (tmp_path / "notes").mkdir(exist_ok=True)
    values = {"metnos_home": tmp_path / "home", "metnos_files_roots": (tmp_path / "notes",)}
    texts = Texts.load(Path(__file__).parents[2] / "locales")
    return Incoming(Settings(_env_file=None, **{**values, **settings}), texts)  # type: ignore[arg-type, call-arg]


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def test_save_puts_the_whole_file_where_only_its_owner_reads_it(tmp_path: Path) -> None:
    received = await house(tmp_path).save(HOST, "a.txt", chunks(b"uno", b"due"), most_bytes=MOST)

    path = tmp_path / "notes/Ricevuti/a.txt"
    assert received.path == str(path)
    assert (path.read_bytes(), received.bytes) == (b"unodue", 6)
    assert (path.stat().st_mode & 0o777, path.stat().st_nlink) == (0o600, 1)


async def test_save_numbers_what_is_taken_and_knows_the_same_again(tmp_path: Path) -> None:
    where = house(tmp_path)
    names = [
        (await where.save(HOST, "a.txt", chunks(text), most_bytes=MOST)).name
        for text in (b"1", b"2", b"1", b"2", b"3")
    ]

    assert names == ["a.txt", "a (2).txt", "a.txt", "a (2).txt", "a (3).txt"]


async def test_save_at_the_same_time_loses_none(tmp_path: Path) -> None:
    where = house(tmp_path)
    saves = [
        where.save(HOST, "a.txt", chunks(str(n).encode()), most_bytes=MOST) for n in range(20)
    ]
    await asyncio.gather(*saves)

    found = {path.read_bytes() for path in (tmp_path / "notes/Ricevuti").iterdir()}
    assert found == {str(n).encode() for n in range(20)}


@pytest.mark.parametrize("kind", ["folder", "link", "dangling"])
async def test_save_follows_no_link_and_replaces_nothing(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "notes/Ricevuti"
    folder.mkdir(parents=True)
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    match kind:
        case "folder":
            (folder / "a.txt").mkdir()
        case "link":
            (folder / "a.txt").symlink_to(outside)
        case _:
            (folder / "a.txt").symlink_to(tmp_path / "nothing")

    received = await house(tmp_path).save(HOST, "a.txt", chunks(b"x"), most_bytes=MOST)

    assert received.name == "a (2).txt"
    assert outside.read_text() == "mine"
    assert not (tmp_path / "nothing").exists()


async def test_save_in_a_folder_that_leads_out_of_the_roots_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    where = house(tmp_path)
    (tmp_path / "notes/Ricevuti").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(CallRefused) as refused:
        await where.save(HOST, "a.txt", chunks(b"x"), most_bytes=MOST)

    assert refused.value.code is ErrorCode.PERMISSION_DENIED
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_save_of_too_many_bytes_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CallRefused) as refused:
        await house(tmp_path).save(HOST, "a.txt", chunks(b"x" * 10, b"y"), most_bytes=10)

    assert refused.value.code is ErrorCode.TOO_LARGE
    assert list((tmp_path / "notes/Ricevuti").iterdir()) == []


async def test_save_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError("gone")

    with pytest.raises((CallRefused, ConnectionError)):
        await house(tmp_path).save(HOST, "a.txt", broken(), most_bytes=MOST)

    assert list((tmp_path / "notes/Ricevuti").iterdir()) == []


async def test_save_on_a_full_disk_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(incoming, "KEPT_FREE_BYTES", 1 << 60)

    with pytest.raises(CallRefused) as refused:
        await house(tmp_path).save(HOST, "a.txt", chunks(b"x"), most_bytes=MOST)

    assert refused.value.code is ErrorCode.DISK_FULL


async def test_save_for_a_guest_is_in_their_workspace_up_to_their_share(tmp_path: Path) -> None:
    where = house(tmp_path, metnos_guest_files_mb=1)
    first = await where.save(GUEST, "a.bin", chunks(b"x" * MOST), most_bytes=MOST)
    with pytest.raises(CallRefused) as refused:
        await where.save(GUEST, "b.bin", chunks(b"y"), most_bytes=MOST)

    assert first.path == str(tmp_path / "home/files" / GUEST.id / "Ricevuti/a.bin")
    assert refused.value.code is ErrorCode.DISK_FULL
    assert not (tmp_path / "notes/Ricevuti").exists()


async def test_save_takes_away_what_a_crash_left_long_ago(tmp_path: Path) -> None:
    folder = tmp_path / "notes/Ricevuti"
    folder.mkdir(parents=True)
    for name, age_s in ((".metnos-old.part", 2 * 86400), (".metnos-new.part", 60)):
        (folder / name).write_text("half")
        at = (folder / name).stat().st_mtime - age_s
        os.utime(folder / name, (at, at))

    await house(tmp_path).save(HOST, "a.txt", chunks(b"x"), most_bytes=MOST)

    assert sorted(p.name for p in folder.iterdir()) == [".metnos-new.part", "a.txt"]


async def test_save_goes_where_the_setting_says(tmp_path: Path) -> None:
    where = house(tmp_path, metnos_inbox_folder="Metnos/Da leggere")
    received = await where.save(HOST, "a.txt", chunks(b"x"), most_bytes=MOST)

    assert received.path == str(tmp_path / "notes/Metnos/Da leggere/a.txt")
