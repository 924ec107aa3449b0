"""`metnos accounts`: the services a person has of their own, connected and disconnected.

Secrets are typed unseen or read from standard input, never taken from the command line, where
every program of the machine could read them.
"""

from __future__ import annotations

import getpass
import shlex
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.beside import read_store, write_store
from bot.cli.lines import own_command, short_path, table
from bot.cli.output import BAD_SETTING, FAULT, Console, Session, is_asked
from bot.cli.people import find_person
from bot.prompt import typed

if TYPE_CHECKING:
    from core.accounts import Account, AccountField, AccountInvalid, AccountKind
    from core.messages import Actor
    from core.store.database import Transaction


def list_accounts(
    ctx: typer.Context,
    actor: Annotated[str, typer.Option("--actor")] = "",
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """The accounts of everybody, or of one person; never a secret."""
    session: Session = ctx.obj
    console = session.console
    from core.store import accounts, actors

    async def work(tx: Transaction) -> list[tuple[Actor, Account]] | None:
        people = await actors.list_actors(tx)
        if actor:
            person = find_person(people, actor)
            people = [] if person is None else [person]
            if person is None:
                return None
        return [
            (one, account) for one in people for account in await accounts.of_actor(tx, one.id)
        ]

    found = read_store(session.settings, work)
    if found is None:
        console.note("cli.grants.no_actor", name=actor)
        return FAULT
    if as_json:
        console.json([_as_data(person, account) for person, account in found])
        return 0
    if not found:
        console.tell("cli.accounts.none", command=own_command("accounts add mail"))
    for line in table([_row(console, person, account) for person, account in found]):
        console.line(line)
    return 0


def add(
    ctx: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="KIND")],
    name: Annotated[str, typer.Argument(metavar="NAME")] = "",
    given: Annotated[list[str] | None, typer.Option("--set", metavar="FIELD=VALUE")] = None,
    actor: Annotated[str, typer.Option("--actor")] = "",
    secret_stdin: Annotated[bool, typer.Option("--secret-stdin")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Connect an account, asking what is not said; the same name replaces what was there. At a
    terminal it is tried at once: 1 when it is kept but does not work."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.accounts import AccountInvalid, AccountKind, clean_name, clean_values
    from core.clock import SystemClock
    from core.store import accounts, actors
    from core.store.secret_key import key_path
    from core.store.stores import open_stores

    if kind not in set(AccountKind):
        console.note("cli.accounts.bad_kind", kinds=", ".join(AccountKind))
        return BAD_SETTING
    chosen = AccountKind(kind)
    values = dict(pair.partition("=")[::2] for pair in given or ())
    asks = is_asked() and not secret_stdin
    clock = SystemClock()
    try:
        if asks:
            _ask(console, chosen, values)
        values = {key: str(value) for key, value in clean_values(chosen, values).items()}
        named = str(values.get("address") or console.say(f"account.kind.{chosen.value}"))
        name = clean_name(name or named)
        secret = _secret(console, chosen, asks=asks)
    except AccountInvalid as exc:
        _tell_bad(console, exc)
        return BAD_SETTING
    except EOFError:
        console.line()
        return FAULT
    if not secret:
        console.note("cli.accounts.no_secret")
        return BAD_SETTING

    async def work() -> tuple[Actor, Account] | None:
        stores = await open_stores(settings, clock)
        try:
            async with stores.main.write() as tx:
                host = await actors.ensure_local_host(tx, clock)
                people = await actors.list_actors(tx)
                person = find_person(people, actor) if actor else host
                if person is None:
                    return None
                made = await accounts.put(
                    tx, stores.vault, person.id, name, chosen, values, secret, clock.now()
                )
                return person, made
        finally:
            await stores.close()

    import asyncio

    try:
        outcome = asyncio.run(work())
    except ValueError:
        console.note("cli.accounts.too_many", most=accounts.MOST)
        return FAULT
    if outcome is None:
        console.note("cli.grants.no_actor", name=actor)
        return FAULT
    if as_json:
        console.json(_as_data(*outcome))
        return 0
    console.tell("cli.accounts.added", name=name, path=short_path(key_path(settings.private_dir)))
    if asks:
        from bot.cli.account_checks import try_one

        return try_one(session, *outcome)
    test = own_command(f"accounts test {shlex.quote(name)}")
    console.tell("cli.accounts.test_it", command=test)
    return 0


def remove(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    actor: Annotated[str, typer.Option("--actor")] = "",
) -> int:
    """Disconnect an account: its settings and its secret are deleted here, nothing is there."""
    session: Session = ctx.obj
    console = session.console
    from core.store import accounts, actors

    async def work(tx: Transaction) -> str | None:
        people = await actors.list_actors(tx)
        if actor:
            person = find_person(people, actor)
            people = [person] if person else []
        owned = [a for one in people for a in await accounts.of_actor(tx, one.id)]
        found = [a for a in owned if accounts.find([a], name) is not None]
        if len(found) != 1:
            return None
        await accounts.delete(tx, found[0].actor_id, found[0].name)
        return found[0].name

    gone = write_store(session.settings, work)
    if gone is None:
        console.note("cli.accounts.unknown", name=name, command=own_command("accounts list"))
        return FAULT
    console.tell("cli.accounts.removed", name=gone)
    return 0


def _ask(console: Console, kind: AccountKind, values: dict[str, str]) -> None:
    """Ask what is missing. What can be guessed is offered, Enter takes it; of a provider whose
    servers are known nothing more than the address is asked."""
    from core.accounts import (
        FIELDS,
        AccountInvalid,
        FieldKind,
        clean_value,
        guess_mail,
        is_known_provider,
    )

    for one in FIELDS[kind]:
        if one.kind is FieldKind.SECRET or one.name in values or one.optional:
            continue
        guessed = guess_mail(values.get("address", "")) if values.get("address") else {}
        offered = guessed.get(one.name, one.default)
        if offered is not None and (is_known_provider(values.get("address", ""))):
            continue
        while True:
            answer = _typed(console, one, offered)
            if not answer and offered is not None:
                break
            try:
                if not answer:
                    raise AccountInvalid(one.name, "missing")
                values[one.name] = str(clean_value(one, answer))
            except AccountInvalid as exc:
                # Told at once, so that what was typed before need not be typed again.
                _tell_bad(console, exc)
            else:
                break


def _tell_bad(console: Console, exc: AccountInvalid) -> None:
    why = console.say(f"account.bad.{exc.reason}")
    console.note("cli.accounts.invalid", field=_label(console, exc.field), why=why)


def _typed(console: Console, one: AccountField, offered: str | int | None) -> str:
    label = _label(console, one.name)
    prompt = f"{label} [{offered}]: " if offered is not None else f"{label}: "
    return typed(input, prompt).strip()


def _secret(console: Console, kind: AccountKind, *, asks: bool) -> str:
    from core.accounts import secret_field

    if asks:
        label = _label(console, secret_field(kind))
        while not (secret := typed(getpass.getpass, f"{label}: ").strip()):
            console.note("cli.accounts.secret_again")
        return secret
    return sys.stdin.readline().rstrip("\r\n")


def _label(console: Console, field: str) -> str:
    key = f"account.field.{field}"
    return console.say(key) if console.texts.has(key, console.lang) else field


def _row(console: Console, person: Actor, account: Account) -> tuple[str, ...]:
    return (
        account.name,
        console.say(f"account.kind.{account.kind.value}"),
        str(account.values.get("address") or account.values.get("user") or ""),
        ", ".join(account.hosts),
        person.display_name,
    )


def _as_data(person: Actor, account: Account) -> dict[str, Any]:
    return {
        "name": account.name,
        "kind": account.kind.value,
        "actor": person.display_name,
        "actor_id": person.id,
        "values": dict(account.values),
    }
