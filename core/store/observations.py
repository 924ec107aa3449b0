"""Turns whose plans worked, and how they were found (L1). Owns `observations` of `memory.db`.

A row holds no word of a person: the kind of request in words of the word list, and the plan
without its values where it had any.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from core.clock import from_ts, to_ts
from core.errors import CallRefused
from core.levels.champions import Tally, Verdict
from core.levels.vectors import Vector, packed, unpacked
from core.plan import Plan
from core.store.database import Row, Transaction
from core.store.encoding import as_text, dump_json, load_object

log = logging.getLogger(__name__)

VERSION = 1
MAX_ROWS = 5000
MAX_ALIKE = 200
"""Rows kept of one plan for one kind of request, so that what is asked all day leaves room."""

RECENT = 20
"""How many vectors a request is compared with."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One turn. `cluster` is empty where the plan is bound to values, and may serve nobody else;
    `level` is what proposed it; `latency_ms` of its steps; `exact` the hash of the
    words, as L0 has it."""

    turn_id: str
    actor_id: str
    lang: str
    intent: str
    said: str
    cluster: str
    plan: Plan
    way: str
    fingerprint: str
    tools: str
    families: str
    level: str
    latency_ms: int
    at: datetime
    verdict: Verdict = Verdict.RAN
    verdict_at: datetime | None = None
    exact: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class Alike:
    """Requests of a cluster: whether one was in the `same` words, and vectors of the newest."""

    same: bool = False
    vectors: tuple[Vector, ...] = ()


async def record(
    tx: Transaction, seen: Observed, *, embedder: str = "", vector: Vector | None = None
) -> bool:
    """Keep what a turn showed; False when it was kept before. The oldest beyond `MAX_ROWS` go, and
    of the same plan those without a vote beyond `MAX_ALIKE`."""
    added = await tx.execute(
        """INSERT INTO observations
               (version, turn_id, actor_id, lang, intent, said, cluster, plan_json, way,
                fingerprint, tools, families, level, latency_ms, at, exact, embedder, embedding)
           VALUES (:version, :turn, :actor, :lang, :intent, :said, :cluster, :plan, :way,
                   :fingerprint, :tools, :families, :level, :latency, :at, :exact, :embedder,
                   :embedding)
           ON CONFLICT (turn_id) DO NOTHING""",
        {
            "version": VERSION,
            "turn": seen.turn_id,
            "actor": seen.actor_id,
            "lang": seen.lang,
            "intent": seen.intent,
            "said": seen.said,
            "cluster": seen.cluster,
            "plan": dump_json(seen.plan.to_json()),
            "way": seen.way,
            "fingerprint": seen.fingerprint,
            "tools": seen.tools,
            "families": seen.families,
            "level": seen.level,
            "latency": seen.latency_ms,
            "at": to_ts(seen.at),
            "exact": seen.exact,
            "embedder": embedder if vector is not None else "",
            "embedding": None if vector is None else packed(vector),
        },
    )
    if not added:
        return False
    await tx.execute(
        """DELETE FROM observations WHERE id <= (SELECT MAX(id) FROM observations) - :most
               OR (verdict = '' AND intent = :intent AND fingerprint = :fingerprint AND id <= (
                   SELECT id FROM observations
                   WHERE intent = :intent AND fingerprint = :fingerprint
                   ORDER BY id DESC LIMIT 1 OFFSET :alike))""",
        {
            "most": MAX_ROWS,
            "alike": MAX_ALIKE,
            "intent": seen.intent,
            "fingerprint": seen.fingerprint,
        },
    )
    return True


async def of_turn(tx: Transaction, turn_id: str) -> Observed | None:
    """What a turn showed; None when it is forgotten, damaged, or of a later version."""
    row = await tx.fetch_one(
        "SELECT * FROM observations WHERE turn_id = :turn AND version <= :version",
        {"turn": turn_id, "version": VERSION},
    )
    return None if row is None else _observed(row)


async def judge(tx: Transaction, seen: Observed, verdict: Verdict, now: datetime) -> None:
    """Keep how a turn was found, in the place of what was kept before."""
    await tx.execute(
        "UPDATE observations SET verdict = :verdict, verdict_at = :now WHERE id = :id",
        {"id": seen.id, "verdict": verdict.value, "now": to_ts(now)},
    )


async def tally(tx: Transaction, intent: str, cluster: str, fingerprint: str) -> Tally:
    """What all turns of one plan come to."""
    rows = await tx.fetch_all(
        """SELECT verdict, COUNT(*) AS n, AVG(latency_ms) AS latency FROM observations
           WHERE intent = :intent AND fingerprint = :fingerprint AND cluster = :cluster
             AND verdict <> 'anew'
           GROUP BY verdict""",
        {"intent": intent, "cluster": cluster, "fingerprint": fingerprint},
    )
    found = {str(row["verdict"]): int(row["n"]) for row in rows}
    every = sum(found.values())
    spent = sum(float(row["latency"] or 0) * int(row["n"]) for row in rows)
    return Tally(
        up=found.get(Verdict.UP, 0),
        down=found.get(Verdict.DOWN, 0),
        ran=found.get(Verdict.RAN, 0),
        latency_ms=spent / every if every else 0.0,
    )


async def fails(tx: Transaction, intent: str, fingerprint: str) -> dict[str, int]:
    """👎 of each person since anybody's last 👍."""
    rows = await tx.fetch_all(
        """SELECT actor_id, COUNT(*) AS n FROM observations
           WHERE intent = :intent AND fingerprint = :fingerprint AND verdict = 'down'
             AND verdict_at > COALESCE((
                 SELECT MAX(verdict_at) FROM observations
                 WHERE intent = :intent AND fingerprint = :fingerprint AND verdict = 'up'), 0)
           GROUP BY actor_id""",
        {"intent": intent, "fingerprint": fingerprint},
    )
    return {str(row["actor_id"]): int(row["n"]) for row in rows}


