"""Accounts: whose they are, what reaches the child that needs one, and what sleeps without."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.app import House
from core.accounts import (
    FIELDS,
    Account,
    AccountInvalid,
    AccountKind,
    FieldKind,
    clean_values,
    guess_mail,
    kinds_of,
)
from core.messages import FinalKind, TurnClosed
from core.store import accounts, actors
from tests.support.executors import manifest_toml, prepare_home, signed_executor
from tests.support.house import events_of, house_settings, inbound, open_scripted
from tests.support.scripted_model import Rule, ScriptedModel

PASSWORD = "canary-parola-%/42"
ARGS = """[args.properties.account]
type = "string"
description = { it = "account", en = "account" }
x-metnos-type = "free"

[args.properties.port]
type = "number"
description = { it = "porta", en = "port" }
x-metnos-type = "free"
"""
# Speaks to the server of its account, and is as careless with the secret as it can be.
CODE = """
import hashlib, socket


def run(call):
    told = []
    for account in call.accounts:
        port = int(call.args.get("port") or account["imap_port"])
        try:
            with socket.create_connection((account["imap_host"], port), timeout=20) as line:
                hello = line.recv(100).decode()
        except OSError as exc:
            hello = getattr(exc, "metnos_code", type(exc).__name__)
        told.append({
            "ok": True,
            "name": account["name"],
            "hello": hello,
            "digest": hashlib.sha256(account["password"].encode()).hexdigest(),
            "echo": "my password is " + account["password"],
        })
    return {"ok": True, "entries": told}
