"""Plans that worked, by the words that asked for them (L0). Owns `plan_cache` of `memory.db`.

Rows hold what a person wrote: they are read for their own actor, or, when they hold no value at
all, for everybody. What may be kept and what may serve is `core.levels.reuse`'s to say.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.clock import from_ts, to_ts
from core.errors import CallRefused
from core.levels import reuse
from core.levels.edition import words_edition
from core.levels.reuse import Lesson
from core.levels.tracing import Binding
from core.levels.vectors import Vector, packed, unpacked
from core.plan import Plan
from core.store.database import Row, Transaction
from core.store.encoding import as_text, dump_json, load_json, load_object
from core.turn_state import Remembered

log = logging.getLogger(__name__)

VERSION = 1
MAX_ROWS = 500
TRIMMED_EVERY = 50
"""So many new rows may stand above `MAX_ROWS` until the next trimming."""


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """`lesson` as it was learnt; `why` says what its last look-up came to. `vector` is that of its
    text by `embedder`: None before it was asked, or when what is stored is damaged."""

    id: int
    actor_id: str
    lang: str
    lesson: Lesson
    approved: bool
    uses: int
    learnt_at: datetime
    used_at: datetime | None
    why: str
    turn_id: str
    embedder: str = ""
    vector: Vector | None = None

    def mark(self, how: str) -> Remembered:
        """What a turn that this row serves keeps of it."""
        return Remembered(self.id, self.turn_id, how)


async def keep(
    tx: Transaction, actor_id: str, lang: str, lesson: Lesson, *, turn_id: str, now: datetime
) -> int:
    """Keep a lesson; its row's id. What this actor's same words had before is replaced, an
    approval with it stays, and so does the vector of these words."""
    row = await tx.fetch_one(
        """INSERT INTO plan_cache
               (version, actor_id, lang, text, exact, shape, wording, meaning, plan_json,
                bindings_json, values_json, tools, families, changes, why_exact, turn_id,
                learnt_at, request, edition)
           VALUES (:version, :actor, :lang, :text, :exact, :shape, :wording, :meaning, :plan,
                   :bindings, :values, :tools, :families, :changes, :why_exact, :turn, :now,
                   :request, :edition)
           ON CONFLICT (actor_id, exact) DO UPDATE SET
               version = excluded.version, lang = excluded.lang, text = excluded.text,
               shape = excluded.shape, wording = excluded.wording, meaning = excluded.meaning,
               plan_json = excluded.plan_json, bindings_json = excluded.bindings_json,
               values_json = excluded.values_json, tools = excluded.tools,
               families = excluded.families, changes = excluded.changes,
               why_exact = excluded.why_exact, turn_id = excluded.turn_id,
               learnt_at = excluded.learnt_at, why = '', served_turn = '',
               request = excluded.request, edition = excluded.edition
           RETURNING id""",
        {
            "version": VERSION,
            "actor": actor_id,
            "lang": lang,
            "text": lesson.text,
            "exact": lesson.exact,
            "shape": lesson.shape,
            "wording": lesson.wording,
            "meaning": lesson.meaning,
            "plan": dump_json(lesson.plan.to_json()),
            "bindings": dump_json([one.to_json() for one in lesson.bindings]),
            "values": dump_json([list(value) for value in lesson.values]),
            "tools": lesson.tools,
            "families": lesson.families,
            "changes": lesson.changes,
            "why_exact": lesson.why_exact,
            "turn": turn_id,
            "now": to_ts(now),
            "request": lesson.request,
            "edition": words_edition(),
        },
    )
    assert row is not None  # noqa: S101 - the statement returns it
    if int(row["id"]) % TRIMMED_EVERY == 0:
        await _trim(tx)
    return int(row["id"])


async def candidates(
    tx: Transaction, actor_id: str, *, exact: str, shape: str, wording: str, meaning: str
) -> Iterator[StoredPlan]:
    """Rows that may serve: the same words first, then the same shape, then the same meaning;
    among each, approved and often used ones first. Rows of others only where they hold no value.
    Each is read when it is asked for, which may be after the transaction.

    A damaged row, or one of a later version, is passed over.
    """
    rows = await tx.fetch_all(
        """SELECT *, CASE WHEN exact = :exact THEN 0
                          WHEN meaning = :meaning AND :meaning <> '' THEN 2 ELSE 1 END AS nearness
           FROM plan_cache
           WHERE version <= :version AND (
               (exact = :exact AND (actor_id = :actor OR meaning <> ''))
               OR (actor_id = :actor AND shape <> '' AND shape = :shape AND edition = :edition)
               OR (actor_id = :actor AND wording <> '' AND wording = :wording
                   AND edition = :edition)
               OR (meaning <> '' AND meaning = :meaning AND edition = :edition))
           ORDER BY nearness, actor_id <> :actor, approved DESC, uses DESC, id
           LIMIT 20""",
        {
            "version": VERSION,
            "edition": words_edition(),
            "actor": actor_id,
            "exact": exact,
            "shape": shape,
            "wording": wording,
            "meaning": meaning,
        },
    )
    return (plan for row in rows if (plan := _plan(row)) is not None)


async def get(tx: Transaction, plan_id: int) -> StoredPlan | None:
    row = await tx.fetch_one("SELECT * FROM plan_cache WHERE id = :id", {"id": plan_id})
    return None if row is None else _plan(row)


async def of_turn(tx: Transaction, actor_id: str, turn_id: str) -> StoredPlan | None:
    """This actor's row that a turn taught, or that served it as the last one; None when there is
    none, or another turn taught it since."""
    row = await tx.fetch_one(
        """SELECT * FROM plan_cache WHERE actor_id = :actor AND turn_id = :turn
           UNION ALL
           SELECT * FROM plan_cache WHERE actor_id = :actor AND served_turn = :turn
           LIMIT 1""",
        {"actor": actor_id, "turn": turn_id},
    )
    return None if row is None else _plan(row)


async def of_text(tx: Transaction, actor_id: str, exact: str) -> StoredPlan | None:
    row = await tx.fetch_one(
        "SELECT * FROM plan_cache WHERE actor_id = :actor AND exact = :exact",
        {"actor": actor_id, "exact": exact},
    )
    return None if row is None else _plan(row)


async def listed(
    tx: Transaction,
    *,
    actor_id: str | None = None,
    approved: bool | None = None,
    limit: int = 100,
    offset: int = 0,
) -> list[StoredPlan]:
    """Rows as they are shown: approved first, then the last used."""
    rows = await tx.fetch_all(
        """SELECT * FROM plan_cache WHERE (:actor IS NULL OR actor_id = :actor)
               AND (:approved IS NULL OR approved = :approved)
           ORDER BY approved DESC, COALESCE(used_at, learnt_at) DESC, id DESC
           LIMIT :limit OFFSET :offset""",
        {"actor": actor_id, "approved": approved, "limit": limit, "offset": offset},
    )
    return [plan for row in rows if (plan := _plan(row)) is not None]


async def count(tx: Transaction) -> tuple[int, int]:
    """(approved, learnt by themselves)."""
    row = await tx.fetch_one(
        "SELECT COALESCE(SUM(approved), 0) AS yes, COUNT(*) AS every FROM plan_cache"
    )
    assert row is not None  # noqa: S101 - an aggregate has one row
    return int(row["yes"]), int(row["every"]) - int(row["yes"])


async def note_used(tx: Transaction, by: Remembered, now: datetime, *, turn_id: str) -> bool:
    """Count one use, by this turn; the same turn counts once. False: the row is gone, was taught
    anew since, or has counted it."""
    changed = await tx.execute(
        """UPDATE plan_cache
           SET uses = uses + 1, used_at = :now, why = :why, served_turn = :served
           WHERE id = :id AND turn_id = :taught AND served_turn <> :served""",
        {
            "id": by.row,
            "taught": by.taught_by,
            "now": to_ts(now),
            "why": by.how,
            "served": turn_id,
        },
    )
    return changed == 1


async def forget_failed(tx: Transaction, by: Remembered, actor_id: str) -> bool:
    """Delete the row that served, if it is this actor's and still teaches the same."""
    changed = await tx.execute(
        "DELETE FROM plan_cache WHERE id = :id AND turn_id = :taught AND actor_id = :actor",
        {"id": by.row, "taught": by.taught_by, "actor": actor_id},
    )
    return changed == 1


