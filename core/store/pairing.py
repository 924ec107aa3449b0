"""How a stranger becomes host or guest: one-time codes, and the brakes on guessing them.

Owns `pairing_codes`, `pairing_attempts` and `stranger_notices`. A code is shown once and stored
as a hash only; a locked sender's right code is refused like a wrong one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from core.clock import Clock, to_ts
from core.messages import Actor, Role
from core.store import actors, visitors
from core.store.database import Row, Transaction, row_reader
from core.store.visitors import VisitorState

CODE_TTL = timedelta(minutes=10)
LOCKOUT = timedelta(hours=1)
NOTICE_EVERY = timedelta(hours=24)
MAX_FAILED_SENDER = 5
MAX_FAILED_ALL = 20

# Crockford's base 32: 8 signs are 40 bits, and signs that look alike are read as one.
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_CODE_LENGTH = 8
_ALIKE = str.maketrans({"O": "0", "I": "1", "L": "1", "-": None, " ": None})

_EVERYBODY = ("*", "*")


class PairingOutcome(StrEnum):
    PAIRED = "paired"
    ALREADY_PAIRED = "already_paired"
    INVALID = "invalid"
    LOCKED = "locked"


@dataclass(frozen=True, slots=True)
class PairingResult:
    """`actor` is the person the sender now is, None when they are still a stranger."""

    outcome: PairingOutcome
    actor: Actor | None = None


async def create_code(
    tx: Transaction,
    role: Role,
    clock: Clock,
    *,
    ttl: timedelta = CODE_TTL,
    created_by: str | None = None,
) -> str:
    """Make a one-time code of 8 signs for a role; an earlier unused one of that role is void."""
    now = to_ts(clock.now())
    await tx.execute(
        "DELETE FROM pairing_codes WHERE role = :role OR expires_at < :now",
        {"role": role.value, "now": now},
    )
    code = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
    await tx.execute(
        """INSERT INTO pairing_codes (code_hash, role, created_at, expires_at, created_by)
           VALUES (:hash, :role, :now, :expires, :created_by)""",
        {
            "hash": _hash(code),
            "role": role.value,
            "now": now,
            "expires": now + ttl.total_seconds(),
            "created_by": created_by,
        },
    )
    return code


async def redeem_code(
    tx: Transaction, code: str, channel: str, sender_id: str, name: str, clock: Clock
) -> PairingResult:
    """Try a code for a sender. Call it in a transaction that commits also when it fails.

    Five wrong codes of a sender, or twenty of all senders together, in an hour: `locked` for the
    rest of the hour, and the code is not looked at; so is who is blocked. A host code makes the
    host, or moves the host to this sender (it was shown on the local terminal); the sender that
    was the host before is a stranger then. A code works once.
    """
    known = await actors.find_actor(tx, channel, sender_id)
    if known is not None and known.role is Role.HOST:
        return PairingResult(PairingOutcome.ALREADY_PAIRED, known)
    now = clock.now()
    blocked = await visitors.silence(tx, channel, sender_id, now) is VisitorState.BLOCKED
    if blocked or await _is_locked(tx, channel, sender_id, now):
        return PairingResult(PairingOutcome.LOCKED, known)
    found = await _find_code(tx, code, now)
    if found is None:
        await _count_failure(tx, channel, sender_id, now)
        return PairingResult(PairingOutcome.INVALID, known)
    code_hash, role = found
    if known is not None and role is Role.GUEST:
        return PairingResult(PairingOutcome.ALREADY_PAIRED, known)
    await tx.execute(
        "UPDATE pairing_codes SET used_at = :now WHERE code_hash = :hash",
        {"hash": code_hash, "now": to_ts(now)},
    )
    await tx.execute(
        "DELETE FROM pairing_attempts WHERE channel = :channel AND sender_id = :sender_id",
        {"channel": channel, "sender_id": sender_id},
    )
    if known is not None:  # a guest who turns out to be the owner
        await actors.revoke(tx, known.id, now)
    if role is Role.HOST:
        actor = await _claim_host(tx, channel, name, clock)
    else:
        actor = await actors.add(tx, Role.GUEST, "", clock)
    await actors.link(tx, channel, sender_id, actor.id)
    return PairingResult(PairingOutcome.PAIRED, actor)


async def stranger_notice_due(
    tx: Transaction, channel: str, sender_id: str, now: datetime
) -> bool:
    """Whether to answer a stranger now: once in 24 hours. True also notes that it was done."""
    changed = await tx.execute(
        """INSERT INTO stranger_notices (channel, sender_id, noticed_at)
           VALUES (:channel, :sender_id, :now)
           ON CONFLICT (channel, sender_id) DO UPDATE SET noticed_at = excluded.noticed_at
               WHERE noticed_at <= :before OR noticed_at > :now""",
        {
            "channel": channel,
            "sender_id": sender_id,
            "now": to_ts(now),
            "before": to_ts(now - NOTICE_EVERY),
        },
    )
    return changed == 1


async def prune(tx: Transaction, now: datetime) -> None:
    """Forget notices, attempts and codes that no longer decide anything."""
    await tx.execute(
        "DELETE FROM stranger_notices WHERE noticed_at < :before",
        {"before": to_ts(now - NOTICE_EVERY)},
    )
    await tx.execute(
        "DELETE FROM pairing_attempts WHERE window_started_at < :before",
        {"before": to_ts(now - LOCKOUT)},
    )
    await tx.execute("DELETE FROM pairing_codes WHERE expires_at < :now", {"now": to_ts(now)})
    await visitors.prune(tx, now)


async def _claim_host(tx: Transaction, channel: str, name: str, clock: Clock) -> Actor:
    host = await actors.find_host(tx)
    if host is None:
        return await actors.add(tx, Role.HOST, name or "host", clock)
    await actors.unlink_channel(tx, channel, host.id)
    await actors.set_name(tx, host.id, name)
    return await actors.get_actor(tx, host.id) or host


async def _find_code(tx: Transaction, code: str, now: datetime) -> tuple[str, Role] | None:
    """The hash and role of a code that is valid now. Compares with every one, in constant time."""
    tried = _hash(code)
    rows = await tx.fetch_all(
        """SELECT code_hash, role FROM pairing_codes
           WHERE used_at IS NULL AND expires_at > :now AND created_at < :soon""",
        {"now": to_ts(now), "soon": to_ts(now + CODE_TTL)},
    )
    matches = [row for row in rows if hmac.compare_digest(row["code_hash"], tried)]
    return _code(matches[0]) if matches else None


@row_reader
def _code(row: Row) -> tuple[str, Role]:
    return row["code_hash"], Role(row["role"])


async def _is_locked(tx: Transaction, channel: str, sender_id: str, now: datetime) -> bool:
    # A clock that was set back must not lock anybody out for longer than an hour from now.
    await tx.execute(
        "UPDATE pairing_attempts SET window_started_at = :now WHERE window_started_at > :now",
        {"now": to_ts(now)},
    )
    rows = await tx.fetch_all(
        """SELECT channel, failed FROM pairing_attempts
           WHERE ((channel = :channel AND sender_id = :sender_id)
                  OR (channel = :all AND sender_id = :all))
             AND window_started_at > :before""",
        {
            "channel": channel,
            "sender_id": sender_id,
            "all": _EVERYBODY[0],
            "before": to_ts(now - LOCKOUT),
        },
    )
    return any(
        row["failed"] >= (MAX_FAILED_ALL if row["channel"] == "*" else MAX_FAILED_SENDER)
        for row in rows
    )


async def _count_failure(tx: Transaction, channel: str, sender_id: str, now: datetime) -> None:
    for key in ((channel, sender_id), _EVERYBODY):
        await tx.execute(
            """INSERT INTO pairing_attempts (channel, sender_id, failed, window_started_at)
               VALUES (:channel, :sender_id, 1, :now)
               ON CONFLICT (channel, sender_id) DO UPDATE SET
                   failed = CASE WHEN window_started_at > :before THEN failed + 1 ELSE 1 END,
                   window_started_at = CASE WHEN window_started_at > :before
                       THEN window_started_at ELSE :now END""",
            {
                "channel": key[0],
                "sender_id": key[1],
                "now": to_ts(now),
                "before": to_ts(now - LOCKOUT),
            },
        )


def _hash(code: str) -> str:
    """The stored form: case, hyphens, spaces and look-alikes make no difference."""
    plain = code.strip().upper().translate(_ALIKE)
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()
