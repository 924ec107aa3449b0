"""A new key for everything that is locked."""

from __future__ import annotations

from pathlib import Path

from core.store import credentials, inbox, secret_key
from core.store.credentials import Vault
from core.store.database import Database


async def rotate(database: Database, private_dir: Path) -> int:
    """Lock all that is locked with a new key and throw the old one away; how many values.

    Only while no engine runs. Cut short at any moment it leaves every value readable, and the
    next call goes on. What did not open before still does not. Raises `KeyUnusable`.
    """
    keys = secret_key.load_or_create(private_dir)
    if len(keys) == 1:
        keys = (secret_key.new_key(), *keys)
        secret_key.replace_keys(private_dir, keys)
    vault = Vault(private_dir)
    async with database.write() as tx:
        moved = await credentials.relock(tx, vault) + await inbox.relock(tx, vault)
    secret_key.replace_keys(private_dir, keys[:1])
    return moved
