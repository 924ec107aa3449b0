"""What people entrust: credentials that stay, and secret answers that live as long as their turn.

Owns `credentials` and `secret_answers`, and is the room of `cryptography` for both. Values are
locked (AES-256-GCM) before they come near the database, each bound to whose and what it is, so
that a row that was changed, copied to another person or renamed does not open. The key stands in
a file of its own (`core.store.secret_key`). A secret answer is known to everybody else by its
handle, which means nothing to another person or in another turn.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from core.clock import to_ts
from core.errors import SecretUnreadable
from core.store import secret_key
from core.store.database import Transaction
from core.store.encoding import dump_json

MAX_SECRET_BYTES = 64 * 1024
MAX_NAME = 200
# A turn that nobody closes loses its answers after this.
ANSWER_TTL = timedelta(hours=24)

_CONTEXT = b"metnos secret v1\x00"
_VERSION = b"\x01"
_ID_BYTES, _NONCE_BYTES, _TAG_BYTES = 8, 12, 16
_HANDLE = re.compile(r"secret:[0-9a-f]{32}")

_CREDENTIAL, _ANSWER = "credential", "answer"
# Table → what its values are bound to: a word for their kind, then these columns.
_TABLES = {
    "credentials": (_CREDENTIAL, "actor_id", "name"),
    "secret_answers": (_ANSWER, "actor_id", "turn_id", "handle"),
}


class Vault:
    """Locks and opens bytes with the keys of a home. Reads the key file at first need, and again
    when it meets a key that it does not know. Never shows a key."""

    def __init__(self, private_dir: Path) -> None:
        self._private_dir = private_dir
        self._keys: dict[bytes, AESGCM] = {}
        self._newest = b""

    def seal(self, plain: bytes, bound: Sequence[str]) -> bytes:
        """Lock bytes with the newest key; `bound` says what they are and must be said again to
        open them. Twice the same gives different bytes. Raises `KeyUnusable`."""
        if not self._keys:
            self._take(secret_key.load_or_create(self._private_dir))
        head, nonce = _VERSION + self._newest, os.urandom(_NONCE_BYTES)
        locked = self._keys[self._newest].encrypt(nonce, plain, _context(head, bound))
        return head + nonce + locked

    def open(self, sealed: bytes, bound: Sequence[str]) -> bytes:
        """The bytes that were locked. Raises `SecretUnreadable` for bytes that were changed, were
        bound to something else or whose key is gone, and `KeyUnusable`."""
        head, rest = sealed[: 1 + _ID_BYTES], sealed[1 + _ID_BYTES :]
        if head[:1] != _VERSION or len(rest) < _NONCE_BYTES + _TAG_BYTES:
            raise SecretUnreadable("not locked by us")
        if head[1:] not in self._keys:
            self._take(secret_key.load_or_create(self._private_dir))
        key = self._keys.get(head[1:])
        if key is None:
            raise SecretUnreadable("locked with a key that is gone")
        try:
            return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], _context(head, bound))
        except InvalidTag:
            raise SecretUnreadable("changed, or not what it is said to be") from None

    def _take(self, keys: Sequence[bytes]) -> None:
        self._keys = {_id_of(key): AESGCM(key) for key in keys}
        self._newest = _id_of(keys[0])


@dataclass(frozen=True, slots=True)
class SealedAnswer:
    """A secret answer, locked and not yet stored. `handle` is what stands for it everywhere."""

    handle: str
    actor_id: str
    turn_id: str
    sealed: bytes = field(repr=False)


def is_handle(value: object) -> bool:
    """Whether a value has the form of a handle, as a whole."""
    return isinstance(value, str) and _HANDLE.fullmatch(value) is not None


# -- credentials: by actor and name ---------------------------------------------------------------


async def put(
    tx: Transaction, vault: Vault, actor_id: str, name: str, value: str, now: datetime
) -> None:
    """Keep a value under a name, in the place of an earlier one. Raises `ValueError` for a name or
    value that is empty or too long, and `KeyUnusable`."""
    data = value.encode("utf-8", "surrogatepass")
    if not 0 < len(name) <= MAX_NAME or not 0 < len(data) <= MAX_SECRET_BYTES:
        raise ValueError("a credential has a short name and a value")
    await tx.execute(
        """INSERT INTO credentials (actor_id, name, sealed, created_at, updated_at)
           VALUES (:actor, :name, :sealed, :now, :now)
           ON CONFLICT (actor_id, name)
               DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at""",
        {
            "actor": actor_id,
            "name": name,
            "sealed": vault.seal(data, (_CREDENTIAL, actor_id, name)),
            "now": to_ts(now),
        },
    )


async def names(tx: Transaction, actor_id: str) -> list[str]:
    """The names of what this person has entrusted, in order; never a value."""
    rows = await tx.fetch_all(
        "SELECT name FROM credentials WHERE actor_id = :actor ORDER BY name", {"actor": actor_id}
    )
    return [row["name"] for row in rows]


async def read(tx: Transaction, vault: Vault, actor_id: str, name: str) -> str | None:
    """The value under a name, None when this person has none. Raises `SecretUnreadable`."""
    row = await tx.fetch_one(
        "SELECT sealed FROM credentials WHERE actor_id = :actor AND name = :name",
        {"actor": actor_id, "name": name},
    )
    if row is None:
        return None
    return _text(vault.open(bytes(row["sealed"]), (_CREDENTIAL, actor_id, name)))


async def delete(tx: Transaction, actor_id: str, name: str) -> bool:
    """Forget a value; False when there was none."""
    changed = await tx.execute(
        "DELETE FROM credentials WHERE actor_id = :actor AND name = :name",
        {"actor": actor_id, "name": name},
    )
    return changed == 1


async def unreadable(tx: Transaction, vault: Vault) -> list[tuple[str, str]]:
    """Whose credentials, by actor and name, do not open any more and must be entered again."""
    found = []
    for row in await tx.fetch_all("SELECT * FROM credentials ORDER BY actor_id, name"):
        try:
            vault.open(bytes(row["sealed"]), (_CREDENTIAL, row["actor_id"], row["name"]))
        except SecretUnreadable:
            found.append((row["actor_id"], row["name"]))
    return found


# -- secret answers: by handle, within their turn -------------------------------------------------


def seal_answer(
    vault: Vault, *, answer_id: str, actor_id: str, turn_id: str, text: str
) -> SealedAnswer:
    """Lock what a person typed, before anything is stored; `answer_id`: 32 hexadecimal digits.
    Raises `KeyUnusable`."""
    handle = f"secret:{answer_id}"
    data = text.encode("utf-8", "surrogatepass")
    sealed = vault.seal(data, (_ANSWER, actor_id, turn_id, handle))
    return SealedAnswer(handle, actor_id, turn_id, sealed)


async def keep_answer(tx: Transaction, answer: SealedAnswer, now: datetime) -> None:
    """Store a locked answer, along with the decision that it belongs to."""
    await tx.execute(
        """INSERT INTO secret_answers (handle, actor_id, turn_id, sealed, expires_at)
           VALUES (:handle, :actor, :turn, :sealed, :expires)""",
        {
            "handle": answer.handle,
            "actor": answer.actor_id,
            "turn": answer.turn_id,
            "sealed": answer.sealed,
            "expires": to_ts(now + ANSWER_TTL),
        },
    )


async def reveal(
    tx: Transaction, vault: Vault, *, actor_id: str, turn_id: str, handle: str
) -> str | None:
    """What a handle stands for; None when this person has no such handle in this turn. Raises
    `SecretUnreadable`. The value goes to the child that needs it and nowhere else."""
    row = await tx.fetch_one(
        """SELECT sealed FROM secret_answers
           WHERE handle = :handle AND actor_id = :actor AND turn_id = :turn""",
        {"handle": handle, "actor": actor_id, "turn": turn_id},
    )
    if row is None:
        return None
    return _text(vault.open(bytes(row["sealed"]), (_ANSWER, actor_id, turn_id, handle)))


async def save_answer(
    tx: Transaction,
    vault: Vault,
    *,
    actor_id: str,
    turn_id: str,
    handle: str,
    name: str,
    now: datetime,
) -> bool:
    """Keep a secret answer as a credential, beyond its turn; False when there is no such handle
    for this person in this turn."""
    value = await reveal(tx, vault, actor_id=actor_id, turn_id=turn_id, handle=handle)
    if value is None:
        return False
    await put(tx, vault, actor_id, name, value, now)
    return True


async def forget_turn(tx: Transaction, turn_id: str) -> None:
    """Drop the secret answers of a turn that ends."""
    await tx.execute("DELETE FROM secret_answers WHERE turn_id = :turn", {"turn": turn_id})


async def forget_all(tx: Transaction, actor_id: str) -> None:
    """Delete everything that this person has entrusted, what they typed for one turn too."""
    for table in ("credentials", "secret_answers"):
        await tx.execute(f"DELETE FROM {table} WHERE actor_id = :actor", {"actor": actor_id})  # noqa: S608


async def forget_answers(tx: Transaction, actor_id: str, *, but_of: Collection[str]) -> int:
    """Drop the secret answers of this person, but those of the turns that are named; how many."""
    return await tx.execute(
        """DELETE FROM secret_answers
           WHERE actor_id = :actor AND turn_id NOT IN (SELECT value FROM json_each(:turns))""",
        {"actor": actor_id, "turns": dump_json(list(but_of))},
    )


async def purge(tx: Transaction, now: datetime) -> int:
    """Drop answers of turns that nobody closed; how many."""
    return await tx.execute(
        "DELETE FROM secret_answers WHERE expires_at <= :now", {"now": to_ts(now)}
    )


async def relock(tx: Transaction, vault: Vault) -> int:
    """Lock everything that opens anew, with the newest key; how many. The rest stays as it is."""
    moved = 0
    for table, bound_by in _TABLES.items():
        columns = ", ".join(("sealed", *bound_by[1:]))
        kind, *keys = bound_by
        for row in await tx.fetch_all(f"SELECT {columns} FROM {table}"):  # noqa: S608 - constants
            values = [row[key] for key in keys]
            try:
                plain = vault.open(bytes(row["sealed"]), (kind, *values))
            except SecretUnreadable:
                continue
            where = " AND ".join(f"{key} = ?" for key in keys)
            await tx.execute(
                f"UPDATE {table} SET sealed = ? WHERE {where}",  # noqa: S608 - constants
                (vault.seal(plain, (kind, *values)), *values),
            )
            moved += 1
    return moved


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(b"metnos key id\x00" + key).digest()[:_ID_BYTES]


def _context(head: bytes, bound: Sequence[str]) -> bytes:
    """What the lock is bound to, each part with its length, so that no two lists read alike."""
    parts = [part.encode("utf-8", "surrogatepass") for part in bound]
    return _CONTEXT + head + b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
