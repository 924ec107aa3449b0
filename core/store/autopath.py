"""The plans that serve a kind of request to everybody, by merit (L1). Owns `champions`.

Rows hold no value of anybody. Which plan serves is `core.levels.champions`'s to say.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.clock import from_ts, to_ts
from core.errors import CallRefused
from core.levels import champions
from core.levels.champions import Ranked, Status, Tally
from core.plan import Plan
from core.store import antis, observations
from core.store.database import Row, Transaction
from core.store.encoding import as_text, dump_json, load_object
from core.store.observations import Observed
from core.turn_state import Remembered

log = logging.getLogger(__name__)

VERSION = 1
_MOST_COUNTED = 2**31
_MOST_SERVING = 50


@dataclass(frozen=True, slots=True)
class Champion:
    """A plan for requests of one `cluster` among those of one `intent`; `said` names the intent in
    words of the word list. `taught_by`: whose turn it was first. `why` says what its last look-up
    came to."""

    intent: str
    said: str
    cluster: str
    lang: str
    plan: Plan
    way: str
    fingerprint: str
    status: Status
    is_champion: bool
    tally: Tally
    tools: str
    families: str
    taught_by: str
    why: str
    created_at: datetime
    used_at: datetime | None
    changed_at: datetime
    id: int = 0

    def mark(self, how: str) -> Remembered:
        """What a turn keeps that it serves."""
        return Remembered(self.id, self.fingerprint, how)

    @property
    def ranked(self) -> Ranked:
        return Ranked(self.id, self.status, self.tally, self.is_champion)


async def serving(tx: Transaction, intent: str, cluster: str) -> list[Champion]:
    """What may serve such a request, in the order in which it is to be tried, and after it what
    serves others of the same intent. Damaged rows and those of a later version are passed over."""
    rows = await tx.fetch_all(
        """SELECT * FROM champions
           WHERE intent = :intent AND status <> 'demoted' AND version <= :version
           ORDER BY cluster = :cluster DESC, is_champion DESC, score DESC LIMIT :most""",
        {"intent": intent, "cluster": cluster, "version": VERSION, "most": _MOST_SERVING},
    )
    found = [row for one in rows if (row := _champion(one)) is not None]
    own = {row.id: row for row in found if row.cluster == cluster}
    order = champions.in_turn([row.ranked for row in own.values()])
    return [own[one.id] for one in order] + [row for row in found if row.cluster != cluster]


async def find(tx: Transaction, intent: str, cluster: str, fingerprint: str) -> Champion | None:
    row = await tx.fetch_one(
        """SELECT * FROM champions WHERE intent = :intent AND cluster = :cluster
               AND fingerprint = :fingerprint AND version <= :version""",
        {
            "intent": intent,
            "cluster": cluster,
            "fingerprint": fingerprint,
            "version": VERSION,
        },
    )
    return None if row is None else _champion(row)


async def get(tx: Transaction, champion_id: int) -> Champion | None:
    row = await tx.fetch_one("SELECT * FROM champions WHERE id = :id", {"id": champion_id})
    return None if row is None else _champion(row)


async def has_active(tx: Transaction, intent: str, cluster: str, *, but: str) -> bool:
    """Whether another plan than `but` (its fingerprint) is active for such requests."""
    row = await tx.fetch_one(
        """SELECT 1 FROM champions WHERE intent = :intent AND cluster = :cluster
               AND status = 'active' AND fingerprint <> :but""",
        {"intent": intent, "cluster": cluster, "but": but},
    )
    return row is not None


async def teach(tx: Transaction, seen: Observed, tally: Tally, status: Status) -> None:
    """Let the plan of a turn serve such requests. What stands in its place is replaced, a damaged
    row too."""
    await tx.execute(
        """INSERT OR REPLACE INTO champions
               (version, intent, said, cluster, lang, plan_json, way, fingerprint, status, up,
                down, ran, broke, latency_ms, score, tools, families, taught_by, created_at,
                changed_at)
           VALUES (:version, :intent, :said, :cluster, :lang, :plan, :way, :fingerprint, :status,
                   :up, :down, :ran, :broke, :latency, :score, :tools, :families, :actor, :now,
                   :now)""",
        {
            "version": VERSION,
            "intent": seen.intent,
            "said": seen.said,
            "cluster": seen.cluster,
            "lang": seen.lang,
            "plan": dump_json(seen.plan.to_json()),
            "way": seen.way,
            "fingerprint": seen.fingerprint,
            "tools": seen.tools,
            "families": seen.families,
            "actor": seen.actor_id,
            "now": to_ts(seen.at),
            "status": status.value,
            **_counts(tally),
        },
    )


async def settle(
    tx: Transaction, champion_id: int, tally: Tally, status: Status, now: datetime
) -> None:
    """Keep what is known of a plan, and what it is by that."""
    await tx.execute(
        """UPDATE champions SET up = :up, down = :down, ran = :ran, broke = :broke,
                  latency_ms = :latency, score = :score, status = :status,
                  changed_at = CASE WHEN status = :status THEN changed_at ELSE :now END,
                  is_champion = CASE WHEN :status = 'active' THEN is_champion ELSE 0 END
           WHERE id = :id""",
        {"id": champion_id, "status": status.value, "now": to_ts(now), **_counts(tally)},
    )


async def resign(tx: Transaction, champion_id: int, seen: Observed) -> None:
    """The same plan was made anew with the tools as they are now."""
    await tx.execute(
        """UPDATE champions SET tools = :tools, families = :families, plan_json = :plan,
                  lang = :lang, why = '' WHERE id = :id""",
        {
            "id": champion_id,
            "tools": seen.tools,
            "families": seen.families,
            "plan": dump_json(seen.plan.to_json()),
            "lang": seen.lang,
        },
    )


async def crown(tx: Transaction, intent: str, cluster: str) -> int | None:
    """Choose the champion of a cluster anew; its row, None when nothing is active."""
    rows = await tx.fetch_all(
        """SELECT * FROM champions WHERE intent = :intent AND cluster = :cluster
               AND version <= :version""",
        {"intent": intent, "cluster": cluster, "version": VERSION},
    )
    found = [row for one in rows if (row := _champion(one)) is not None]
    chosen = champions.crowned([row.ranked for row in found])
    if [row.id for row in found if row.is_champion] != ([] if chosen is None else [chosen]):
        await tx.execute(
            """UPDATE champions SET is_champion = (id = :chosen)
               WHERE intent = :intent AND cluster = :cluster""",
            {"intent": intent, "cluster": cluster, "chosen": chosen or 0},
        )
    return chosen


async def note(
    tx: Transaction, champion_id: int, why: str, *, used_at: datetime | None = None
) -> None:
    """Keep what the last look-up of a row came to, and when it served."""
    await tx.execute(
        """UPDATE champions SET why = :why, used_at = COALESCE(:used, used_at)
           WHERE id = :id""",
        {"id": champion_id, "why": why, "used": None if used_at is None else to_ts(used_at)},
    )


async def listed(
    tx: Transaction, *, status: Status | None = None, limit: int = 100, offset: int = 0
) -> list[Champion]:
    """Rows as they are shown: active ones first, the champion of a cluster before the others."""
    rows = await tx.fetch_all(
        """SELECT * FROM champions WHERE :status IS NULL OR status = :status
           ORDER BY status, is_champion DESC, COALESCE(used_at, created_at) DESC, id DESC
           LIMIT :limit OFFSET :offset""",
        {"status": None if status is None else status.value, "limit": limit, "offset": offset},
    )
    return [row for one in rows if (row := _champion(one)) is not None]


async def count(tx: Transaction) -> dict[Status, int]:
    """How many rows of each status; all three are there."""
    rows = await tx.fetch_all("SELECT status, COUNT(*) AS n FROM champions GROUP BY status")
    found = {str(row["status"]): int(row["n"]) for row in rows}
    return {status: found.get(status.value, 0) for status in Status}


async def delete(tx: Transaction, champion_id: int) -> bool:
    """Forget one plan; the next best of its cluster takes its place."""
    row = await tx.fetch_one(
        "DELETE FROM champions WHERE id = :id RETURNING intent, cluster", {"id": champion_id}
    )
    if row is None:
        return False
    await crown(tx, row["intent"], row["cluster"])
    return True


async def flush(tx: Transaction) -> int:
    """Forget all of L1: plans, observations and what keeps plans away; how many plans."""
    await observations.flush(tx)
    await antis.flush(tx)
    return await tx.execute("DELETE FROM champions")


async def forget(tx: Transaction, actor_id: str) -> int:
    """Nothing of this person is kept in L1 any more; how many rows. A plan that others had
    succeed too goes on in the name of one of them."""
    gone = await observations.forget(tx, actor_id) + await antis.forget(tx, actor_id)
    for row in await tx.fetch_all(
        "SELECT * FROM champions WHERE taught_by = :actor", {"actor": actor_id}
    ):
        key = {name: row[name] for name in ("intent", "cluster", "fingerprint")}
        other = await tx.fetch_one(
            """SELECT actor_id FROM observations WHERE intent = :intent AND cluster = :cluster
                   AND fingerprint = :fingerprint AND verdict <> 'down' ORDER BY id LIMIT 1""",
            key,
        )
        if other is None:
            gone += await delete(tx, int(row["id"]))
        else:
            await tx.execute(
                "UPDATE champions SET taught_by = :other WHERE id = :id",
                {"id": row["id"], "other": other["actor_id"]},
            )
    return gone


async def prune(tx: Transaction, now: datetime, tools: Sequence[str]) -> int:
    """Forget by age (S12): what was not used for long, what was demoted long ago, what kept a plan
    away long enough, and all whose tools are gone. How many plans went."""
    await antis.prune(tx, now)
    await observations.prune(tx, tools)
    rows = await tx.fetch_all(
        """SELECT *, (CASE WHEN status = 'demoted' THEN changed_at < :demoted
                           ELSE COALESCE(used_at, created_at) < :unused END) AS old
           FROM champions""",
        {
            "demoted": to_ts(now - champions.DEMOTED_FOR),
            "unused": to_ts(now - champions.UNUSED_FOR),
        },
    )
    known, gone = set(tools), 0
    for row in rows:
        kept = _champion(row)
        if kept is None or row["old"] or not set(kept.way.split(" > ")) <= known:
            gone += await delete(tx, int(row["id"]))
    return gone


def _counts(tally: Tally) -> dict[str, float]:
    return {
        "up": tally.up,
        "down": tally.down,
        "ran": tally.ran,
        "broke": tally.broke,
        "latency": tally.latency_ms,
        "score": champions.score(tally),
    }


def _champion(row: Row) -> Champion | None:
    """A row as it is read; None when it is damaged, which is logged and no error."""
    try:
        plan = Plan.from_json(load_object(row["plan_json"]))
        if not plan.steps:
            raise ValueError("a plan without steps")
        up, down, ran, broke = counts = [int(row[n]) for n in ("up", "down", "ran", "broke")]
        if not 0 <= min(counts) <= max(counts) < _MOST_COUNTED:
            raise ValueError("no counts")
        return Champion(
            intent=as_text(row["intent"]),
            said=as_text(row["said"]),
            cluster=as_text(row["cluster"]),
            lang=as_text(row["lang"]),
            plan=plan,
            way=as_text(row["way"]),
            fingerprint=as_text(row["fingerprint"]),
            status=Status(row["status"]),
            is_champion=bool(row["is_champion"]),
            tally=Tally(up, down, ran, broke, float(row["latency_ms"])),
            tools=as_text(row["tools"]),
            families=as_text(row["families"]),
            taught_by=as_text(row["taught_by"]),
            why=as_text(row["why"]),
            created_at=from_ts(row["created_at"]),
            used_at=None if row["used_at"] is None else from_ts(row["used_at"]),
            changed_at=from_ts(row["changed_at"]),
            id=int(row["id"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, OSError, CallRefused):
        log.warning("damaged champion passed over", extra={"row": row["id"]})
        return None
