"""Who is known to this home, and by which name each channel knows them.

Owns `actors` and `identities`. A person is a channel's numeric sender id, never a name or a chat.
How somebody becomes known is `core.store.pairing`.
"""

from __future__ import annotations

from datetime import datetime

from core.clock import Clock, from_ts, to_ts
from core.messages import Actor, Autonomy, Role
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import clean_text

LOCAL_CHANNEL = "terminal"
LOCAL_SENDER = "local"
MAX_NAME = 64

_COLUMNS = (
    "a.id, a.role, a.display_name, a.autonomy, a.lang, a.tz,"
    " a.turns_per_hour, a.tokens_per_day, a.money_per_day"
)
# What `change` may change, each under its own name.
CHANGEABLE = frozenset(
    {"autonomy", "lang", "tz", "turns_per_hour", "tokens_per_day", "money_per_day"}
)


async def find_actor(tx: Transaction, channel: str, sender_id: str) -> Actor | None:
    """The person behind a sender; None for strangers and for those whose right was withdrawn."""
    row = await tx.fetch_one(
        f"""SELECT {_COLUMNS} FROM identities AS i JOIN actors AS a ON a.id = i.actor_id
            WHERE i.channel = :channel AND i.sender_id = :sender_id AND a.revoked_at IS NULL""",  # noqa: S608
        {"channel": channel, "sender_id": sender_id},
    )
    return None if row is None else _actor(row)


async def get_actor(tx: Transaction, actor_id: str) -> Actor | None:
    """The person with this id; None when there is none or the right was withdrawn."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM actors AS a WHERE a.id = :id AND a.revoked_at IS NULL",  # noqa: S608
        {"id": actor_id},
    )
    return None if row is None else _actor(row)


async def find_host(tx: Transaction) -> Actor | None:
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM actors AS a WHERE a.role = 'host' AND a.revoked_at IS NULL"  # noqa: S608
    )
    return None if row is None else _actor(row)


async def ensure_local_host(tx: Transaction, clock: Clock) -> Actor:
    """The person at the local terminal, who is the host: made when there is none yet.

    Called again it returns the same actor.
    """
    known = await find_actor(tx, LOCAL_CHANNEL, LOCAL_SENDER)
    if known is not None and known.role is Role.HOST:
        return known
    host = await find_host(tx) or await add(tx, Role.HOST, "host", clock)
    await link(tx, LOCAL_CHANNEL, LOCAL_SENDER, host.id)
    return host


async def add(tx: Transaction, role: Role, display_name: str, clock: Clock) -> Actor:
    """Make a new actor without identities. An empty name becomes `guest_<last 6 of the id>`."""
    id = clock.new_id()
    actor = Actor(id, role, clean_name(display_name) or f"guest_{id[-6:]}")
    await tx.execute(
        """INSERT INTO actors (id, role, display_name, autonomy, created_at)
           VALUES (:id, :role, :name, :autonomy, :now)""",
        {
            "id": actor.id,
            "role": actor.role.value,
            "name": actor.display_name,
            "autonomy": actor.autonomy.value,
            "now": to_ts(clock.now()),
        },
    )
    return actor


async def link(tx: Transaction, channel: str, sender_id: str, actor_id: str) -> None:
    """Let this sender be that actor, whoever it was before."""
    await tx.execute(
        """INSERT INTO identities (channel, sender_id, actor_id)
           VALUES (:channel, :sender_id, :actor_id)
           ON CONFLICT (channel, sender_id) DO UPDATE SET actor_id = excluded.actor_id""",
        {"channel": channel, "sender_id": sender_id, "actor_id": actor_id},
    )


async def unlink_channel(tx: Transaction, channel: str, actor_id: str) -> None:
    """Forget by which senders of a channel this actor was known."""
    await tx.execute(
        "DELETE FROM identities WHERE channel = :channel AND actor_id = :actor_id",
        {"channel": channel, "actor_id": actor_id},
    )


async def identities_of(tx: Transaction, actor_id: str) -> list[tuple[str, str]]:
    """The (channel, sender id) pairs of an actor."""
    rows = await tx.fetch_all(
        """SELECT channel, sender_id FROM identities WHERE actor_id = :id
           ORDER BY channel, sender_id""",
        {"id": actor_id},
    )
    return [(row["channel"], row["sender_id"]) for row in rows]


async def set_lang(tx: Transaction, actor_id: str, lang: str | None) -> None:
    await tx.execute(
        "UPDATE actors SET lang = :lang WHERE id = :id", {"id": actor_id, "lang": lang}
    )


async def set_name(tx: Transaction, actor_id: str, display_name: str) -> None:
    """Take a new display name; an empty one changes nothing."""
    if name := clean_name(display_name):
        await tx.execute(
            "UPDATE actors SET display_name = :name WHERE id = :id", {"id": actor_id, "name": name}
        )


async def change(tx: Transaction, actor_id: str, **values: str | float | None) -> Actor | None:
    """Set what is `CHANGEABLE` of an actor; it counts from their next turn. None: there is no such
    actor (any more). Raises `ValueError` for a column that is none of these."""
    if unknown := set(values) - CHANGEABLE:
        raise ValueError(f"not changeable: {', '.join(sorted(unknown))}")
    for column, value in values.items():
        await tx.execute(
            f"UPDATE actors SET {column} = :value WHERE id = :id AND revoked_at IS NULL",  # noqa: S608
            {"id": actor_id, "value": value},
        )
    return await get_actor(tx, actor_id)


async def find_former(tx: Transaction, actor_id: str) -> Actor | None:
    """The actor with this id whose right was withdrawn; None for everybody else."""
    row = await tx.fetch_one(
        f"SELECT {_COLUMNS} FROM actors AS a WHERE a.id = :id AND a.revoked_at IS NOT NULL",  # noqa: S608
        {"id": actor_id},
    )
    return None if row is None else _actor(row)


async def is_revoked(tx: Transaction, actor_id: str) -> bool:
    """Whether this actor's right was withdrawn; False also for one who was never there."""
    row = await tx.fetch_one(
        "SELECT 1 AS gone FROM actors WHERE id = :id AND revoked_at IS NOT NULL", {"id": actor_id}
    )
    return row is not None


