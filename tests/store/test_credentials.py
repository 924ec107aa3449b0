"""What is entrusted opens for its own person, name and turn only, and only with the key."""

from __future__ import annotations

import sqlite3
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from core.config import Settings
from core.errors import KeyUnusable, SecretUnreadable
from core.store import credentials, inbox, rotation, secret_key
from core.store.credentials import ANSWER_TTL, Vault, is_handle, seal_answer
from core.store.database import Database
from core.store.stores import Stores, open_stores
from core.store.upkeep import tidy
from tests.support.clock import FrozenClock

CANARY = "kanarie-näst-🐤-9f1c"


@pytest.fixture
def vault(stores: Stores) -> Vault:
    return stores.vault


async def put(db: Database, vault: Vault, clock: FrozenClock, actor: str, name: str, value: str):
    async with db.write() as tx:
        await credentials.put(tx, vault, actor, name, value, clock.now())


async def read(db: Database, vault: Vault, actor: str, name: str) -> str | None:
    async with db.read() as tx:
        return await credentials.read(tx, vault, actor, name)


def files_below(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_credential_comes_back_for_its_person_only_and_stands_nowhere_in_clear(
    db: Database, vault: Vault, clock: FrozenClock, settings: Settings
):
    await put(db, vault, clock, "ada", "imap", CANARY)
    await put(db, vault, clock, "ada", "imap", CANARY + "2")
    await put(db, vault, clock, "ada", "caldav", "\ud800 lone")

    assert await read(db, vault, "ada", "imap") == CANARY + "2"
    assert await read(db, vault, "ada", "caldav") == "\ud800 lone"
    assert await read(db, vault, "bob", "imap") is None
    async with db.write() as tx:
        assert await credentials.names(tx, "ada") == ["caldav", "imap"]
        assert await credentials.names(tx, "bob") == []
        assert not await credentials.delete(tx, "bob", "imap")
        assert await credentials.delete(tx, "ada", "imap")
        assert not await credentials.delete(tx, "ada", "imap")
    assert CANARY.encode() not in files_below(settings.metnos_home)
    assert CANARY not in repr(vault)


@pytest.mark.parametrize(
    ("name", "value"),
    [("", "x"), ("n" * 201, "x"), ("n", ""), ("n", "x" * 65_537)],
    ids=["no name", "long name", "no value", "long value"],
)
async def test_credential_without_name_or_value_is_refused(
    db: Database, vault: Vault, clock: FrozenClock, name: str, value: str
):
    with pytest.raises(ValueError, match="short name"):
        await put(db, vault, clock, "ada", name, value)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE credentials SET actor_id = 'bob'",
        "UPDATE credentials SET name = 'smtp'",
        "UPDATE credentials SET sealed = CAST(substr(sealed, 1, 30) || x'00' AS BLOB)",
        "UPDATE credentials SET sealed = x'00'",
        "UPDATE credentials SET sealed = x''",
        "UPDATE credentials SET sealed = CAST(x'02' || substr(sealed, 2) AS BLOB)",
        "UPDATE credentials SET sealed = substr(sealed, 1, length(sealed) - 1)",
    ],
    ids=["other person", "other name", "flipped", "short", "empty", "other version", "cut"],
)
async def test_row_that_was_tampered_with_does_not_open(
    db: Database, vault: Vault, clock: FrozenClock, change: str
):
    await put(db, vault, clock, "ada", "imap", CANARY)
    async with db.write() as tx:
        await tx.execute(change)
        row = await tx.fetch_one("SELECT * FROM credentials")
    assert row is not None

    with pytest.raises(SecretUnreadable):
        await read(db, vault, row["actor_id"], row["name"])
    async with db.read() as tx:
        assert len(await credentials.unreadable(tx, vault)) == 1


def test_every_single_flipped_bit_is_noticed(vault: Vault):
    sealed = vault.seal(b"x", ("credential", "ada", "imap"))
    for place in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(SecretUnreadable):
            vault.open(bytes(changed), ("credential", "ada", "imap"))


def test_bound_words_do_not_run_into_one_another(vault: Vault):
    sealed = vault.seal(b"x", ("credential", "ab", "c"))

    for bound in [("credential", "a", "bc"), ("credential", "abc"), ("answer", "ab", "c")]:
        with pytest.raises(SecretUnreadable):
            vault.open(sealed, bound)
    assert vault.seal(b"x", ("a",)) != vault.seal(b"x", ("a",))


