"""The accounts that a call is given: the person's own, of the kinds that the manifest names.

Secrets are opened as late as can be, stand in the call document alone, and are searched for in
what comes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.accounts import AccountKind
from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode
from core.execution.context import TurnContext
from core.messages import Role
from core.store import accounts
from core.store.stores import Stores

ARGUMENT = "account"
"""The argument in which a person may name one of their accounts."""


@dataclass(frozen=True, slots=True)
class Opened:
    """`told`: the part of a call document that the program reads and the broker goes by.
    `secrets`: what is to be masked in whatever comes back."""

    told: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)

    def into(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The call document with the accounts in it."""
        if not self.told:
            return dict(document)
        private = [*document.get("private_hosts", ()), *self.told["private_hosts"]]
        masks = [*document.get("masks", ()), *self.secrets.values()]
        return {**document, **self.told, "private_hosts": private, "masks": masks}


async def opened(
    stores: Stores, context: TurnContext, manifest: Manifest, args: Mapping[str, Any]
) -> Opened:
    """The accounts of this call with their secrets; nothing when its manifest names none.

    The one that `args` names, else all of the kinds that can be used. The host's servers may be
    inside; a guest's only where the host has granted it. Raises `CallRefused`: `needs_credentials`
    for a kind that is needed and not there, or whose secret is gone; `not_found` for a name that
    is none of theirs; and `SecretUnreadable`.
    """
    if not manifest.used_accounts:
        return Opened()
    async with stores.main.read() as tx:
        mine = await accounts.of_actor(tx, context.actor.id)
        fit = [account for account in mine if account.kind in manifest.used_accounts]
        said = args.get(ARGUMENT)
        if isinstance(said, str) and said.strip():
            one = accounts.find(fit, said)
            if one is None:
                names = ", ".join(account.name for account in fit) or "none"
                raise CallRefused(
                    ErrorCode.NOT_FOUND, f"no such account; there are: {names}", name=said
                )
            fit = [one]
        found: list[dict[str, object]] = []
        hosts: dict[str, list[str]] = {}
        secrets: dict[str, str] = {}
        for account in fit:
            secret = await accounts.secret_of(tx, stores.vault, account)
            if secret is None:
                raise missing(account.kind)
            found.append(accounts.with_secret(account, secret))
            hosts.setdefault(account.kind.value, []).extend(account.hosts)
            secrets[account.secret_name] = secret
    lacking = manifest.needed_accounts - {account.kind for account in fit}
    if lacking:
        raise missing(min(lacking))
    inside = (
        [h for some in hosts.values() for h in some] if context.actor.role is Role.HOST else []
    )
    return Opened({"accounts": found, "account_hosts": hosts, "private_hosts": inside}, secrets)


def missing(kind: AccountKind) -> CallRefused:
    """The refusal of what needs an account of this kind."""
    detail = f"there is no account of the kind {kind.value}; the person must add one"
    return CallRefused(ErrorCode.NEEDS_CREDENTIALS, detail, kind=kind.value)