"""


def reader(hint: str = "account:mail") -> str:
    manifest = manifest_toml("read_messages", args=ARGS, right="mail:read")
    return manifest.replace('name = "mail:read"', f'name = "mail:read"\nhints = ["{hint}"]')


@asynccontextmanager
async def server() -> AsyncIterator[int]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as serving:
        yield serving.sockets[0].getsockname()[1]


@asynccontextmanager
async def house_of(
    tmp_path: Path, calls: list[dict[str, Any]], hint: str = "account:mail"
) -> AsyncIterator[tuple[House, ScriptedModel]]:
    # Inner hosts are not open by themselves: an account is what opens one.
    settings = house_settings(tmp_path, metnos_private_hosts=())
    prepare_home(settings.metnos_home)
    signed_executor(settings, reader(hint), CODE)
    rules = [
        Rule(user="posta", after=number, calls=[("read_messages", args)])
        for number, args in enumerate(calls)
    ]
    rules += [Rule(user="posta", text="Ecco."), Rule(text="Non so.")]
    async with open_scripted(
        tmp_path, rules, metnos_private_hosts=(), metnos_memory=False
    ) as opened:
        yield opened


async def add(house: House, name: str, port: int, *, actor: str = "") -> Account:
    async with house.stores.main.write() as tx:
        host = (await actors.list_actors(tx))[0]
        return await accounts.put(
            tx,
            house.stores.vault,
            actor or host.id,
            name,
            AccountKind.MAIL,
            {"address": "ada@mail.example", "imap_host": "127.0.0.1", "imap_port": port},
            PASSWORD,
            house.clock.now(),
        )


async def closed(house: House, text: str = "leggi la posta") -> TurnClosed:
    end = (await events_of(house, inbound(text)))[-1]
    assert isinstance(end, TurnClosed)
    return end


async def test_child_gets_its_account_and_nobody_else_does(tmp_path: Path) -> None:
    async with server() as port, house_of(tmp_path, [{}, {"port": 1}]) as (house, model):
        await add(house, "casa", port)

        await closed(house)

        first, second = model.asked[1].last_result, model.asked[2].last_result
        assert "* OK ready" in first
        assert hashlib.sha256(PASSWORD.encode()).hexdigest() in first
        assert "host_denied" in second, "only the very port of the account is open"
        assert all(PASSWORD not in str(ask.body) for ask in model.asked)
        logs = "".join(p.read_text() for p in (tmp_path / "home" / "turns").glob("*.jsonl"))
        assert logs
        assert PASSWORD not in logs
        kept = [p for p in (tmp_path / "home" / "private").iterdir() if p.is_file()]
        assert all(PASSWORD.encode() not in path.read_bytes() for path in kept)


async def test_without_account_the_tool_is_not_offered(tmp_path: Path) -> None:
    async with house_of(tmp_path, [{}]) as (house, model):
        end = await closed(house)

        assert not model.asked, "what cannot be done is known before a model is asked"
        assert end.final_kind is FinalKind.ERROR
        assert "metnos accounts add mail" in str(end.reply.blocks)

    async with house_of(tmp_path, [{}]) as (house, model):
        await closed(house, "ciao")
        assert "read_messages" not in model.asked[0].tool_names

    async with server() as port, house_of(tmp_path, [{}], "account:mail?") as (house, model):
        await closed(house)
        assert "read_messages" in model.asked[0].tool_names
        assert port


async def test_person_names_one_of_several(tmp_path: Path) -> None:
    calls = [{"account": "lavoro"}, {"account": "ada@mail.example"}]
    async with server() as port, house_of(tmp_path, calls) as (house, model):
        await add(house, "Casa", port)
        await add(house, "Lavoro", port)

        await closed(house, "leggi la posta di lavoro, e di ada@mail.example")

        one, both = (model.asked[number].last_result for number in (1, 2))
        assert "Lavoro" in one
        assert "Casa" not in one
        assert "not_found" in both, "the address of two accounts names neither"
        assert "Casa, Lavoro" in both


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "address"),
        ({"address": "no-address"}, "address"),
        ({"address": "a@b.example", "imap_port": "70000"}, "imap_port"),
        ({"address": "a@b.example", "imap_host": "a b"}, "imap_host"),
        ({"address": "a@b.example", "smtp_safety": "ssl"}, "smtp_safety"),
        ({"address": "a@b.example", "password": "x", "colour": "red"}, "colour"),
        ({"address": "a@b.example", "user": "a\nb"}, "user"),
    ],
)
def test_value_that_cannot_be_is_named(given: dict[str, str], field: str) -> None:
    with pytest.raises(AccountInvalid) as caught:
        clean_values(AccountKind.MAIL, given)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "dav.example", "https://u:p@x/", "http://[", "//x"]
)
def test_url_that_cannot_be_is_refused(url: str) -> None:
    with pytest.raises(AccountInvalid):
        clean_values(AccountKind.CALENDAR, {"url": url, "user": "u"})


def test_mail_account_needs_an_address_alone() -> None:
    values = clean_values(AccountKind.MAIL, {"address": "ada@casa.example"})
    assert values["imap_host"] == "imap.casa.example"
    assert values["user"] == "ada@casa.example"
    account = Account("a", "Casa", AccountKind.MAIL, values)
    assert account.hosts == ("imap.casa.example:993", "smtp.casa.example:465")
    assert guess_mail("x@gmail.com")["imap_host"] == "imap.gmail.com"


@given(st.text(max_size=40), st.sampled_from(AccountKind), st.data())
def test_values_are_clean_or_refused(text: str, kind: AccountKind, data: st.DataObject) -> None:
    given_values = {one.name: text for one in FIELDS[kind] if data.draw(st.booleans())}
    try:
        values = clean_values(kind, given_values)
    except AccountInvalid:
        return
    secret = {one.name for one in FIELDS[kind] if one.kind is FieldKind.SECRET}
    assert not secret & set(values)
    assert Account("a", "n", kind, values).hosts is not None


def test_hints_say_what_is_needed_and_what_is_used() -> None:
    needed, used = kinds_of(["account:mail", "account:contacts?", "account:moon", "service:x"])
    assert needed == {AccountKind.MAIL}
    assert used == {AccountKind.MAIL, AccountKind.CONTACTS}