async def test_lost_key_makes_a_new_one_and_the_old_values_unreadable(
    db: Database, vault: Vault, clock: FrozenClock, settings: Settings
):
    await put(db, vault, clock, "ada", "imap", CANARY)
    secret_key.key_path(settings.private_dir).unlink()

    other = Vault(settings.private_dir)
    with pytest.raises(SecretUnreadable, match="gone"):
        await read(db, other, "ada", "imap")
    await put(db, other, clock, "ada", "imap", "again")

    assert await read(db, Vault(settings.private_dir), "ada", "imap") == "again"


def test_key_file_is_made_once_and_closed_to_others(settings: Settings, stores: Stores):
    first = secret_key.load_or_create(settings.private_dir)
    path = secret_key.key_path(settings.private_dir)

    assert secret_key.load_or_create(settings.private_dir) == first
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(first) == 1
    assert len(first[0]) == 32


@pytest.mark.parametrize(
    "text", ["", "zz", "00", "è"], ids=["empty", "no hex", "short", "no ascii"]
)
def test_file_that_is_no_key_is_refused(settings: Settings, stores: Stores, text: str):
    path = secret_key.key_path(settings.private_dir)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)

    with pytest.raises(KeyUnusable):
        Vault(settings.private_dir).seal(b"x", ())
    assert path.read_text(encoding="utf-8") == text


def test_key_that_others_may_read_or_that_is_a_link_is_refused(
    settings: Settings, stores: Stores, tmp_path: Path
):
    secret_key.load_or_create(settings.private_dir)
    path = secret_key.key_path(settings.private_dir)
    path.chmod(0o640)
    with pytest.raises(KeyUnusable, match="chmod 600"):
        Vault(settings.private_dir).seal(b"x", ())

    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(KeyUnusable):
        Vault(settings.private_dir).seal(b"x", ())


async def test_rotation_locks_everything_anew_and_forgets_the_old_key(
    db: Database, vault: Vault, clock: FrozenClock, settings: Settings
):
    await put(db, vault, clock, "ada", "imap", CANARY)
    answer = seal_answer(vault, answer_id="0" * 32, actor_id="ada", turn_id="t", text="pin")
    row = inbox.InboxRow(1, "telegram:1:", {"update": {"text": "hallo"}})
    async with db.write() as tx:
        await credentials.keep_answer(tx, answer, clock.now())
        await inbox.add_batch(
            tx,
            [row],
            channel="telegram",
            bot_id="1",
            next_offset=2,
            now=clock.now(),
            vault=vault,
        )
    before = secret_key.load(settings.private_dir)

    assert await rotation.rotate(db, settings.private_dir) == 3

    after = secret_key.load(settings.private_dir)
    assert len(after) == 1
    assert after != before
    fresh = Vault(settings.private_dir)
    assert await read(db, fresh, "ada", "imap") == CANARY
    async with db.read() as tx:
        said = await credentials.reveal(
            tx, fresh, actor_id="ada", turn_id="t", handle=answer.handle
        )
        waiting = await inbox.open_rows(tx, "telegram", "1", vault=fresh)
    assert said == "pin"
    assert waiting[0].body == row.body


async def test_rotation_that_was_cut_short_leaves_all_readable_and_goes_on(
    db: Database, vault: Vault, clock: FrozenClock, settings: Settings, monkeypatch
):
    await put(db, vault, clock, "ada", "imap", CANARY)

    async def cut(*args: object) -> int:
        raise RuntimeError("cut")

    with monkeypatch.context() as patched:
        patched.setattr(inbox, "relock", cut)
        with pytest.raises(RuntimeError, match="cut"):
            await rotation.rotate(db, settings.private_dir)
    assert len(secret_key.load(settings.private_dir)) == 2
    assert await read(db, Vault(settings.private_dir), "ada", "imap") == CANARY

    await rotation.rotate(db, settings.private_dir)

    assert len(secret_key.load(settings.private_dir)) == 1
    assert await read(db, Vault(settings.private_dir), "ada", "imap") == CANARY


