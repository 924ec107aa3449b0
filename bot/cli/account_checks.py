"""Accounts tried one by one: `metnos accounts test`, and their part of `metnos doctor`.

The real programs run in the real cage, beside a bot that may be running; nothing is changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli.checks import Doctor, Finding, State
from bot.cli.lines import own_command
from bot.cli.output import FAULT, Console, Session
from bot.cli.people import find_person

if TYPE_CHECKING:
    from core.accounts import Account
    from core.config import Settings
    from core.errors import ErrorInfo
    from core.execution.account_check import Checked
    from core.messages import Actor

    Owned = tuple[Actor, Account]


def try_them(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME")] = "",
    actor: Annotated[str, typer.Option("--actor")] = "",
    allow: Annotated[str, typer.Option("--allow", metavar="HOST")] = "",
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> int:
    """Try the accounts, or the one of that name. 1 when one does not work or there is none.

    `--allow`: the one more host that the login of that account may go to, where its own server
    says that what is looked for lies there."""
    session: Session = ctx.obj
    console = session.console
    found: list[dict[str, Any]] = []

    def is_meant(person: Actor, account: Account) -> bool:
        from core.store import accounts

        whose = not actor or find_person([person], actor) is not None
        return whose and (not name or accounts.find([account], name) is not None)

    async def work() -> None:
        allowed = allow if name else ""
        async for person, checked in checks(session.settings, console.lang, is_meant, allowed):
            found.append(_as_data(person, checked))
            if not as_json:
                _tell(console, person, checked)

    asyncio.run(work())
    if as_json:
        console.json({"ok": all(one["ok"] for one in found), "accounts": found})
    elif not found and name:
        console.note("cli.accounts.unknown", name=name, command=own_command("accounts list"))
    elif not found:
        console.note("cli.accounts.none", command=own_command("accounts add mail"))
    return 0 if found and all(one["ok"] for one in found) else FAULT


def try_one(session: Session, owner: Actor, account: Account) -> int:
    """Try an account connected just now and tell what came of it. 1: it does not work."""
    console = session.console

    async def work() -> bool:
        well = True
        meant = (owner.id, account.name)
        async for person, checked in checks(
            session.settings, console.lang, lambda one, other: (one.id, other.name) == meant
        ):
            _tell(console, person, checked)
            well = checked.ok
        return well

    return 0 if asyncio.run(work()) else FAULT


async def checks(
    settings: Settings, lang: str, is_meant: Callable[[Actor, Account], bool], allow: str = ""
) -> AsyncIterator[tuple[Actor, Checked]]:
    """Try the accounts that are meant, in the order of people and names. `allow`: the host that
    may be given the login, if that is the one an account's server points to. Raises
    `StoreError`."""
    from core.catalog.loader import CatalogLoader
    from core.clock import SystemClock
    from core.egress.broker import Broker
    from core.execution.account_check import AccountCheck
    from core.execution.cage.process import ProcessCage
    from core.store import accounts, actors
    from core.store.stores import open_stores

    clock = SystemClock()
    stores = await open_stores(settings, clock)
    cage = ProcessCage(unsafe=settings.metnos_unsafe_no_cage, broker=Broker())
    try:
        async with stores.main.read() as tx:
            owned = [
                (person, account)
                for person in await actors.list_actors(tx)
                for account in await accounts.of_actor(tx, person.id)
                if is_meant(person, account)
            ]
        catalog = CatalogLoader.of(settings).current() if owned else None
        check = AccountCheck(cage, stores, settings)
        for person, account in owned:
            assert catalog is not None  # noqa: S101 - there are accounts
            checked = await check.check(account, person, catalog, lang=lang, now=clock.now())
            home = _home_of(checked)
            if allow and home and checked.error and checked.error.params["host"] == allow.lower():
                async with stores.main.write() as tx:
                    known = await accounts.allow_home(
                        tx, account.actor_id, account.name, home, clock.now()
                    )
                checked = await check.check(
                    known or account, person, catalog, lang=lang, now=clock.now()
                )
            yield person, checked
    finally:
        cage.close()
        await stores.close()


async def check_accounts(doctor: Doctor) -> AsyncIterator[Finding]:
    """A finding for every account of everybody."""
    from core.errors import StoreError
    from core.store.stores import MAIN_FILE

    console = doctor.console
    if not (doctor.settings.private_dir / MAIN_FILE).is_file():
        return
    with contextlib.suppress(StoreError):  # the database has its own finding
        async for person, checked in checks(doctor.settings, console.lang, _all):
            said = sentence(console, person, checked)
            if checked.ok:
                yield Finding("accounts", State.GOOD if checked.tried else State.INFO, said)
            else:
                yield Finding("accounts", State.FAULT, said, mend(checked))


def sentence(console: Console, person: Actor, checked: Checked) -> str:
    """What came of an account, in one line."""
    account = checked.account
    named = {
        "name": account.name,
        "kind": console.say(f"account.kind.{account.kind.value}"),
        "actor": person.display_name,
    }
    if checked.error is not None:
        return console.say("cli.accounts.fails", why=why(console, checked.error), **named)
    key = f"cli.accounts.works.{account.kind.value}" if checked.tried else "cli.accounts.untried"
    return console.say(key, **named)


def mend(checked: Checked) -> str:
    """The one command that helps: what was typed wrongly is typed again under the same name."""
    from core.errors import ErrorCode

    account = checked.account
    if checked.error is not None and checked.error.code in _OUT_OF_REACH:
        return f"openssl s_client -connect {checked.error.params['host']}"
    if _home_of(checked) and checked.error is not None:
        host = shlex.quote(str(checked.error.params["host"]))
        return own_command(f"accounts test {shlex.quote(account.name)} --allow {host}")
    if checked.error is not None and checked.error.code is ErrorCode.INTERNAL:
        return own_command("doctor")
    return own_command(f"accounts add {account.kind.value} {shlex.quote(account.name)}")


def _home_of(checked: Checked) -> str:
    """Where an account's server points to that its login may not go to yet; "" for nowhere."""
    from core.errors import ErrorCode

    error = checked.error
    found = error is not None and error.code is ErrorCode.OTHER_SERVER
    return str(error.params.get("home") or "") if error is not None and found else ""


def why(console: Console, error: ErrorInfo) -> str:
    """A failure in a sentence for a person."""
    return console.say(error.message_key, **error.params)


def _all(person: Actor, account: Account) -> bool:
    return True


def _tell(console: Console, person: Actor, checked: Checked) -> None:
    sign = "✗" if not checked.ok else "✓" if checked.tried else "·"
    console.line(f"{sign} {sentence(console, person, checked)}", alarm=not checked.ok)
    if not checked.ok:
        console.line(f"    → {mend(checked)}")


def _as_data(person: Actor, checked: Checked) -> dict[str, Any]:
    account, error = checked.account, checked.error
    return {
        "name": account.name,
        "kind": account.kind.value,
        "actor": person.display_name,
        "ok": checked.ok,
        "tried": checked.tried,
        "error": None if error is None else error.code.value,
        "tool": checked.tool or None,
        "mend": None if checked.ok else mend(checked),
    }


_OUT_OF_REACH = frozenset(
    {"network", "timeout", "host_not_found", "tls_failed", "certificate_expired"}
)
