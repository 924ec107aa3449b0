"""What people do with their accounts in a chat: connect one by a form, see them, disconnect one.

Tools of the engine, without a model: a secret is a handle here until the moment it is kept, and
nothing that comes back holds one. Everybody has their own accounts and no others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.accounts import HOME, Account, AccountKind, secret_field
from core.clock import Clock
from core.config import Settings
from core.dialogs import Field, FieldKind, Option, SuspensionKind
from core.errors import CallRefused, ErrorCode
from core.execution.account_check import AccountCheck
from core.execution.account_words import DELETE_CREDENTIALS, FIND_CREDENTIALS, SET_CREDENTIALS
from core.execution.cage.process import ProcessCage
from core.execution.consent import Decision, NeedsAnswer, Question
from core.execution.context import TurnContext
from core.execution.credential_form import next_form, values_of
from core.i18n import Texts
from core.messages import Role
from core.observation import Effects, Observation
from core.store import accounts, credentials
from core.store.stores import Stores


@dataclass(frozen=True, slots=True)
class CredentialTools:
    """Holds what the tools need; keeps nothing of any call."""

    cage: ProcessCage
    stores: Stores
    clock: Clock
    settings: Settings
    texts: Texts

    async def run(
        self, tool: str, args: Mapping[str, Any], context: TurnContext, decision: Decision | None
    ) -> Observation:
        """Run one of them. Raises `NeedsAnswer` while something is to be asked, `CallRefused`, and
        `SecretUnreadable`. `set_credentials` called twice keeps the same account once."""
        said: dict[str, Any] = dict(args)
        if decision is not None:
            said |= {**decision.changed, **decision.values}
        match tool:
            case "set_credentials":
                return await self._set(said, context)
            case "find_credentials":
                return await self._find(context)
        return await self._delete(said, context, decision)

    # -- one each ---------------------------------------------------------------------------------

    async def _set(self, said: Mapping[str, Any], context: TurnContext) -> Observation:
        """Keep an account and try it; `content` has `name`, `kind`, `tried`, `works` and, when it
        does not, `error`."""
        kinds, wanted = kinds_for(context), said.get("kind")
        if not kinds or (wanted in set(AccountKind) and wanted not in kinds):
            raise CallRefused(
                ErrorCode.NOT_AUTHORIZED, "such an account is of no use to this person"
            )
        mine = await self._mine(context)
        before = next((a for a in mine if a.name == said.get("name")), None)
        known = dict(said) if before is None else {**said, "kind": before.kind.value}
        if before is not None and said.get(HOME):
            return await self._tried(await self._allow(before, str(said[HOME]), context), context)
        form = next_form(known, before, kinds, self.texts, context.lang)
        if form.fields:
            raise NeedsAnswer(
                Question(
                    SuspensionKind.INPUTS,
                    SET_CREDENTIALS,
                    fields=form.fields,
                    changed=form.known,
                    apart=True,
                )
            )
        kind = AccountKind(form.known["kind"])
        values = values_of(kind, form.known) if before is None else dict(before.values)
        name = before.name if before is not None else self._name(kind, values, mine, context)
        account = await self._keep(context, name, kind, values, form.known[secret_field(kind)])
        return await self._tried(account, context)

    async def _tried(self, account: Account, context: TurnContext) -> Observation:
        checked = await AccountCheck(self.cage, self.stores, self.settings).check(
            account, context.actor, context.catalog, lang=context.lang, now=self.clock.now()
        )
        told: dict[str, Any] = {
            "name": account.name,
            "kind": account.kind.value,
            "tried": checked.tried,
            "works": checked.ok and checked.tried,
        }
        if checked.error is not None:
            told["error"] = {**checked.error.params, "code": checked.error.code.value}
        return Observation(ok=True, content=told, effects=Effects.DONE)

    async def _find(self, context: TurnContext) -> Observation:
        """An entry an account: `name`, `kind`, `address`, `servers`."""
        entries = tuple(
            {
                "name": one.name,
                "kind": one.kind.value,
                "address": str(one.values.get("address") or one.values.get("user") or ""),
                "servers": list(one.hosts),
            }
            for one in await self._mine(context)
        )
        return Observation(ok=True, entries=entries, metadata={"count": len(entries)})

    async def _delete(
        self, said: Mapping[str, Any], context: TurnContext, decision: Decision | None
    ) -> Observation:
        """Forget an account and its secret, after a yes. `content` has `name` and `kind`."""
        account = self._meant(said, await self._mine(context), context)
        if decision is None or "name" in decision.values:
            kind = self._say(f"account.kind.{account.kind.value}", context)
            text = self._say("account.delete.ask", context, name=account.name, kind=kind)
            raise NeedsAnswer(
                Question(
                    SuspensionKind.APPROVAL,
                    DELETE_CREDENTIALS,
                    text=text,
                    changed={"name": account.name},
                    apart=True,
                )
            )
        if not decision.agreed:
            raise CallRefused(ErrorCode.DECLINED, "the person said no to this")
        async with self.stores.main.write() as tx:
            await accounts.delete(tx, context.actor.id, account.name)
        told = {"name": account.name, "kind": account.kind.value}
        return Observation(ok=True, content=told, effects=Effects.DONE)

    # -- pieces -----------------------------------------------------------------------------------

    async def _mine(self, context: TurnContext) -> list[Account]:
        async with self.stores.main.read() as tx:
            return await accounts.of_actor(tx, context.actor.id)

    async def _allow(self, account: Account, home: str, context: TurnContext) -> Account:
        """What the person's tap said yes to: the host stood on the button."""
        async with self.stores.main.write() as tx:
            changed = await accounts.allow_home(
                tx, account.actor_id, account.name, home, self.clock.now()
            )
        if changed is None:
            raise CallRefused(ErrorCode.NOT_FOUND, "there is no such account", path=account.name)
        return changed

    async def _keep(
        self,
        context: TurnContext,
        name: str,
        kind: AccountKind,
        values: Mapping[str, Any],
        handle: Any,
    ) -> Account:
        async with self.stores.main.write() as tx:
            secret = None
            if credentials.is_handle(handle):
                secret = await credentials.reveal(
                    tx,
                    self.stores.vault,
                    actor_id=context.actor.id,
                    turn_id=context.turn_id,
                    handle=handle,
                )
            if secret is None:
                raise CallRefused(
                    ErrorCode.INVALID_ARGS, "a secret is asked of the person, never written out"
                )
            try:
                return await accounts.put(
                    tx,
                    self.stores.vault,
                    context.actor.id,
                    name,
                    kind,
                    values,
                    secret,
                    self.clock.now(),
                )
            except ValueError as exc:
                raise CallRefused(
                    ErrorCode.INVALID_ARGS, f"the account cannot be kept: {type(exc).__name__}"
                ) from exc

    def _name(
        self,
        kind: AccountKind,
        values: Mapping[str, Any],
        mine: list[Account],
        context: TurnContext,
    ) -> str:
        """What a new account is called: its address, else its kind, numbered when there are
        several. The same address or server is the same account."""
        for one in mine:
            same = one.values.get("url") == values.get("url") and one.values.get(
                "user"
            ) == values.get("user")
            if one.kind is kind and kind is not AccountKind.MAIL and same:
                return one.name
        if kind is AccountKind.MAIL:
            return str(values["address"])[:60]
        word = self._say(f"account.kind.{kind.value}", context)
        taken = {one.name.casefold() for one in mine}
        names = [word, *(f"{word} {number}" for number in range(2, accounts.MOST + 2))]
        return next(name for name in names if name.casefold() not in taken)

    def _meant(
        self, said: Mapping[str, Any], mine: list[Account], context: TurnContext
    ) -> Account:
        """The account that is meant. Raises `NeedsAnswer` for one of several, `CallRefused`."""
        name, kind = str(said.get("name") or ""), said.get("kind")
        found = accounts.find(mine, name) if name else None
        if found is not None:
            return found
        fit = [one for one in mine if one.kind == kind] if not name else []
        if len(fit) == 1:
            return fit[0]
        if not fit:
            raise CallRefused(ErrorCode.NOT_FOUND, "there is no such account", path=name)
        options = tuple(Option(one.name, one.name) for one in fit)
        prompt = self._say("account.delete.which", context)
        field = Field("name", prompt, FieldKind.CHOICE, options)
        raise NeedsAnswer(
            Question(
                SuspensionKind.DISAMBIGUATION, DELETE_CREDENTIALS, fields=(field,), apart=True
            )
        )

    def _say(self, key: str, context: TurnContext, **params: Any) -> str:
        return self.texts.say(key, context.lang, **params)


def kinds_for(context: TurnContext) -> frozenset[AccountKind]:
    """The kinds of account that this person may connect: the host all, a guest those that their
    programs can use."""
    if context.actor.role is Role.HOST:
        return frozenset(AccountKind)
    used = [one.manifest.used_accounts for one in context.catalog.executors.values()]
    return frozenset().union(*used)


__all__ = ["DELETE_CREDENTIALS", "FIND_CREDENTIALS", "SET_CREDENTIALS", "CredentialTools"]