async def note_refused(tx: Transaction, plan_id: int, why: str) -> None:
    """Keep why a row did not serve when it was looked at last."""
    await tx.execute(
        "UPDATE plan_cache SET why = :why WHERE id = :id", {"id": plan_id, "why": why}
    )


async def retire(tx: Transaction, plan_id: int, why: str) -> None:
    """Close a row whose tools are not what they were: it serves no more, and stays with its reason
    until the same words teach it anew or it is pruned."""
    await tx.execute(
        """UPDATE plan_cache SET why = :why, tools = '', shape = '', wording = '', meaning = '',
                  exact = 'retired:' || id
           WHERE id = :id""",
        {"id": plan_id, "why": why},
    )


async def read_again(tx: Transaction) -> int:
    """Read the requests of rows of another edition of the word list by the one of today, so that
    none serves what only the earlier one held for the same; how many there were. What is beyond
    `MAX_ROWS` goes first: reading a row takes a millisecond, and the start waits."""
    await _trim(tx)
    edition = words_edition()
    rows = await tx.fetch_all(
        "SELECT * FROM plan_cache WHERE edition <> :edition", {"edition": edition}
    )
    for row in rows:
        plan = _plan(row)
        lesson = None if plan is None else reuse.read_again(plan.lesson)
        await tx.execute(
            """UPDATE plan_cache SET edition = :edition, shape = :shape, wording = :wording,
                   meaning = :meaning WHERE id = :id""",
            {
                "id": row["id"],
                "edition": edition,
                "shape": lesson.shape if lesson else "",
                "wording": lesson.wording if lesson else "",
                "meaning": lesson.meaning if lesson else "",
            },
        )
    return len(rows)


