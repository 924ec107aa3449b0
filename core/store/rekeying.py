"""How a table follows a chat that has another id, or a topic that is gone; each owner does it for
its own. The keys are those of conversations (`ChatAddress.key`): a chat's ends in a colon.
"""

from __future__ import annotations

from core.store.database import Transaction


def is_chat(key: str) -> bool:
    """Whether the key is that of a chat as a whole, with which those of its topics begin."""
    return key.endswith(":")


async def rekey(tx: Transaction, table: str, column: str, old: str, new: str) -> int:
    """Let what stands under `old` stand under `new`: of a chat with all its topics, of a topic
    alone; how many rows changed. Done again it changes nothing more."""
    return await tx.execute(
        f"""UPDATE {table} SET {column} = :new || substr({column}, length(:old) + 1)
            WHERE {column} = :old OR (:whole AND substr({column}, 1, length(:old)) = :old)""",  # noqa: S608 - names from the code
        {"old": old, "new": new, "whole": is_chat(old)},
    )