async def fails_of(
    tx: Transaction, actor_id: str, intent: str, fingerprint: str
) -> tuple[int, datetime | None]:
    """👎 of one person since their own last 👍, and when the last of them was given."""
    row = await tx.fetch_one(
        """SELECT COUNT(*) AS n, MAX(verdict_at) AS last FROM observations
           WHERE intent = :intent AND fingerprint = :fingerprint AND actor_id = :actor
             AND verdict = 'down' AND verdict_at > COALESCE((
                 SELECT MAX(verdict_at) FROM observations
                 WHERE intent = :intent AND fingerprint = :fingerprint AND actor_id = :actor
                   AND verdict = 'up'), 0)""",
        {"actor": actor_id, "intent": intent, "fingerprint": fingerprint},
    )
    if row is None or row["last"] is None:
        return 0, None
    return int(row["n"]), from_ts(row["last"])


async def alike(tx: Transaction, intent: str, cluster: str, embedder: str, exact: str) -> Alike:
    """What a request of a cluster may be compared with: its newest ones that nobody disliked, as
    far as this embedder measured them, and whether one had the very words (`exact`)."""
    rows = await tx.fetch_all(
        """SELECT exact = :exact AS same, embedder, embedding FROM observations
           WHERE intent = :intent AND cluster = :cluster AND verdict <> 'down'
             AND (exact = :exact OR embedder = :embedder)
           ORDER BY exact = :exact DESC, id DESC LIMIT :most""",
        {
            "intent": intent,
            "cluster": cluster,
            "embedder": embedder,
            "exact": exact,
            "most": RECENT,
        },
    )
    found = (unpacked(row["embedding"]) for row in rows if row["embedder"] == embedder)
    same = any(row["same"] for row in rows)
    return Alike(same, () if same else tuple(vector for vector in found if vector is not None))


async def listed(tx: Transaction, *, limit: int = 100, offset: int = 0) -> list[Observed]:
    """Rows as they are shown, the newest first."""
    rows = await tx.fetch_all(
        "SELECT * FROM observations ORDER BY id DESC LIMIT :limit OFFSET :offset",
        {"limit": limit, "offset": offset},
    )
    return [seen for row in rows if (seen := _observed(row)) is not None]


async def count(tx: Transaction) -> int:
    row = await tx.fetch_one("SELECT COUNT(*) AS n FROM observations")
    return 0 if row is None else int(row["n"])


async def delete(tx: Transaction, observation_id: int) -> bool:
    sql = "DELETE FROM observations WHERE id = :id"
    return await tx.execute(sql, {"id": observation_id}) == 1


async def flush(tx: Transaction) -> int:
    return await tx.execute("DELETE FROM observations")


async def forget(tx: Transaction, actor_id: str) -> int:
    """Nothing of this person is kept here any more; how much was."""
    return await tx.execute("DELETE FROM observations WHERE actor_id = :a", {"a": actor_id})


async def prune(tx: Transaction, tools: Sequence[str]) -> int:
    """Forget what ran with tools that are gone; how many rows."""
    known, gone = set(tools), 0
    for row in await tx.fetch_all("SELECT DISTINCT way FROM observations"):
        if not set(str(row["way"]).split(" > ")) <= known:
            gone += await tx.execute(
                "DELETE FROM observations WHERE way = :way", {"way": row["way"]}
            )
    return gone


def _observed(row: Row) -> Observed | None:
    """A row as it is read; None when it is damaged, which is logged and no error."""
    try:
        return Observed(
            turn_id=as_text(row["turn_id"]),
            actor_id=as_text(row["actor_id"]),
            lang=as_text(row["lang"]),
            intent=as_text(row["intent"]),
            said=as_text(row["said"]),
            cluster=as_text(row["cluster"]),
            plan=Plan.from_json(load_object(row["plan_json"])),
            way=as_text(row["way"]),
            fingerprint=as_text(row["fingerprint"]),
            tools=as_text(row["tools"]),
            families=as_text(row["families"]),
            level=as_text(row["level"]),
            latency_ms=int(row["latency_ms"]),
            at=from_ts(row["at"]),
            verdict=Verdict(row["verdict"]),
            verdict_at=None if row["verdict_at"] is None else from_ts(row["verdict_at"]),
            exact=as_text(row["exact"]),
            id=int(row["id"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, OSError, CallRefused):
        log.warning("damaged observation passed over", extra={"row": row["id"]})
        return None
