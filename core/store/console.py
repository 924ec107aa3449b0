"""Who may look through the console: one-time links and the sessions they open.

Owns `console_links` and `console_sessions`. Both are known by a secret of 256 bits that is shown
once and stored as a hash only. Every session is of somebody who is the host now.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.clock import to_ts
from core.messages import Actor, Role
from core.store import actors
from core.store.database import Transaction

LINK_TTL = timedelta(minutes=10)
IDLE_FOR = timedelta(hours=12)
AT_MOST = timedelta(days=7)
MOST_SESSIONS = 8

# A visit is noted when the last note is older than this: pages are read far more often.
_NOTED_EVERY = timedelta(minutes=1)
_LONGEST = 128


@dataclass(frozen=True, slots=True)
class Session:
    """An open session: its person, and the language they switched to, if they did. `to_note`: the
    visit should be noted (`touch`)."""

    actor: Actor
    lang: str | None
    to_note: bool


async def make_link(tx: Transaction, actor_id: str, now: datetime) -> str:
    """The secret of a new link that lets its person in once, for ten minutes; an earlier one that
    was not used is void."""
    await tx.execute(
        "DELETE FROM console_links WHERE actor_id = :actor OR expires_at <= :now",
        {"actor": actor_id, "now": to_ts(now)},
    )
    secret = secrets.token_urlsafe(32)
    await tx.execute(
        """INSERT INTO console_links (token_hash, actor_id, created_at, expires_at)
           VALUES (:hash, :actor, :now, :expires)""",
        {
            "hash": _hash(secret),
            "actor": actor_id,
            "now": to_ts(now),
            "expires": to_ts(now + LINK_TTL),
        },
    )
    return secret


async def enter(tx: Transaction, secret: str, now: datetime) -> str | None:
    """Use a link up and open a session; the session's secret. None: the link is unknown, used or
    too old, or its person is not the host (any more). Of two who use it at once one gets in."""
    row = await tx.fetch_one(
        """DELETE FROM console_links WHERE token_hash = :hash
           RETURNING actor_id, created_at, expires_at""",
        {"hash": _hash(secret)},
    )
    # A clock that was set back must not bring an old link to life.
    if row is None or not row["created_at"] <= to_ts(now) < row["expires_at"]:
        return None
    actor = await actors.get_actor(tx, row["actor_id"])
    if actor is None or actor.role is not Role.HOST:
        return None
    return await _open(tx, actor.id, now)


async def find_session(tx: Transaction, secret: str, now: datetime) -> Session | None:
    """The session with this secret; None when there is none, it has ended by time, or its person
    is not the host any more."""
    row = await tx.fetch_one(
        """SELECT actor_id, lang, created_at, seen_at FROM console_sessions
           WHERE token_hash = :hash""",
        {"hash": _hash(secret)},
    )
    if row is None:
        return None
    at, seen, made = to_ts(now), row["seen_at"], row["created_at"]
    if at - seen >= IDLE_FOR.total_seconds() or at - made >= AT_MOST.total_seconds():
        return None
    actor = await actors.get_actor(tx, row["actor_id"])
    if actor is None or actor.role is not Role.HOST:
        return None
    return Session(actor, row["lang"], abs(at - seen) >= _NOTED_EVERY.total_seconds())


async def touch(tx: Transaction, secret: str, now: datetime) -> None:
    """Note a visit: the session's idle time begins anew."""
    await tx.execute(
        "UPDATE console_sessions SET seen_at = :now WHERE token_hash = :hash",
        {"hash": _hash(secret), "now": to_ts(now)},
    )


async def set_lang(tx: Transaction, secret: str, lang: str) -> None:
    await tx.execute(
        "UPDATE console_sessions SET lang = :lang WHERE token_hash = :hash",
        {"hash": _hash(secret), "lang": lang},
    )


async def end_session(tx: Transaction, secret: str) -> bool:
    """End one session; False when it had ended."""
    sql = "DELETE FROM console_sessions WHERE token_hash = :hash"
    return await tx.execute(sql, {"hash": _hash(secret)}) == 1


async def end_all(tx: Transaction, actor_id: str | None = None) -> int:
    """End the sessions of one person, or everybody's, and void their links; how many sessions."""
    who = {"actor": actor_id}
    await tx.execute("DELETE FROM console_links WHERE :actor IS NULL OR actor_id = :actor", who)
    return await tx.execute(
        "DELETE FROM console_sessions WHERE :actor IS NULL OR actor_id = :actor", who
    )


async def prune(tx: Transaction, now: datetime) -> int:
    """Forget links and sessions that have ended by time; how many sessions."""
    await tx.execute("DELETE FROM console_links WHERE expires_at <= :now", {"now": to_ts(now)})
    return await tx.execute(
        "DELETE FROM console_sessions WHERE seen_at <= :idle OR created_at <= :old",
        {"idle": to_ts(now - IDLE_FOR), "old": to_ts(now - AT_MOST)},
    )


async def _open(tx: Transaction, actor_id: str, now: datetime) -> str:
    await prune(tx, now)
    await tx.execute(
        """DELETE FROM console_sessions WHERE token_hash NOT IN (
               SELECT token_hash FROM console_sessions ORDER BY seen_at DESC LIMIT :most)""",
        {"most": MOST_SESSIONS - 1},
    )
    secret = secrets.token_urlsafe(32)
    await tx.execute(
        """INSERT INTO console_sessions (token_hash, actor_id, created_at, seen_at)
           VALUES (:hash, :actor, :now, :now)""",
        {"hash": _hash(secret), "actor": actor_id, "now": to_ts(now)},
    )
    return secret


def _hash(secret: str) -> str:
    # Random and long, so that a plain hash is enough. Nobody makes us hash a megabyte.
    return hashlib.sha256(secret[:_LONGEST].encode("utf-8", "replace")).hexdigest()
