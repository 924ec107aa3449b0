"""What people have agreed to: for good (mandates), how often, and to whom things may be sent.

Owns `mandates`, `agreed` and `recipients`. A mandate stands for one request of one actor and one
change, up to the number of items that was agreed to, and ends when it is not used for 90 days.
Whether a change may have one is for the caller to say. Knows nothing of questions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.clock import from_ts, to_ts
from core.store.database import Row, Transaction, row_reader
from core.store.encoding import clean_text, dump_json, load_json

MANDATE_TTL = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Bond:
    """What a mandate is bound to. `request` in its normal form, `program` the digest of the tool's
    manifest, `sinks` a digest of what the change acts on and how that was found; `shown` names it
    for people."""

    request: str
    tool: str
    program: str
    sinks: str
    shown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mandate:
    """A change that need not be asked about again. `most`: up to this many items."""

    id: int
    actor_id: str
    bond: Bond
    most: int
    granted_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Agreed:
    """How often a kind of change was agreed to, and the most items there were."""

    times: int = 0
    most: int = 0


async def grant(
    tx: Transaction, actor_id: str, bond: Bond, *, most: int, now: datetime
) -> Mandate:
    """Let a change stand. What stood for the same request and tool with the same sinks is taken
    over by it, whatever its program was: a mandate is never wider than the last word on it."""
    row = await tx.fetch_one(
        """INSERT INTO mandates
               (actor_id, request, tool, program, sinks, shown_json, most, granted_at, expires_at)
           VALUES (:actor, :request, :tool, :program, :sinks, :shown, :most, :now, :end)
           ON CONFLICT (actor_id, request, tool, sinks) DO UPDATE SET
               program = excluded.program, shown_json = excluded.shown_json,
               most = excluded.most, granted_at = excluded.granted_at,
               expires_at = excluded.expires_at
           RETURNING *""",
        {
            "actor": actor_id,
            "request": clean_text(bond.request),
            "tool": bond.tool,
            "program": bond.program,
            "sinks": bond.sinks,
            "shown": dump_json(list(bond.shown)),
            "most": most,
            "now": to_ts(now),
            "end": to_ts(now + MANDATE_TTL),
        },
    )
    assert row is not None  # noqa: S101 - RETURNING gives it
    return _mandate(row)


async def find(
    tx: Transaction, actor_id: str, bond: Bond, *, count: int, now: datetime
) -> Mandate | None:
    """The mandate that covers this change of `count` items; None: it must be asked about."""
    row = await tx.fetch_one(
        """SELECT * FROM mandates
           WHERE actor_id = :actor AND request = :request AND tool = :tool
             AND program = :program AND sinks = :sinks AND most >= :count
             AND expires_at > :now""",
        {
            "actor": actor_id,
            "request": clean_text(bond.request),
            "tool": bond.tool,
            "program": bond.program,
            "sinks": bond.sinks,
            "count": count,
            "now": to_ts(now),
        },
    )
    return None if row is None else _mandate(row)


async def use(tx: Transaction, mandate_id: int, now: datetime) -> bool:
    """Note that a mandate was used, which lets it live on. False: it was taken back or ended."""
    changed = await tx.execute(
        "UPDATE mandates SET expires_at = :end WHERE id = :id AND expires_at > :now",
        {"id": mandate_id, "end": to_ts(now + MANDATE_TTL), "now": to_ts(now)},
    )
    return changed == 1


async def list_mandates(
    tx: Transaction, now: datetime, *, actor_id: str | None = None
) -> list[Mandate]:
    """The mandates that hold now, of everybody or of one actor, in the order they were given."""
    rows = await tx.fetch_all(
        """SELECT * FROM mandates
           WHERE expires_at > :now AND (:actor IS NULL OR actor_id = :actor) ORDER BY id""",
        {"actor": actor_id, "now": to_ts(now)},
    )
    return [_mandate(row) for row in rows]


async def take_back(tx: Transaction, mandate_id: int) -> Mandate | None:
    """End a mandate; None when there is none of this number (any more)."""
    row = await tx.fetch_one("DELETE FROM mandates WHERE id = :id RETURNING *", {"id": mandate_id})
    return None if row is None else _mandate(row)


async def count_agreed(
    tx: Transaction, actor_id: str, kind: str, *, count: int, now: datetime
) -> None:
    """One more change of this kind was agreed to, with so many items."""
    await tx.execute(
        """INSERT INTO agreed (actor_id, kind, times, most, last_at)
           VALUES (:actor, :kind, 1, :count, :now)
           ON CONFLICT (actor_id, kind) DO UPDATE SET times = times + 1,
               most = MAX(most, excluded.most), last_at = excluded.last_at""",
        {"actor": actor_id, "kind": clean_text(kind), "count": count, "now": to_ts(now)},
    )


async def agreed_to(tx: Transaction, actor_id: str, kind: str) -> Agreed:
    row = await tx.fetch_one(
        "SELECT times, most FROM agreed WHERE actor_id = :actor AND kind = :kind",
        {"actor": actor_id, "kind": clean_text(kind)},
    )
    return Agreed() if row is None else Agreed(int(row["times"]), int(row["most"]))


async def remember_recipients(
    tx: Transaction, actor_id: str, addresses: Sequence[str], now: datetime
) -> None:
    """This person has agreed that things are sent to these addresses."""
    for address in addresses:
        await tx.execute(
            """INSERT INTO recipients (actor_id, address, agreed_at)
               VALUES (:actor, :address, :now)
               ON CONFLICT (actor_id, address) DO UPDATE SET agreed_at = excluded.agreed_at""",
            {"actor": actor_id, "address": _address(address), "now": to_ts(now)},
        )


async def knows_recipients(tx: Transaction, actor_id: str, addresses: Collection[str]) -> bool:
    """Whether this person agreed to every one of these addresses before; False for none."""
    wanted = {_address(address) for address in addresses}
    rows = await tx.fetch_all(
        """SELECT address FROM recipients
           WHERE actor_id = :actor AND address IN (SELECT value FROM json_each(:wanted))""",
        {"actor": actor_id, "wanted": dump_json(sorted(wanted))},
    )
    return bool(wanted) and wanted == {row["address"] for row in rows}


async def list_recipients(
    tx: Transaction, *, actor_id: str | None = None
) -> list[tuple[str, str]]:
    """(actor id, address) of everybody's approved addresses, or of one actor's, by address."""
    rows = await tx.fetch_all(
        """SELECT actor_id, address FROM recipients
           WHERE :actor IS NULL OR actor_id = :actor ORDER BY address, actor_id""",
        {"actor": actor_id},
    )
    return [(row["actor_id"], row["address"]) for row in rows]


async def forget_recipient(tx: Transaction, address: str) -> int:
    """Ask again before anything is sent there, whoever sends it; how many knew it."""
    return await tx.execute(
        "DELETE FROM recipients WHERE address = :address", {"address": _address(address)}
    )


async def forget_all(tx: Transaction, actor_id: str) -> None:
    """Forget everything that this person has agreed to."""
    for table in ("mandates", "agreed", "recipients"):
        await tx.execute(f"DELETE FROM {table} WHERE actor_id = :actor", {"actor": actor_id})  # noqa: S608


async def purge(tx: Transaction, now: datetime) -> int:
    """Delete the mandates that have ended; how many there were."""
    return await tx.execute("DELETE FROM mandates WHERE expires_at <= :now", {"now": to_ts(now)})


def _address(address: str) -> str:
    """One form for what mail servers take for the same: names of hosts know no capitals."""
    return clean_text(" ".join(address.split())).casefold()


@row_reader
def _mandate(row: Row) -> Mandate:
    shown = load_json(row["shown_json"])
    return Mandate(
        id=row["id"],
        actor_id=row["actor_id"],
        bond=Bond(
            row["request"],
            row["tool"],
            row["program"],
            row["sinks"],
            tuple(map(str, shown)) if isinstance(shown, list) else (),
        ),
        most=row["most"],
        granted_at=from_ts(row["granted_at"]),
        expires_at=from_ts(row["expires_at"]),
    )
