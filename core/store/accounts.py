"""The accounts that people connected: what is known of each but its secret. Owns `accounts`.

The secret lies in the vault (`core.store.credentials`) under the account's `secret_name`; it is
written and forgotten together with the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from core.accounts import HOME, Account, AccountKind, clean_name, clean_values, secret_field
from core.clock import to_ts
from core.store import credentials
from core.store.credentials import Vault
from core.store.database import Row, Transaction
from core.store.encoding import dump_json, load_object

MOST = 20
"""Of one person."""


async def put(
    tx: Transaction,
    vault: Vault,
    actor_id: str,
    name: str,
    kind: AccountKind,
    values: Mapping[str, object],
    secret: str,
    now: datetime,
) -> Account:
    """Keep an account with its secret, in the place of one of the same name. Raises
    `AccountInvalid`, `ValueError` for a secret that is empty or too long or an account too many,
    and `KeyUnusable`."""
    account = Account(actor_id, clean_name(name), kind, clean_values(kind, values))
    mine = await of_actor(tx, actor_id)
    if len(mine) >= MOST and find(mine, account.name) is None:
        raise ValueError(f"more than {MOST} accounts")
    await delete(tx, actor_id, account.name)
    await tx.execute(
        """INSERT INTO accounts (actor_id, key, name, kind, values_json, updated_at)
           VALUES (:actor, :key, :name, :kind, :values, :now)""",
        {
            "actor": actor_id,
            "key": account.name.casefold(),
            "name": account.name,
            "kind": kind.value,
            "values": dump_json(dict(account.values)),
            "now": to_ts(now),
        },
    )
    await credentials.put(tx, vault, actor_id, account.secret_name, secret, now)
    return account


async def allow_home(
    tx: Transaction, actor_id: str, name: str, home: str, now: datetime
) -> Account | None:
    """Let the login of an account go to one more server, in the place of one allowed before. None
    when there is no such account; raises `AccountInvalid` for what cannot be one."""
    account = next((a for a in await of_actor(tx, actor_id) if a.name == name), None)
    if account is None:
        return None
    values = clean_values(account.kind, {**account.values, HOME: home})
    await tx.execute(
        """UPDATE accounts SET values_json = :values, updated_at = :now
           WHERE actor_id = :actor AND key = :key""",
        {
            "actor": actor_id,
            "key": account.name.casefold(),
            "values": dump_json(dict(values)),
            "now": to_ts(now),
        },
    )
    return replace(account, values=values)


async def of_actor(tx: Transaction, actor_id: str) -> list[Account]:
    """A person's accounts in the order of their names. One of a later version is passed over."""
    rows = await tx.fetch_all(
        "SELECT * FROM accounts WHERE actor_id = :actor ORDER BY key", {"actor": actor_id}
    )
    return [account for row in rows if (account := _account(row)) is not None]


async def kinds_of(tx: Transaction, actor_id: str) -> frozenset[AccountKind]:
    return frozenset(account.kind for account in await of_actor(tx, actor_id))


async def secret_of(tx: Transaction, vault: Vault, account: Account) -> str | None:
    """None when it was forgotten. Raises `SecretUnreadable`. The value goes to the child that
    needs it and nowhere else."""
    return await credentials.read(tx, vault, account.actor_id, account.secret_name)


async def delete(tx: Transaction, actor_id: str, name: str) -> bool:
    """Forget an account and its secret; False when there was none of that name."""
    key = " ".join(name.split()).casefold()
    changed = await tx.execute(
        "DELETE FROM accounts WHERE actor_id = :actor AND key = :key",
        {"actor": actor_id, "key": key},
    )
    await credentials.delete(tx, actor_id, f"account:{key}")
    return changed == 1


async def forget_all(tx: Transaction, actor_id: str) -> None:
    """Forget every account of a person; their secrets are `credentials.forget_all`'s."""
    await tx.execute("DELETE FROM accounts WHERE actor_id = :actor", {"actor": actor_id})


def find(accounts: Sequence[Account], said: str) -> Account | None:
    """The account that a person means: by its name, else by its address or user, else by the one
    name that begins so. None when there is none, or more than one."""
    wanted = " ".join(said.split()).casefold()
    for account in accounts:
        if account.name.casefold() == wanted:
            return account
    for key in ("address", "user"):
        found = [a for a in accounts if str(a.values.get(key, "")).casefold() == wanted]
        if len(found) == 1:
            return found[0]
    found = [a for a in accounts if wanted and a.name.casefold().startswith(wanted)]
    return found[0] if len(found) == 1 else None


def with_secret(account: Account, secret: str) -> dict[str, object]:
    """An account as a program reads it."""
    return {
        "name": account.name,
        "kind": account.kind.value,
        **account.values,
        secret_field(account.kind): secret,
    }


def _account(row: Row) -> Account | None:
    try:
        kind = AccountKind(row["kind"])
        values = load_object(row["values_json"])
    except ValueError:
        return None
    return Account(row["actor_id"], row["name"], kind, values)