async def came_at(tx: Transaction, actor_id: str) -> datetime | None:
    """Since when an actor may speak here."""
    row = await tx.fetch_one("SELECT created_at FROM actors WHERE id = :id", {"id": actor_id})
    return None if row is None else from_ts(row["created_at"])


async def list_actors(tx: Transaction) -> list[Actor]:
    """Everybody who may speak here: the host first, then guests in the order they came."""
    rows = await tx.fetch_all(
        f"""SELECT {_COLUMNS} FROM actors AS a WHERE a.revoked_at IS NULL
            ORDER BY a.role = 'guest', a.created_at, a.rowid"""  # noqa: S608
    )
    return [_actor(row) for row in rows]


async def names(tx: Transaction) -> dict[str, str]:
    """The display name of everybody who is or was here, by id: the host first, then in the order
    they came."""
    rows = await tx.fetch_all(
        """SELECT id, display_name FROM actors
           ORDER BY revoked_at IS NOT NULL, role = 'guest', created_at, rowid"""
    )
    return {str(row["id"]): str(row["display_name"]) for row in rows}


async def list_former(tx: Transaction) -> list[Actor]:
    """Everybody whose right was withdrawn, in the order they came."""
    rows = await tx.fetch_all(
        f"""SELECT {_COLUMNS} FROM actors AS a WHERE a.revoked_at IS NOT NULL
            ORDER BY a.created_at, a.rowid"""  # noqa: S608
    )
    return [_actor(row) for row in rows]


async def revoke(tx: Transaction, actor_id: str, now: datetime) -> bool:
    """Withdraw an actor's right to speak; False when it was withdrawn or never there.

    Identities are forgotten: whoever is paired again begins as somebody new.
    """
    changed = await tx.execute(
        "UPDATE actors SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL",
        {"id": actor_id, "now": to_ts(now)},
    )
    await tx.execute("DELETE FROM identities WHERE actor_id = :id", {"id": actor_id})
    return changed == 1


def clean_name(text: str) -> str:
    """A name on one line, without control and direction characters, `MAX_NAME` at most."""
    printable = "".join(c if c.isprintable() else " " for c in clean_text(text))
    return " ".join(printable.split())[:MAX_NAME].strip()


@row_reader
def _actor(row: Row) -> Actor:
    return Actor(
        id=row["id"],
        role=Role(row["role"]),
        display_name=row["display_name"],
        autonomy=Autonomy(row["autonomy"]),
        lang=row["lang"],
        tz=row["tz"],
        turns_per_hour=row["turns_per_hour"],
        tokens_per_day=row["tokens_per_day"],
        money_per_day=row["money_per_day"],
    )
