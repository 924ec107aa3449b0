"""What the host has opened to whom beyond the settings: inner hosts, and folders to read or write.

Owns `grants`. A grant belongs to one actor and one target and ends by itself when it has a time.
Whether a target may be granted at all is for the caller to say; the gate looks again at every use.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.clock import from_ts, to_ts
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import clean_text

_COLUMNS = "id, actor_id, kind, target, granted_at, expires_at"


class GrantKind(StrEnum):
    """`HOST`: a name with or without a port. `READ`, `WRITE`: a folder with all that is in it;
    to write is also to read. `RIGHT`: what tools may do, by its name in manifests."""

    HOST = "host"
    READ = "read"
    WRITE = "write"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Grant:
    """`expires_at` None: until it is revoked."""

    id: int
    actor_id: str
    kind: GrantKind
    target: str
    granted_at: datetime
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """What is granted to one actor at one moment, each in the order it was granted."""

    hosts: tuple[str, ...] = ()
    read_folders: tuple[str, ...] = ()
    write_folders: tuple[str, ...] = ()
    rights: tuple[str, ...] = ()


async def add(
    tx: Transaction,
    actor_id: str,
    kind: GrantKind,
    target: str,
    *,
    now: datetime,
    expires_at: datetime | None = None,
) -> Grant:
    """Grant a target to an actor. What was granted already keeps its number and takes the new
    end. Reading and writing a folder are one grant: the later one counts."""
    target = clean_text(target)
    folder = [GrantKind.READ, GrantKind.WRITE]
    kinds = folder if kind in folder else [kind]
    values = {
        "actor": actor_id,
        "kind": kind.value,
        "target": target,
        "now": to_ts(now),
        "end": None if expires_at is None else to_ts(expires_at),
        "one": kinds[0].value,
        "other": kinds[-1].value,
    }
    row = await tx.fetch_one(
        f"""UPDATE grants SET kind = :kind, granted_at = :now, expires_at = :end
            WHERE actor_id = :actor AND target = :target AND kind IN (:one, :other)
            RETURNING {_COLUMNS}""",  # noqa: S608
        values,
    )
    if row is None:
        row = await tx.fetch_one(
            f"""INSERT INTO grants (actor_id, kind, target, granted_at, expires_at)
                VALUES (:actor, :kind, :target, :now, :end) RETURNING {_COLUMNS}""",  # noqa: S608
            values,
        )
    assert row is not None  # noqa: S101 - one of both returns it
    return _grant(row)


async def granted_to(tx: Transaction, actor_id: str, now: datetime) -> Granted:
    """What an actor may reach now beyond the settings; expired grants are none."""
    rows = await tx.fetch_all(
        """SELECT kind, target FROM grants
           WHERE actor_id = :actor AND (expires_at IS NULL OR expires_at > :now) ORDER BY id""",
        {"actor": actor_id, "now": to_ts(now)},
    )
    found: dict[str, list[str]] = {kind.value: [] for kind in GrantKind}
    for row in rows:
        found[row["kind"]].append(str(row["target"]))
    return Granted(*(tuple(found[kind.value]) for kind in GrantKind))


async def list_grants(
    tx: Transaction, now: datetime, *, actor_id: str | None = None
) -> list[Grant]:
    """The grants that hold now, of everybody or of one actor, in the order they were given."""
    rows = await tx.fetch_all(
        f"""SELECT {_COLUMNS} FROM grants
            WHERE (expires_at IS NULL OR expires_at > :now)
              AND (:actor IS NULL OR actor_id = :actor) ORDER BY id""",  # noqa: S608
        {"actor": actor_id, "now": to_ts(now)},
    )
    return [_grant(row) for row in rows]


async def revoke(tx: Transaction, grant_id: int) -> Grant | None:
    """Take a grant back; None when there is none of this number (any more)."""
    row = await tx.fetch_one(
        f"DELETE FROM grants WHERE id = :id RETURNING {_COLUMNS}",  # noqa: S608
        {"id": grant_id},
    )
    return None if row is None else _grant(row)


async def forget_all(tx: Transaction, actor_id: str) -> int:
    """Take back everything that is granted to an actor; how many grants that were."""
    return await tx.execute("DELETE FROM grants WHERE actor_id = :actor", {"actor": actor_id})


async def purge(tx: Transaction, now: datetime) -> int:
    """Delete the grants that have ended; how many there were."""
    return await tx.execute(
        "DELETE FROM grants WHERE expires_at IS NOT NULL AND expires_at <= :now",
        {"now": to_ts(now)},
    )


@row_reader
def _grant(row: Row) -> Grant:
    ends = row["expires_at"]
    return Grant(
        id=row["id"],
        actor_id=row["actor_id"],
        kind=GrantKind(row["kind"]),
        target=row["target"],
        granted_at=from_ts(row["granted_at"]),
        expires_at=None if ends is None else from_ts(ends),
    )