async def unmeasured(tx: Transaction, embedder: str, limit: int = 20) -> list[tuple[int, str]]:
    """(row, text) of plans that serve a meaning and have no vector of this embedder: the newest
    first."""
    rows = await tx.fetch_all(
        """SELECT id, text FROM plan_cache
           WHERE meaning <> '' AND (embedder <> :embedder OR vector IS NULL)
           ORDER BY id DESC LIMIT :limit""",
        {"embedder": embedder, "limit": limit},
    )
    return [(int(row["id"]), str(row["text"])) for row in rows]


async def measure(
    tx: Transaction, plan_id: int, text: str, vector: Vector | None, embedder: str
) -> None:
    """Keep the vector of a row's text; None takes away what is stored. A row that is gone, or has
    another text by now, is left alone."""
    await tx.execute(
        """UPDATE plan_cache SET vector = :vector, embedder = :embedder
           WHERE id = :id AND text = :text""",
        {
            "id": plan_id,
            "text": text,
            "vector": None if vector is None else packed(vector),
            "embedder": "" if vector is None else embedder,
        },
    )


async def texts_by_meaning(tx: Transaction) -> list[tuple[str, str]]:
    """(text, fingerprint of its plan) of the plans that serve a meaning."""
    rows = await tx.fetch_all("SELECT * FROM plan_cache WHERE meaning <> ''")
    found = [plan for row in rows if (plan := _plan(row)) is not None]
    return [(plan.lesson.text, plan.lesson.plan.fingerprint) for plan in found]


