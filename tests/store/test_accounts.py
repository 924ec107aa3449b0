"""Accounts in the store: one person's, replaced by name, and gone with their secret."""

from __future__ import annotations

from core.accounts import AccountKind
from core.messages import Role
from core.store import accounts, actors, credentials
from core.store.leaving import revoke


async def test_account_of_another_person_is_none(stores, clock) -> None:
    async with stores.main.write() as tx:
        ada = (await actors.ensure_local_host(tx, clock)).id
        bea = (await actors.add(tx, Role.GUEST, "Bea", clock)).id
        await accounts.put(
            tx, stores.vault, bea, "Mia", AccountKind.CALENDAR,
            {"url": "https://dav.example/", "user": "bea"}, "s", clock.now(),
        )  # fmt: skip

        assert await accounts.of_actor(tx, ada) == []
        assert not await accounts.delete(tx, ada, "Mia")
        assert [a.name for a in await accounts.of_actor(tx, bea)] == ["Mia"]

        await revoke(tx, bea, clock.now())
        assert await accounts.of_actor(tx, bea) == []
        assert await credentials.names(tx, bea) == []


async def test_put_twice_replaces_and_delete_forgets_the_secret(stores, clock) -> None:
    async with stores.main.write() as tx:
        ada = (await actors.ensure_local_host(tx, clock)).id
        for user, secret in (("a", "one"), ("b", "two")):
            await accounts.put(
                tx, stores.vault, ada, "Agenda" if user == "a" else "AGENDA",
                AccountKind.CALENDAR, {"url": "https://dav.example/", "user": user}, secret,
                clock.now(),
            )  # fmt: skip

        (kept,) = await accounts.of_actor(tx, ada)
        assert kept.values["user"] == "b"
        assert await accounts.secret_of(tx, stores.vault, kept) == "two"
        assert await accounts.delete(tx, ada, "agenda")
        assert not await accounts.delete(tx, ada, "agenda")
        assert await credentials.names(tx, ada) == []