async def test_answer_exists_for_its_person_and_turn_only_and_goes_with_the_turn(
    db: Database, vault: Vault, clock: FrozenClock
):
    answer = seal_answer(vault, answer_id="a" * 32, actor_id="ada", turn_id="t1", text=CANARY)
    assert is_handle(answer.handle)
    assert CANARY.encode() not in answer.sealed
    async with db.write() as tx:
        await credentials.keep_answer(tx, answer, clock.now())

    async def found(actor: str, turn: str, handle: str = answer.handle) -> str | None:
        async with db.read() as tx:
            return await credentials.reveal(tx, vault, actor_id=actor, turn_id=turn, handle=handle)

    assert await found("ada", "t1") == CANARY
    assert await found("bob", "t1") is None
    assert await found("ada", "t2") is None
    assert await found("ada", "t1", "secret:" + "b" * 32) is None
    async with db.write() as tx:
        for handle, found_one in ((answer.handle, True), ("secret:" + "b" * 32, False)):
            saved = await credentials.save_answer(
                tx,
                vault,
                actor_id="ada",
                turn_id="t1",
                handle=handle,
                name="imap",
                now=clock.now(),
            )
            assert saved is found_one
        await credentials.forget_turn(tx, "t1")
    assert await found("ada", "t1") is None
    assert await read(db, vault, "ada", "imap") == CANARY


async def test_answer_moved_to_another_persons_turn_does_not_open(
    db: Database, vault: Vault, clock: FrozenClock
):
    answer = seal_answer(vault, answer_id="a" * 32, actor_id="ada", turn_id="t1", text=CANARY)
    async with db.write() as tx:
        await credentials.keep_answer(tx, answer, clock.now())
        await tx.execute("UPDATE secret_answers SET actor_id = 'bob'")
        with pytest.raises(SecretUnreadable):
            await credentials.reveal(tx, vault, actor_id="bob", turn_id="t1", handle=answer.handle)


async def test_answers_of_a_turn_nobody_closed_go_after_a_day(
    stores: Stores, vault: Vault, clock: FrozenClock
):
    answer = seal_answer(vault, answer_id="a" * 32, actor_id="ada", turn_id="t1", text=CANARY)
    async with stores.main.write() as tx:
        await credentials.keep_answer(tx, answer, clock.now())

    async def count() -> int:
        async with stores.main.read() as tx:
            row = await tx.fetch_one("SELECT count(*) AS n FROM secret_answers")
        assert row is not None
        return int(row["n"])

    await tidy(stores, clock.now())
    assert await count() == 1
    clock.advance(ANSWER_TTL + timedelta(seconds=1))
    await tidy(stores, clock.now())
    assert await count() == 0


async def test_waiting_messages_are_locked_and_unlocked_when_they_are_worked(
    db: Database, vault: Vault, clock: FrozenClock, settings: Settings
):
    rows = [inbox.InboxRow(n, "telegram:1:", {"update": {"text": CANARY}}) for n in (1, 2)]

    async def add(update: int) -> None:
        async with db.write() as tx:
            await inbox.add_batch(
                tx,
                [rows[update - 1]],
                channel="telegram",
                bot_id="1",
                next_offset=update + 1,
                now=clock.now(),
                vault=vault,
            )

    await add(1)
    await add(2)
    async with db.write() as tx:
        await tx.execute(
            "UPDATE inbox SET body = (SELECT body FROM inbox WHERE id = 1) WHERE id = 2"
        )
    async with db.read() as tx:
        opened = await inbox.open_rows(tx, "telegram", "1", vault=vault)
        without = await inbox.open_rows(tx, "telegram", "1")

    assert opened[0].body == rows[0].body
    assert opened[1].body == {}  # a body that was put under another number
    assert without[0].body == {}
    assert CANARY.encode() not in files_below(settings.metnos_home)


async def test_what_is_forgotten_leaves_no_bytes_behind(settings: Settings, clock: FrozenClock):
    """Without a lock: what SQLite itself leaves in free pages after a checkpoint."""
    stores = await open_stores(settings, clock)
    async with stores.main.write() as tx:
        row = inbox.InboxRow(1, "telegram:1:", {"update": {"text": CANARY * 50}})
        await inbox.add_batch(
            tx, [row], channel="telegram", bot_id="1", next_offset=2, now=clock.now()
        )
    async with stores.main.write() as tx:
        await inbox.mark_done(tx, 1)
    await stores.close()

    path = settings.private_dir / "metnos.db"
    assert sqlite3.connect(path).execute("SELECT body FROM inbox").fetchone() == ("{}",)
    assert CANARY.encode() not in files_below(settings.metnos_home)