async def approve(tx: Transaction, plan_id: int, approved: bool) -> bool:
    """Pin a row, or take that back; False when it is gone."""
    sql = "UPDATE plan_cache SET approved = :approved WHERE id = :id"
    return await tx.execute(sql, {"id": plan_id, "approved": approved}) == 1


async def delete(tx: Transaction, plan_id: int) -> bool:
    return await tx.execute("DELETE FROM plan_cache WHERE id = :id", {"id": plan_id}) == 1


async def flush(tx: Transaction, *, actor_id: str | None = None) -> int:
    """Delete all rows, or all of one actor; how many there were."""
    return await tx.execute(
        "DELETE FROM plan_cache WHERE :actor IS NULL OR actor_id = :actor", {"actor": actor_id}
    )


async def prune(
    tx: Transaction, *, unused_before: datetime, stale_before: datetime, tools: Sequence[str]
) -> int:
    """Forget by age (S12): never used since `unused_before`, not used since `stale_before`, the
    least used beyond `MAX_ROWS`, and those whose tools are gone. Approved ones go by their tools
    only. How many went."""
    gone = await tx.execute(
        """DELETE FROM plan_cache WHERE approved = 0 AND (
               (used_at IS NULL AND learnt_at < :unused) OR used_at < :stale)""",
        {"unused": to_ts(unused_before), "stale": to_ts(stale_before)},
    )
    gone += await _trim(tx)
    known = set(tools)
    for row in await tx.fetch_all("SELECT * FROM plan_cache"):
        plan = _plan(row)
        if plan is None or not {step.tool for step in plan.lesson.plan.steps} <= known:
            gone += await delete(tx, int(row["id"]))
    return gone


async def _trim(tx: Transaction) -> int:
    """Forget what was used least beyond `MAX_ROWS`; how many rows."""
    return await tx.execute(
        """DELETE FROM plan_cache WHERE approved = 0 AND id NOT IN (
               SELECT id FROM plan_cache
               ORDER BY approved DESC, COALESCE(used_at, learnt_at) DESC, uses DESC
               LIMIT :most)""",
        {"most": MAX_ROWS},
    )


def _plan(row: Row) -> StoredPlan | None:
    """A row as it is read; None when it is damaged, which is logged and no error."""
    try:
        bindings: Any = load_json(row["bindings_json"])
        values: Any = load_json(row["values_json"])
        lesson = Lesson(
            text=as_text(row["text"]),
            plan=Plan.from_json(load_object(row["plan_json"])),
            bindings=tuple(Binding.from_json(one) for one in bindings),
            values=tuple((str(kind), str(text)) for kind, text in values),
            exact=as_text(row["exact"]),
            shape=as_text(row["shape"]),
            wording=as_text(row["wording"]),
            meaning=as_text(row["meaning"]),
            tools=as_text(row["tools"]),
            families=as_text(row["families"]),
            changes=bool(row["changes"]),
            why_exact=as_text(row["why_exact"]),
            request=as_text(row["request"]),
        )
        if not lesson.plan.steps or any(
            not 0 <= b.step < len(lesson.plan.steps) or not 0 <= b.value < len(lesson.values)
            for b in lesson.bindings
        ):
            raise ValueError("bindings lead nowhere")
        return StoredPlan(
            id=int(row["id"]),
            actor_id=as_text(row["actor_id"]),
            lang=as_text(row["lang"]),
            lesson=lesson,
            approved=bool(row["approved"]),
            uses=int(row["uses"]),
            learnt_at=from_ts(row["learnt_at"]),
            used_at=None if row["used_at"] is None else from_ts(row["used_at"]),
            why=as_text(row["why"]),
            turn_id=as_text(row["turn_id"]),
            embedder=str(row["embedder"]),
            vector=unpacked(row["vector"]),
        )
    except (ValueError, TypeError, KeyError, OverflowError, OSError, CallRefused):
        log.warning("damaged plan passed over", extra={"row": row["id"]})
        return None
