"""Mail that goes wrong in the middle: what was done by then stays told, and what nobody knows is
called unknown; a message that cannot be read costs the others nothing."""

from __future__ import annotations

import imaplib
import socket
import time
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP

import pytest

from core.execution.cage import wire
from executors._sdk import mail_text
from tests.executors.file_cases import run
from tests.executors.test_mail import NOON, call, written
from tests.executors.test_mail_trouble import server
from tests.support.mail_servers import HAS_DOVECOT, MailHost, mail_host

pytestmark = [
    pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH:UserWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.needs_dovecot,
    pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root"),
]


@pytest.fixture(scope="module")
def host() -> Iterator[MailHost]:
    with mail_host() as host:
        yield host


def effects(seen) -> str:
    """What the engine makes of a change with this result."""
    return str(wire.to_observation(seen, mutating=True, external=False).effects.value)


class Exchange:
    """A server that takes mail: `after` says what it does once it has the n-th message, before it
    says so; `leaves` what it does when it is told good-bye."""

    def __init__(self, *, after: dict[int, str], leaves: str = "politely") -> None:
        self.after, self.leaves = after, leaves
        self.taken: list[bytes] = []

    def talk(self, line: socket.socket) -> None:
        line.sendall(b"220 here\r\n")
        lines = line.makefile("rb")
        for raw in lines:
            word = raw.split()[0].upper() if raw.split() else b""
            if word == b"DATA":
                line.sendall(b"354 go on\r\n")
                self.taken.append(b"".join(iter(lines.readline, b".\r\n")))
                if self.after.get(len(self.taken)) == "hangs up":
                    return
                line.sendall(b"250 taken\r\n")
            elif word == b"QUIT" and self.leaves != "politely":
                time.sleep(0.3)
                return
            else:
                line.sendall(b"250 fine\r\n")


@pytest.mark.parametrize(
    ("exchange", "to", "oks", "unsure", "left"),
    [
        (Exchange(after={1: "hangs up"}), ["a@x.example"], [False], [True], "unknown"),
        (
            Exchange(after={2: "hangs up"}),
            ["a@x.example", "b@x.example", "c@x.example"],
            [True, False, False],
            [None, True, None],
            "unknown",
        ),
        (Exchange(after={}, leaves="never"), ["a@x.example"], [True], [None], "done"),
    ],
    ids=["hangs up after the message", "after the second of three", "takes no leave"],
)
def test_sending_that_ends_in_the_middle_tells_each_address(host, exchange, to, oks, unsure, left):
    with server(exchange.talk) as port:
        mixed = host.account(smtp_port=port)
        seen = call(host, "send_messages", {"to": to, "body": to[-1] + left}, accounts=[mixed])

    assert [entry["to"] for entry in seen["entries"]] == to, seen
    assert [entry["ok"] for entry in seen["entries"]] == oks
    assert [entry.get("unsure") for entry in seen["entries"]] == unsure
    assert effects(seen) == left
    assert len(exchange.taken) == oks.count(True) + unsure.count(True), "nobody is tried twice"


def test_exchange_that_cannot_be_reached_sent_nothing_for_sure(host):
    away = host.account(smtp_port=1)
    seen = call(host, "send_messages", {"to": ["a@x.example"], "body": "x"}, accounts=[away])

    assert seen["error"]["code"] == "network"
    assert seen["error"]["params"]["host"] == "127.0.0.1"
    assert effects(seen) == "none"


@pytest.mark.parametrize(
    ("name", "more"), [("move_messages", {"folder": "Fatte"}), ("set_messages", {"mark": "read"})]
)
def test_folder_that_is_gone_costs_the_messages_of_others_nothing(host, name, more):
    host.deliver(written(f"buona {name}"), folder="Buona", at=NOON)
    found = call(host, "read_messages", {"folder": "Buona"})["entries"][:1]
    gone = {**found[0], "id": "Casa|Sparita|5|1", "subject": "sparita"}
    args = {"entries": [*found, gone], **more}

    preview = call(host, name, args, mode="preview")
    seen = call(host, name, args)

    assert (preview["count"], preview["targets"]) == (1, [f"buona {name}"])
    assert [(entry["subject"], entry["ok"]) for entry in seen["entries"]] == [
        (f"buona {name}", True),
        ("sparita", False),
    ]
    assert effects(seen) == "done"


def test_move_that_a_server_leaves_in_the_middle_is_unknown(host, monkeypatch):
    host.deliver(written("chissà"), folder="Mezza", at=NOON)
    found = call(host, "read_messages", {"folder": "Mezza"})["entries"]

    ask = imaplib.IMAP4.uid

    def leave(self, command, *args):
        if command == "MOVE":
            self.shutdown()
        return ask(self, command, *args)

    monkeypatch.setattr(imaplib.IMAP4, "uid", leave)
    seen = call(host, "move_messages", {"entries": found, "folder": "INBOX"})

    assert seen["error"]["code"] in {"network", "timeout"}, seen
    assert effects(seen) == "unknown"


