"""How a table follows a chat that has another id from now on; each owner does it for its own."""

from __future__ import annotations

from core.store.database import Transaction


async def rekey(tx: Transaction, table: str, column: str, old: str, new: str) -> int:
    """Let what stands under keys that begin with `old` stand under `new`; how many rows changed.

    The keys are those of conversations (`ChatAddress.key`), whose topic goes along. Done again it
    changes nothing more.
    """
    return await tx.execute(
        f"""UPDATE {table} SET {column} = :new || substr({column}, length(:old) + 1)
            WHERE substr({column}, 1, length(:old)) = :old""",  # noqa: S608 - names from the code
        {"old": old, "new": new},
    )
