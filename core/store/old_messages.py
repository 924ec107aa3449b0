"""Messages that are out, when their words are to be forgotten.

Owns `outbox` together with `core.store.outbox`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from core.clock import to_ts
from core.store import outbox
from core.store.database import Transaction
from core.store.encoding import dump_json, load_object

# What of a body names no words.
_WORDLESS = ("lang", "turn_id", "final_kind", "secret", "settles", "redraws")

_ABOUT = """
    created_at <= :before AND key IS NOT :card AND (
        EXISTS (SELECT 1 FROM json_each(:chats)
                WHERE substr(chat_key, 1, length(value)) = value)
        OR substr(key, 1, instr(key, ':') - 1) IN (SELECT value FROM json_each(:turns)))"""


async def forget(
    tx: Transaction,
    chats: Collection[str],
    turn_ids: Collection[str],
    before: datetime,
    *,
    but: str | None,
) -> int:
    """Take the words from what was said by then in these chats (`channel:chat:`, all their
    topics) or about these turns, but for the row `but`; how many messages are still to go out and
    keep theirs. Where a message stands stays known, and whether it asked for a secret."""
    about = {
        "before": to_ts(before),
        "card": but,
        "chats": dump_json(list(chats)),
        "turns": dump_json(list(turn_ids)),
    }
    rows = await tx.fetch_all(
        f"""SELECT key, state, body FROM outbox
            WHERE body <> '{{}}' AND {_ABOUT}""",  # noqa: S608
        about,
    )
    waiting = [row for row in rows if row["state"] in {"pending", "sending"}]
    for row in rows:
        if row not in waiting and (body := load_object(row["body"])).get("blocks") != []:
            kept = {name: body[name] for name in _WORDLESS if name in body}
            await outbox.rewrite(tx, row["key"], {**kept, "blocks": []})
    return len(waiting)


async def waits(tx: Transaction, actor_id: str, chats: Collection[str], before: datetime) -> bool:
    """Whether something of then is still to go out in these chats, or about their turns."""
    row = await tx.fetch_one(
        """SELECT 1 FROM outbox
           WHERE state IN ('pending', 'sending') AND created_at <= :before AND (
               EXISTS (SELECT 1 FROM json_each(:chats)
                       WHERE substr(chat_key, 1, length(value)) = value)
               OR substr(key, 1, instr(key, ':') - 1) IN (
                   SELECT id FROM turns WHERE actor_id = :actor)) LIMIT 1""",
        {"before": to_ts(before), "chats": dump_json(list(chats)), "actor": actor_id},
    )
    return row is not None
