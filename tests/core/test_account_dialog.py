"""Accounts connected, corrected, listed and disconnected in a chat, without a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.app import House
from core.accounts import AccountKind
from core.errors import ErrorCode
from core.execution.account_words import wish_of
from core.messages import ChatAddress, FinalKind, Role, TurnClosed, TurnSuspended
from core.store import accounts, actors, grants
from tests.core.test_questions import press
from tests.core.test_questions import said as said_by_id
from tests.support import dav_server as dav
from tests.support.house import LOCAL, open_scripted
from tests.support.mail_servers import HAS_DOVECOT, PASSWORD, USER, MailHost, mail_host
from tests.support.scripted_model import Rule, ScriptedModel

WRONG = "canary-sbagliata-3"
RULES = [
    Rule(user="posta|mail", after=0, calls=[("read_messages", {})]),
    Rule(user="posta|mail", after=1, text="Ecco."),
    Rule(text="Non so."),
]
WORDS = {
    "it": {
        "request": "leggi la mia posta",
        "add": "Collega un account",
        "fix": "Correggi la password",
        "no": "No",
        "skip": "Salta",
        "none": "nessuna protezione",
        "fails": "non funziona",
        "works": "funziona",
        "again": "Richiedimelo",
        "mine": "quali account ho?",
        "drop": "scollega la posta",
        "yes": "✅",
        "gone": "Non hai account",
    },
    "en": {
        "request": "read my mail",
        "add": "Connect an account",
        "fix": "Correct the password",
        "no": "No",
        "skip": "Skip",
        "none": "no protection",
        "fails": "does not work",
        "works": "it works",
        "again": "Ask again",
        "mine": "which accounts do I have?",
        "drop": "disconnect my mail",
        "yes": "✅",
        "gone": "no connected accounts",
    },
}


@pytest.fixture(scope="module")
def host() -> Iterator[MailHost]:
    with mail_host() as host:
        yield host


async def said(house: House, text: str, **fields: Any) -> Any:
    """What comes of it in the end."""
    fields.setdefault("id", f"test:{house.clock.new_id()}")
    return (await said_by_id(house, text, **fields))[-1]


async def tap(house: House, shown: Any, label: str, **fields: Any) -> Any:
    return (await press(house, shown, label, id=f"t:{house.clock.new_id()}", **fields))[-1]


async def mine(house: House, actor_id: str = "") -> list[tuple[str, AccountKind]]:
    async with house.stores.main.read() as tx:
        if not actor_id:
            host = await actors.find_host(tx)
            actor_id = host.id if host else ""
        return [(one.name, one.kind) for one in await accounts.of_actor(tx, actor_id)]


def assert_nowhere(tmp_path: Path, model: ScriptedModel) -> None:
    for path in (tmp_path / "home").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert PASSWORD.encode() not in data, path
        assert WRONG.encode() not in data, path
    prompts = json.dumps([ask.body for ask in model.asked], ensure_ascii=False)
    assert PASSWORD not in prompts
    assert WRONG not in prompts


@pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Requiring AUTH:UserWarning")
@pytest.mark.needs_dovecot
@pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root")
@pytest.mark.parametrize("lang", ["it", "en"])
async def test_missing_account_is_connected_corrected_and_used(
    tmp_path: Path, host: MailHost, lang: str
) -> None:
    words, settings = WORDS[lang], {"metnos_lang": lang, "metnos_memory": False}
    async with open_scripted(tmp_path, RULES, **settings) as (house, model):
        end = await said(house, words["request"])
        assert isinstance(end, TurnClosed)
        assert end.error is not None
        assert end.error.code is ErrorCode.NEEDS_CREDENTIALS
        form = await tap(house, end, words["add"])
        again = await said(house, "nonsense")
        assert isinstance(again, TurnSuspended)
        form = await said(house, USER)
        assert "imap.mail.example" in form.reply.plain
    # The bot is started anew between two questions.
    async with open_scripted(tmp_path, RULES, **settings) as (house, model):
        form = await tap(house, form, words["no"])
        form = await tap(house, form, words["skip"])
        form = await said(house, "127.0.0.1")
        form = await said(house, str(host.imap_port))
        form = await tap(house, form, words["none"])
        form = await said(house, "127.0.0.1")
        form = await said(house, str(host.smtp_port))
        form = await tap(house, form, words["none"])
        assert form.reply.secret
        end = await said(house, WRONG)
        assert words["fails"] in end.reply.plain
        assert "secrets.key" in end.reply.plain

        form = await tap(house, end, words["fix"])
        assert form.reply.secret, "nothing but the password is asked"
        end = await said(house, PASSWORD)
        assert words["works"] in end.reply.plain
        assert await mine(house) == [(USER, AccountKind.MAIL)]
        assert model.asked == [], "no model has been asked"
        end = await tap(house, end, words["again"])
        assert end.final_kind is FinalKind.ANSWER
        assert len(model.asked) > 0

        listed = await said(house, words["mine"])
        assert USER in listed.reply.plain
        card = await said(house, words["drop"])
        end = await tap(house, card, words["yes"])
        assert await mine(house) == []
        assert words["gone"] in (await said(house, words["mine"])).reply.plain
        assert_nowhere(tmp_path, model)


@pytest.mark.parametrize(
    ("lang", "ask", "wish", "allow", "works"),
    [
        ("it", "collega il mio calendario", "che impegni ho domani?", "Permetti", "funziona"),
        ("en", "connect my calendar", "what is on my calendar tomorrow?", "Allow", "it works"),
    ],
)
async def test_calendar_on_another_server_waits_for_a_tap(
    tmp_path: Path, lang: str, ask: str, wish: str, allow: str, works: str
) -> None:
    (tmp_path / "dav").mkdir()
    rules = [
        Rule(user="domani|tomorrow", after=0, calls=[("read_events", {})]),
        Rule(text="Ok."),
    ]
    with (
        dav.dav_host(tmp_path / "dav") as host,
        dav.broken_host(**dav.pointing_to(host.url + "ada/")) as (front, _),
    ):
        host.make("casa")
        server = f"127.0.0.1:{host.port}"
        settings: dict[str, Any] = {"metnos_lang": lang, "metnos_memory": False}
        async with open_scripted(tmp_path, rules, **settings) as (house, _):
            await said(house, ask)
            await said(house, front["url"])
            await said(house, dav.USER)
            end = await said(house, dav.PASSWORD)
            assert isinstance(end, TurnClosed)
            assert server in end.reply.plain
            # Nobody pressed: a turn that needs the calendar says and offers the same.
            end = await said(house, wish)
            assert server in end.reply.plain
            assert host.names("casa") == []
            end = await tap(house, end, f"{allow} {server}")
            assert works in end.reply.plain
            async with house.stores.main.read() as tx:
                person = await actors.find_host(tx)
                assert person is not None
                [kept] = await accounts.of_actor(tx, person.id)
            assert kept.values["home"] == host.url
            end = await said(house, wish)
            assert server not in end.reply.plain
            assert end.error is None


async def test_form_asks_what_is_needed_and_again_what_cannot_be(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, []) as (house, _):
        form = await said(house, "collega la mia posta ada@gmail.com")
        assert form.reply.secret, "the servers of a known provider are not asked"
        end = await said(house, "annulla")
        assert isinstance(end, TurnClosed)
        assert await mine(house) == []

        await said(house, "connect my calendar")
        await said(house, "not a url")
        form = await said(house, "ada")
        assert form.reply.secret
        form = await said(house, PASSWORD)
        assert isinstance(form, TurnSuspended)
        assert "https://" in form.reply.plain
        end = await said(house, "http://127.0.0.1:9/ada")
        assert isinstance(end, TurnClosed)
        kept = await mine(house)
        assert kept == [("calendar", AccountKind.CALENDAR)]

        card = await said(house, "scollega l'account calendar")
        await tap(house, card, "✋")
        assert await mine(house) == kept


async def test_guest_connects_only_what_they_may_use_and_for_themselves(tmp_path: Path) -> None:
    chat = ChatAddress("telegram", "77")
    who: dict[str, Any] = {"address": chat, "sender_id": "77"}
    async with open_scripted(tmp_path, []) as (house, _):
        async with house.stores.main.write() as tx:
            guest = await actors.add(tx, Role.GUEST, "Berta", house.clock)
            await actors.link(tx, "telegram", "77", guest.id)
        refused = await said(house, "collega la mia posta", **who)
        async with house.stores.main.write() as tx:
            await grants.add(
                tx, guest.id, grants.GrantKind.RIGHT, "mail:read", now=house.clock.now()
            )
        form = await said(house, "collega la mia posta", **who)

        assert refused.error.code is ErrorCode.NOT_AUTHORIZED
        assert isinstance(form, TurnSuspended)
        await said(house, "berta@gmail.com", **who)
        await said(house, PASSWORD, **who)
        assert await mine(house) == []
        assert await mine(house, guest.id) == [("berta@gmail.com", AccountKind.MAIL)]


async def test_in_a_group_accounts_are_spoken_of_alone(tmp_path: Path) -> None:
    group, alone = ChatAddress("telegram", "-1007", "3"), ChatAddress("telegram", "42")
    async with open_scripted(tmp_path, []) as (house, _):
        async with house.stores.main.write() as tx:
            person = await actors.find_host(tx)
            assert person is not None
            await actors.link(tx, "telegram", "42", person.id)
        who: dict[str, Any] = {"address": group, "sender_id": "42", "alone": alone}
        await said(house, "collega la mia posta", **who)
        listed = await said(house, "quali account ho?", **who)

        async with house.stores.main.read() as tx:
            found = await tx.fetch_all("SELECT chat_key, body FROM outbox ORDER BY place")
        put = [row["chat_key"] for row in found if "indirizzo di posta" in row["body"]]
        assert put == [alone.key]
        assert "privato" in listed.reply.plain
        assert LOCAL.key not in put


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Collega la mia posta", ("set_credentials", {"kind": "mail"})),
        ("per favore collega un account", ("set_credentials", {})),
        ("aggiungi un account di posta", ("set_credentials", {"kind": "mail"})),
        ("collega il mio calendario", ("set_credentials", {"kind": "calendar"})),
        ("connect my mail account", ("set_credentials", {"kind": "mail"})),
        ("add a calendar account", ("set_credentials", {"kind": "calendar"})),
        ("set up my e-mail a@b.it", ("set_credentials", {"kind": "mail", "address": "a@b.it"})),
        ("Quali account ho?", ("find_credentials", {})),
        ("show me my accounts", ("find_credentials", {})),
        ("scollega l'account Casa", ("delete_credentials", {"name": "Casa"})),
        ("scollega la rubrica", ("delete_credentials", {"kind": "contacts"})),
        ("disconnect the Home account", ("delete_credentials", {"name": "Home"})),
        ("leggi la posta", None),
        ("collega la stampante", None),
        ("collega la posta e leggimi le ultime tre", None),
        ("cancella l'account di Marta dal foglio", None),
        ("aggiungi il calendario delle partite alle note", None),
        ("delete my mail", None),
    ],
)
def test_words_that_speak_of_accounts(
    text: str, wanted: tuple[str, dict[str, str]] | None
) -> None:
    step = wish_of(text)

    assert (None if step is None else (step.tool, dict(step.args))) == wanted
