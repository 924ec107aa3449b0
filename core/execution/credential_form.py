"""What is still to be asked before an account can be connected, in the order people can say it.

Of mail first the address; of a provider whose servers are known then the password alone, of
another one whether the servers are the usual ones. Pure but for the texts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from core.accounts import (
    FIELDS,
    SAFETIES,
    Account,
    AccountField,
    AccountInvalid,
    AccountKind,
    clean_values,
    guess_mail,
    is_known_provider,
    secret_field,
)
from core.accounts import FieldKind as Kind
from core.dialogs import Field, FieldKind, Option
from core.i18n import Texts

USUAL = "servers"
"""The question whether the usual servers are right."""


@dataclass(frozen=True, slots=True)
class Form:
    """`fields` are to be asked next, `known` is what is known so far; with no fields it is all."""

    known: Mapping[str, Any]
    fields: tuple[Field, ...] = ()


def next_form(
    known: Mapping[str, Any],
    before: Account | None,
    kinds: Collection[AccountKind],
    texts: Texts,
    lang: str,
) -> Form:
    """`before`: the account whose secret alone is to be given anew; `kinds`: those to choose from.
    What cannot be is asked again, with the reason."""
    ask = _Asks(texts, lang)
    kind = AccountKind(known["kind"]) if known.get("kind") in set(AccountKind) else None
    if kind is None or kind not in kinds:
        if len(kinds) > 1:
            return Form({**known, "kind": None}, (ask.kind(kinds),))
        kind = min(kinds)
    known = {**known, "kind": kind.value}
    secret = secret_field(kind)
    if before is not None:
        return (
            Form(known) if known.get(secret) else Form(known, (ask.secret(secret, before.name),))
        )
    fields = _missing(kind, known, ask)
    if fields:
        return Form(known, fields)
    try:
        clean_values(kind, values_of(kind, known))
    except AccountInvalid as exc:
        left = {name: value for name, value in known.items() if name != exc.field}
        again = next(one for one in FIELDS[kind] if one.name == exc.field)
        why = texts.say(f"account.bad.{exc.reason}", lang)
        return Form(left, (ask.field(again, known, why=why),))
    return Form(known)


def values_of(kind: AccountKind, known: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of an account but its secret."""
    names = [one.name for one in FIELDS[kind] if one.kind is not Kind.SECRET]
    return {name: known[name] for name in names if known.get(name) not in (None, "")}


def _missing(kind: AccountKind, known: Mapping[str, Any], ask: _Asks) -> tuple[Field, ...]:
    secret = () if known.get(secret_field(kind)) else (ask.secret(secret_field(kind)),)
    if kind is AccountKind.MAIL:
        address = str(known.get("address") or "")
        head, _, domain = address.rpartition("@")
        if not head or "." not in domain or " " in address:
            why = ask.texts.say("account.bad.address", ask.lang) if address else ""
            return (ask.field(FIELDS[kind][0], known, why=why),)
        if not is_known_provider(address) and USUAL not in known:
            return (ask.usual(address),)
        if known.get(USUAL) is False and "imap_host" not in known:
            servers = [f for f in FIELDS[kind] if f.name not in {"address", "password"}]
            return (*(ask.field(one, known) for one in servers), *secret)
        return secret
    asked = [f for f in FIELDS[kind] if not (f.kind is Kind.SECRET or f.default or f.optional)]
    return (*(ask.field(one, known) for one in asked if one.name not in known), *secret)


@dataclass(frozen=True, slots=True)
class _Asks:
    """Fields with their prompts in one language."""

    texts: Texts
    lang: str

    def kind(self, kinds: Collection[AccountKind]) -> Field:
        options = tuple(
            Option(k.value, self._say(f"account.kind.{k.value}"))
            for k in AccountKind
            if k in kinds
        )
        return Field("kind", self._say("account.ask.kind"), FieldKind.CHOICE, options)

    def usual(self, address: str) -> Field:
        found = guess_mail(address)
        servers = {"imap": found["imap_host"], "smtp": found["smtp_host"]}
        return Field(USUAL, self._say("account.ask.servers", **servers), FieldKind.YES_NO)

    def secret(self, name: str, account: str = "") -> Field:
        key = f"account.ask.{name}.again" if account else f"account.ask.{name}"
        return Field(name, self._say(key, name=account), FieldKind.SECRET)

    def field(self, one: AccountField, known: Mapping[str, Any], *, why: str = "") -> Field:
        guessed = guess_mail(str(known.get("address") or ""))
        offered = guessed.get(one.name, one.default)
        prompt = self._say(f"account.ask.{one.name}")
        if offered is not None:
            prompt = self._say("account.ask.offered", prompt=prompt, offered=str(offered))
        if why:
            prompt = f"{why} {prompt}"
        kind, options = FieldKind.TEXT, tuple[Option, ...]()
        if one.kind is Kind.SAFETY:
            kind = FieldKind.CHOICE
            options = tuple(Option(s, self._say(f"account.safety.{s}")) for s in SAFETIES)
        elif one.kind is Kind.PORT:
            kind = FieldKind.NUMBER
        return Field(one.name, prompt, kind, options, one.optional or offered is not None)

    def _say(self, key: str, **params: Any) -> str:
        return self.texts.say(key, self.lang, **params)