def test_what_no_folder_is_called_is_refused_before_anybody_is_asked(host):
    host.deliver(written("resta"), folder="Resta", at=NOON)
    found = call(host, "read_messages", {"folder": "Resta"})["entries"]
    for folder in ("*", "nuova.", "a//b", "/"):
        args = {"entries": found, "folder": folder}
        seen = call(host, "move_messages", args, mode="preview")
        assert seen["error"]["code"] == "invalid_args", folder


def test_messages_that_are_too_large_are_told_and_the_others_saved(host, tmp_path, monkeypatch):
    monkeypatch.setattr("executors.extract_messages.main.MAX_MESSAGE", 20_000)
    for subject, size in (("prima", 10), ("enorme", 60_000), ("dopo", 20)):
        message = EmailMessage(policy=SMTP)
        message["From"], message["Subject"] = "x@y.example", subject
        message.set_content("ecco")
        message.add_attachment(b"x" * size, maintype="a", subtype="b", filename=f"{subject}.pdf")
        host.deliver(message.as_bytes(), folder="Miste", at=NOON + size)
    found = call(host, "read_messages", {"folder": "Miste"})["entries"]
    args = {"entries": found, "path": str(tmp_path)}

    preview = call(host, "extract_messages", args, mode="preview", roots=[tmp_path])
    seen = call(host, "extract_messages", args, roots=[tmp_path])

    assert preview["count"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dopo.pdf", "prima.pdf"]
    assert {e["name"]: e["ok"] for e in seen["entries"]} == {
        "dopo.pdf": True,
        "prima.pdf": True,
        "enorme": False,
    }
    assert effects(seen) == "done"
    alone = [entry for entry in found if entry["subject"] == "enorme"]
    only = call(host, "extract_messages", {"entries": alone}, mode="preview", roots=[tmp_path])
    assert only["error"]["code"] == "too_large"


BARE = b"""\
From: Andr\xe9 Ros\xe9 <andre@posta.example>
Subject: citt\xe0 d'arte
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain

perch\xe9 no
--b
Content-Type: application/pdf; name="perch\xe9.pdf"
Content-Disposition: attachment; filename="perch\xe9.pdf"
Content-Transfer-Encoding: base64

eA==
--b
Content-Type: image/png
Content-Disposition: attachment

x
--b--
"""


@pytest.mark.parametrize("codec", ["latin-1", "utf-8"])
def test_mail_without_a_charset_keeps_its_letters(host, tmp_path, codec):
    host.deliver(BARE.decode("latin-1").encode(codec), folder=f"Nuda-{codec}", at=NOON)

    (entry,) = call(host, "read_messages", {"folder": f"Nuda-{codec}"})["entries"]
    saved = call(host, "extract_messages", {"entries": [entry], "path": str(tmp_path)},
                 roots=[tmp_path], lang="en")  # fmt: skip

    assert entry["sender"] == "André Rosé"
    assert entry["subject"] == "città d'arte"
    assert entry["text"] == "perché no"
    assert entry["attachments"] == "perché.pdf"
    assert [one["name"] for one in saved["entries"]] == ["perché.pdf", "attachment.png"]


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        (b"caff\xe8 e latte", None, "caffè e latte"),
        (b"caff\xe8", "us-ascii", "caffè"),
        (b"caff\xe8", "utf-8", "caffè"),
        ("è già".encode()[:-1], "utf-8", "è gi"),
        ("già".encode(), "x-moon", "già"),
        ("日本".encode("shift_jis"), "shift_jis", "日本"),
        (b"", None, ""),
    ],
)
def test_bytes_are_read_in_the_likeliest_letters(data, charset, text):
    assert mail_text.lenient(data, charset) == text


def test_long_name_keeps_its_ending():
    assert mail_text.safe_name("../" + "a" * 400 + ".pdf").endswith("aaa.pdf")
    assert len(mail_text.safe_name("a" * 400)) == 150
    assert mail_text.safe_name("..", "it") == "allegato"


def test_date_that_no_calendar_has_breaks_nothing(host):
    raw = b"From: x@y.example\nDate: Mon, 1 Jan 0001 00:00:00 +1400\nSubject: antica\n\nciao\n"
    host.deliver(raw, folder="Antiche", at=NOON)
    assert call(host, "read_messages", {"folder": "Antiche"})["entries"][0]["subject"] == "antica"
    assert run("read_messages", {})["error"]["code"] == "needs_credentials"
