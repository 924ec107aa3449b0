"""`metnos accounts test`, the doctor's part of it and `metnos credentials rotate`.

The real programs run in the cage against real servers; no secret stands in what is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.store.lock import engine_lock
from tests.cli.conftest import Cli, Ran
from tests.support import dav_server as dav
from tests.support.executors import REPO
from tests.support.mail_servers import HAS_DOVECOT, PASSWORD, USER, MailHost, mail_host
from tests.support.processes import METNOS, Typist

pytestmark = pytest.mark.usefixtures("prepared")

WRONG = "canary-sbagliata-3"
needs_dovecot = [
    pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH:UserWarning"),
    pytest.mark.needs_dovecot,
    pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root"),
]


@pytest.fixture(scope="module")
def host() -> Iterator[MailHost]:
    with mail_host() as host:
        yield host


def add(cli: Cli, name: str, imap: int, smtp: int, *, secret: str = PASSWORD) -> None:
    values = {
        "address": USER,
        "imap_host": "127.0.0.1",
        "imap_port": imap,
        "imap_safety": "none",
        "smtp_host": "127.0.0.1",
        "smtp_port": smtp,
        "smtp_safety": "none",
    }
    words = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    made = cli("accounts", "add", "mail", name, *words, "--secret-stdin", stdin=f"{secret}\n")
    assert made.status == 0


def silent(*ran: Ran) -> bool:
    return not any(word in one.out + one.err for one in ran for word in (PASSWORD, WRONG))


class TestMail:
    pytestmark = needs_dovecot

    def test_each_account_has_its_line_and_the_doctor_has_it_too(
        self, cli: Cli, host: MailHost
    ) -> None:
        cli("setup")
        add(cli, "Casa", host.imap_port, host.smtp_port)
        alone = cli("accounts", "test")
        add(cli, "Lavoro", host.imap_port, host.smtp_port, secret=WRONG)
        add(cli, "Mare", host.imap_port, 9)

        with engine_lock(cli.home, "run"):
            ran = cli("accounts", "test")
        cli.env(METNOS_LANG="it")
        spoken, doctor = cli("accounts", "test"), cli("doctor", "--json")

        assert (alone.status, ran.status, spoken.status, doctor.status) == (0, 1, 1, 1)
        good, bad, mended, far, looked = ran.out.splitlines()
        assert alone.out == f"{good}\n"
        assert good.startswith("✓ “Casa”")
        assert good.endswith("the mail can be read, and the sending server lets me in.")
        assert "refuses the name or the password of the account “Lavoro”" in bad
        assert mended.endswith("metnos accounts add mail Lavoro")
        assert "“Mare”" in far
        assert "127.0.0.1:9" in far
        assert looked.endswith("openssl s_client -connect 127.0.0.1:9")
        assert "leggo la posta" in spoken.out
        assert "rifiuta il nome o la password dell'account «Lavoro»" in spoken.out
        found = [c for c in json.loads(doctor.out)["checks"] if c["check"] == "accounts"]
        assert [one["state"] for one in found] == ["good", "fault", "fault"]
        assert "accounts add mail Lavoro" in found[1]["mend"]
        assert silent(ran, spoken, alone, doctor)
        assert host.sent == [], "nothing is sent"

    def test_new_key_opens_the_account(self, cli: Cli, host: MailHost) -> None:
        cli("setup")
        add(cli, "Casa", host.imap_port, host.smtp_port)
        key = (cli.home / "private" / "keys" / "secrets.key").read_text(encoding="ascii")

        with engine_lock(cli.home, "run"):
            refused = cli("credentials", "rotate")
        turned = cli("credentials", "rotate")

        assert refused.status == 75
        assert turned.status == 0
        assert "1" in turned.out
        assert "secrets.key" in turned.out
        left = (cli.home / "private" / "keys" / "secrets.key").read_text(encoding="ascii")
        assert key.strip() not in left
        assert cli("accounts", "test").status == 0
        assert silent(turned, refused)


CARD = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:c1\r\nFN:Anna Rossi\r\nN:Rossi;Anna;;;\r\nEND:VCARD\r\n"


def add_dav(cli: Cli, kind: str, name: str, url: str, secret: str = dav.PASSWORD) -> None:
    words = ("--set", f"url={url}", "--set", f"user={dav.USER}", "--secret-stdin")
    assert cli("accounts", "add", kind, name, *words, stdin=f"{secret}\n").status == 0


def test_calendar_and_address_book_are_really_asked(cli: Cli, tmp_path: Path) -> None:
    cli("setup")
    with dav.dav_host(tmp_path) as host:
        host.make("casa")
        host.make("rubrica", "contacts")
        host.put("rubrica/c1.vcf", CARD)
        for kind in ("calendar", "contacts"):
            add_dav(cli, kind, f"buono {kind}", host.url)
            add_dav(cli, kind, f"storto {kind}", host.url, WRONG)
        ran = cli("accounts", "test")

    assert ran.status == 1
    lines = [line for line in ran.out.splitlines() if line[0] in "✓✗"]
    assert [line[0] for line in lines] == ["✓", "✓", "✗", "✗"]
    assert lines[0].endswith("the events can be read.")
    assert lines[1].endswith("the contacts can be read.")
    assert all("refuses the name or the password" in line for line in lines[2:])
    assert not any(word in ran.out + ran.err for word in (dav.PASSWORD, WRONG))


def test_another_server_is_allowed_by_name_and_kept(cli: Cli, tmp_path: Path) -> None:
    cli("setup")
    with (
        dav.dav_host(tmp_path) as host,
        dav.broken_host(**dav.pointing_to(host.url + "ada/")) as (front, _),
    ):
        host.make("casa")
        add_dav(cli, "calendar", "Mela", front["url"])
        first = cli("accounts", "test")
        other = cli("accounts", "test", "Mela", "--allow", "dav.example")
        allowed = cli("accounts", "test", "Mela", "--allow", f"127.0.0.1:{host.port}")
        after, listed = cli("accounts", "test"), cli("accounts", "list")

    said = f"accounts test Mela --allow 127.0.0.1:{host.port}"
    assert (first.status, other.status, allowed.status, after.status) == (1, 1, 0, 0)
    assert first.out.splitlines()[-1].endswith(said)
    assert f"127.0.0.1:{host.port}" in listed.out
    assert dav.PASSWORD not in first.out + other.out + allowed.out


def test_what_is_not_there_is_said(cli: Cli) -> None:
    cli("setup")
    none = cli("accounts", "test")
    for name in ("read_messages", "send_messages"):
        (cli.home / "executors" / name / "main.py").unlink()
    add(cli, "Casa", 9, 9)
    unused, unknown = cli("accounts", "test"), cli("accounts", "test", "Luna")

    assert (none.status, unused.status, unknown.status) == (1, 0, 1)
    assert "accounts add" in none.err
    assert unused.out.startswith("· ")
    assert "no program" in unused.out
    assert "Luna" in unknown.err


class TestAtATerminal:
    pytestmark = needs_dovecot

    def test_what_cannot_be_is_asked_again_and_the_account_is_tried_at_once(
        self, cli: Cli, host: MailHost
    ) -> None:
        cli.env(METNOS_LANG="it", PYTHONPATH=str(REPO), TERM="xterm")
        cli("setup", "--non-interactive")
        words = ("--set", "imap_safety=none", "--set", "smtp_safety=none")
        for secret, says, status in ((WRONG, "✗", 1), (PASSWORD, "✓", 0)):
            person = Typist(dict(os.environ), (*METNOS, "accounts", "add", "mail", "Casa", *words))
            for asked, said in (
                ("Indirizzo di posta: ", "ada"),
                ("Indirizzo di posta: ", USER),
                ("Server IMAP", "127.0.0.1"),
                ("Porta IMAP", "a lot"),
                ("Porta IMAP", str(host.imap_port)),
                ("Server SMTP", "127.0.0.1"),
                ("Porta SMTP", str(host.smtp_port)),
                ("Password", ""),
                ("Password", secret),
            ):
                person.until(asked)
                person.type(f"{said}\n")
            person.until(f"{says} «Casa»")

            assert person.leave() == status
            assert secret not in person.seen
