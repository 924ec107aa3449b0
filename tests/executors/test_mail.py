"""Mail against a real IMAP server (Dovecot) and a real SMTP server (aiosmtpd)."""

from __future__ import annotations

import base64
import email
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP, default

import pytest

from executors._sdk import imap
from tests.executors.file_cases import run, run_caged
from tests.support.mail_servers import HAS_DOVECOT, PASSWORD, MailHost, mail_host

pytestmark = [
    pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH:UserWarning"),
    pytest.mark.needs_dovecot,
    pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root"),
]
DAY = 86_400
NOON = 1773831600  # 2026-03-18 12:00 in Rome, the clock of a test call is 10:00


def written(
    subject: str = "Prova",
    text: str = "Ciao",
    sender: str = "Marta Rossi <marta@posta.example>",
    **headers: str,
) -> bytes:
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = sender, "ada@mail.example", subject
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message.as_bytes()


@pytest.fixture(scope="module")
def host() -> Iterator[MailHost]:
    with mail_host() as host:
        host.deliver(written("Fattura di marzo", "60 euro", "Luce <luce@energia.example>"),
                     at=NOON - 5 * DAY, seen=True)  # fmt: skip
        host.deliver(written("Città d'arte", "perché no? àèì"), at=NOON - DAY)
        host.deliver(written("Cena?", "Venerdì?"), at=NOON - 7200)
        yield host


def call(host, name, args, *, caged=False, mode="run", **about):
    runner = run_caged if caged else run
    accounts = about.pop("accounts", [host.account()])
    if caged:
        hosts = [f"127.0.0.1:{port}" for port in (host.imap_port, host.smtp_port)]
        about |= {"account_hosts": {"mail": hosts}, "private_hosts": hosts}
    return runner(name, args, *about.pop("roots", ()), mode=mode, accounts=accounts, **about)


def text_of(message):
    body = message.get_body()
    assert body is not None
    return body.get_content().strip()


def subjects(seen):
    return [entry["subject"] for entry in seen["entries"]]


def test_newest_come_first_and_stay_unread(host):
    seen = call(host, "read_messages", {})
    again = call(host, "read_messages", {"unseen_only": True})

    assert subjects(seen) == ["Cena?", "Città d'arte", "Fattura di marzo"]
    assert [entry["unread"] for entry in seen["entries"]] == [True, True, False]
    assert subjects(again) == ["Cena?", "Città d'arte"], "looking marks nothing"
    first = seen["entries"][0]
    assert (first["sender"], first["address"]) == ("Marta Rossi", "marta@posta.example")
    assert first["text"] == "Venerdì?"
    assert first["date"].startswith("2026-03-18T")


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ({"from_contains": "luce"}, ["Fattura di marzo"]),
        ({"from_contains": "MARTA rossi"}, ["Cena?", "Città d'arte"]),
        ({"subject_contains": "città"}, ["Città d'arte"]),
        ({"time_window": "ieri"}, ["Città d'arte"]),
        ({"time_window": "today"}, ["Cena?"]),
        ({"time_window": "ultimi 7 giorni"}, ["Città d'arte", "Fattura di marzo"]),
        ({"max_results": 1}, ["Cena?"]),
        ({"folder": "posta in arrivo", "from_contains": "luce"}, ["Fattura di marzo"]),
        ({"subject_contains": 'x" OR ALL "'}, []),
        ({"subject_contains": "x\r\nA1 LOGOUT"}, []),
    ],
)
def test_what_fits_is_found(host, args, wanted):
    assert subjects(call(host, "read_messages", args)) == wanted


def test_one_message_is_more_than_shown(host):
    seen = call(host, "read_messages", {"max_results": 1})
    assert seen["metadata"]["truncated"] is True
    assert seen["metadata"]["available"] == 3


def test_odd_messages_are_read(host):
    odd = {
        "no charset": b"From: x@y.example\nSubject: =?utf-8?q?Caff=C3=A8?=\n"
        b"Content-Type: text/plain\n\ncaff\xe8 e latte\n",
        "html": b"From: x@y.example\nSubject: html\nContent-Type: text/html; charset=utf-8\n\n"
        b"<style>p{color:red}</style><p>Uno &amp; due</p><script>evil()</script><p>tre</p>",
        "broken": b"From\nSubject broken\n\n\xff\xfe\x00",
        "unknown charset": b"From: x@y.example\nSubject: =?x-moon?b?////?=\n"
        b"Content-Type: text/plain; charset=x-moon\n\nluna\n",
        "no body": b"From: =?utf-8?b?8J+YgA==?= <smile@y.example>\nSubject:\n\n",
    }
    deep = b"From: x@y.example\nSubject: deep\nMIME-Version: 1.0\n"
    inner = b"Content-Type: text/plain\n\nin fondo\n"
    for level in range(20):
        mark = f"b{level}".encode()
        inner = (
            b"Content-Type: multipart/mixed; boundary="
            + mark
            + b"\n\n--"
            + mark
            + b"\n"
            + inner
            + b"\n--"
            + mark
            + b"--\n"
        )
    odd["deep"] = deep + inner
    for number, raw in enumerate(odd.values()):
        host.deliver(raw, folder="Strane", at=NOON + number)

    seen = call(host, "read_messages", {"folder": "Strane"})

    texts = {entry["subject"]: entry["text"] for entry in seen["entries"]}
    assert len(seen["entries"]) == len(odd)
    assert all(entry["ok"] for entry in seen["entries"])
    assert texts["html"] == "Uno & due\ntre"
    assert texts["deep"] == "in fondo"
    assert texts["Caffè"].startswith("caff")


def test_attachments_are_named_safely_and_large_messages_are_not_loaded(host):
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "x@y.example", "Grande"
    message.set_content("guarda")
    message.add_attachment(b"x" * 9_000_000, maintype="application", subtype="pdf",
                           filename="../../perché.pdf")  # fmt: skip
    host.deliver(message.as_bytes(), folder="Grandi", at=NOON)

    seen = call(host, "read_messages", {"folder": "grandi"}, caged=True)

    (entry,) = seen["entries"]
    assert entry["attachments"] == "perché.pdf"
    assert entry["text"] == "guarda"
    assert entry["cut"] is True
    assert entry["size"] > 9_000_000


def test_folder_in_other_letters_is_made_and_found(host):
    host.deliver(written("da spostare"), folder="Prima", at=NOON)
    found = call(host, "read_messages", {"folder": "Prima"})["entries"]
    args = {"entries": found, "folder": "Città & Più"}

    preview = call(host, "move_messages", args, mode="preview")
    moved = call(host, "move_messages", args)
    again = call(host, "move_messages", args)
    there = call(host, "read_messages", {"folder": "città & più"})

    assert (preview["count"], preview["targets"]) == (1, ["da spostare"])
    assert moved["entries"][0]["made"] is True
    assert again["ok"] is False, "what moved is not there a second time"
    assert again["error"]["code"] == "not_found"
    assert subjects(there) == ["da spostare"]
    assert call(host, "read_messages", {"folder": "Prima"})["entries"] == []
    gone = call(host, "move_messages", args, mode="preview")
    assert gone["error"]["code"] == "not_found"


@pytest.mark.parametrize("can", [None, {"UIDPLUS"}, set()], ids=["move", "uidplus", "neither"])
def test_moving_and_marking_end_nothing_that_others_marked_as_deleted(host, monkeypatch, can):
    """Another program shows such mail as gone, and may take that back as long as it is there."""
    if can is not None:
        monkeypatch.setattr(imap.Box, "_can", lambda self, name: name in can)
    folder = f"Via {can}"
    host.deliver(written("tolta"), folder=folder, at=NOON)
    host.deliver(written("spostata"), folder=folder, at=NOON + 1)
    found = call(host, "read_messages", {"folder": folder})["entries"]
    with imap.opened(host.account()) as box:
        box.open(folder, readonly=False)
        box.flag([int(found[1]["id"].rsplit("|", 1)[1])], ["\\Deleted"], on=True)

    marked = call(host, "set_messages", {"entries": found[:1], "mark": "flagged"})
    moved = call(host, "move_messages", {"entries": found[:1], "folder": f"Qui {can}"})

    assert marked["ok"], marked
    assert moved["ok"], moved
    assert subjects(call(host, "read_messages", {"folder": f"Qui {can}"})) == ["spostata"]
    left = subjects(call(host, "read_messages", {"folder": folder}))
    # A server that can neither keeps the moved one as well, marked as deleted, as others do.
    assert left == (["spostata", "tolta"] if can == set() else ["tolta"])


def test_marks_are_set_and_taken_back(host):
    host.deliver(written("segnami"), folder="Segni", at=NOON)
    found = call(host, "read_messages", {"folder": "Segni"})["entries"]

    for mark, unread in (("read", False), ("read", False), ("unread", True)):
        assert call(host, "set_messages", {"entries": found, "mark": mark})["ok"]
        assert call(host, "read_messages", {"folder": "Segni"})["entries"][0]["unread"] is unread


def test_message_is_sent_once_with_its_files_and_kept(host, tmp_path):
    (tmp_path / "foto gatto.pdf").write_bytes(b"%PDF-1")
    args = {
        "to": ["Bea <bea@posta.example>", "BEA@posta.example", "leo@posta.example"],
        "subject": "Auguri\r\nBcc: evil@x.example",
        "body": "Buon compleanno, perché sì",
        "attachments": [f"{tmp_path}/foto gatto.pdf"],
    }
    before = len(host.sent)

    preview = call(host, "send_messages", args, mode="preview", roots=[tmp_path])
    sent = call(host, "send_messages", args, roots=[tmp_path], caged=True)
    again = call(host, "send_messages", args, roots=[tmp_path])

    assert preview["targets"] == ["bea@posta.example", "leo@posta.example"] or preview[
        "targets"
    ] == ["BEA@posta.example", "leo@posta.example"]
    assert preview["files"] == ["foto gatto.pdf"]
    assert sent["ok"], sent
    new = host.sent[before:]
    assert len(new) == 2, "a repeated call sends nothing twice"
    assert [entry.get("already") for entry in again["entries"]] == [True, True]
    got = email.message_from_bytes(new[0].content, policy=default)
    assert got["Bcc"] is None
    assert text_of(got) == "Buon compleanno, perché sì"
    (attached,) = got.iter_attachments()
    assert (attached.get_filename(), attached.get_content()) == ("foto gatto.pdf", b"%PDF-1")
    kept = call(host, "read_messages", {"folder": "inviati", "subject_contains": "Auguri"})
    assert len(kept["entries"]) == 2


def test_answer_goes_into_the_thread(host):
    host.deliver(written("Domanda", Message_ID="<q1@posta.example>"), folder="Fili", at=NOON)
    (asked,) = call(host, "read_messages", {"folder": "Fili"})["entries"]

    call(host, "send_messages", {"to": ["marta@posta.example"], "body": "sì", "entries": [asked]})

    got = email.message_from_bytes(host.sent[-1].content, policy=default)
    assert got["In-Reply-To"] == "<q1@posta.example>"
    assert text_of(got) == "sì", "what is answered is not sent along"


def test_answer_keeps_subject_and_the_whole_conversation(host):
    chain = {"References": "<t0@x.example> <t1@x.example>", "In_Reply_To": "<t1@x.example>"}
    host.deliver(written("Gita", Message_ID="<t0@x.example>"), folder="Gita", at=NOON)
    host.deliver(written("Re: Gita", Message_ID="<t2@x.example>", **chain), folder="Gita",
                 at=NOON + 1)  # fmt: skip
    seen = call(host, "read_messages", {"folder": "Gita"})["entries"]
    grouped = run("group_entries", {"entries": seen, "by": "thread"})

    for entry, subject, before in (
        (seen[0], "Re: Gita", "<t0@x.example> <t1@x.example> <t2@x.example>"),
        (seen[1], "Re: Gita", "<t0@x.example>"),
    ):
        args = {"to": ["marta@posta.example"], "body": f"vengo {before}", "entries": [entry]}
        preview = call(host, "send_messages", args, mode="preview")
        call(host, "send_messages", args)
        got = email.message_from_bytes(host.sent[-1].content, policy=default)
        assert (preview["subject"], got["Subject"]) == (subject, subject)
        assert " ".join(str(got["References"]).split()) == before
        assert got["In-Reply-To"] == entry["message_id"]

    assert [entry["thread"] for entry in seen] == ["<t0@x.example>"] * 2
    assert len(grouped["entries"]) == 1


ENCODINGS = {
    "iso-2022-jp": "日本語のメール", "gb18030": "中文邮件", "koi8-r": "Привет", "utf-16": "ciao è",
    "windows-1252": "€ 5 — ok", "utf-7": "è qui", "big5": "繁體", "iso-8859-15": "€uro",
}  # fmt: skip


def test_mail_in_the_encodings_of_the_world_is_read(host):
    for charset, text in ENCODINGS.items():
        packed = base64.b64encode(text.encode(charset)).decode()
        word = f"=?{charset}?b?{packed}?="
        raw = (
            f"From: {word} <a@b.example>\r\nSubject: {word}\r\nMIME-Version: 1.0\r\n"
            f"Content-Type: text/plain; charset={charset}\r\n"
            f"Content-Transfer-Encoding: base64\r\n\r\n{packed}\r\n"
        )
        host.deliver(raw.encode(), folder="Lingue", at=NOON)

    seen = call(host, "read_messages", {"folder": "Lingue"})["entries"]

    for key in ("subject", "text", "sender"):
        assert {entry[key] for entry in seen} == set(ENCODINGS.values())


def test_forwarded_mail_is_read_apart_from_what_stands_above_it(host):
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "x@y.example", "Fwd"
    message.set_content("guarda qui")
    message.add_attachment(email.message_from_bytes(written("Dentro", "testo"), policy=SMTP))
    host.deliver(message.as_bytes(), folder="Inoltri", at=NOON)

    [entry] = call(host, "read_messages", {"folder": "Inoltri"})["entries"]

    assert entry["text"] == "guarda qui\n\ntesto"


def test_address_in_other_letters_goes_out_as_servers_take_it(host):
    [entry] = call(host, "send_messages", {"to": ["leo@città.example"], "body": "x"})["entries"]

    assert entry["to"] == "leo@città.example"
    assert host.sent[-1].rcpt_tos == ["leo@xn--citt-3na.example"]


def test_refused_address_is_told_and_the_others_go(host):
    host.refuses.add("nobody@posta.example")
    seen = call(
        host, "send_messages", {"to": ["nobody@posta.example", "leo@posta.example"], "body": "x"}
    )
    assert [entry["ok"] for entry in seen["entries"]] == [False, True]
    assert seen["entries"][0]["error"]["code"] == "not_found"


@pytest.mark.parametrize("to", ["anna", "a@b", "a b@c.example", "", "x@y.example, z@w.example"])
def test_what_is_no_address_is_refused_before_anything(host, to):
    seen = call(host, "send_messages", {"to": [to], "body": "x"}, mode="preview")
    assert seen["error"]["code"] == "invalid_args"


def test_nothing_to_send_is_refused(host):
    seen = call(host, "send_messages", {"to": ["leo@posta.example"]}, mode="preview")
    assert seen["error"]["code"] == "missing_input"


@pytest.mark.parametrize("name", ["read_messages", "send_messages"])
def test_wrong_password_is_told_by_the_account_and_never_shown(host, name):
    accounts = [host.account(password="wrong-canary-1")]
    args = {"to": ["leo@posta.example"], "body": "x"} if name.startswith("send") else {}

    seen = call(host, name, args, accounts=accounts, caged=True)

    assert seen["error"]["code"] == "wrong_credentials"
    assert seen["error"]["params"] == {"name": "Casa"}
    assert "wrong-canary-1" not in str(seen)


def test_one_account_that_is_down_hides_no_other(host):
    accounts = [host.account(), host.account(name="Lavoro", imap_port=1)]
    seen = call(host, "read_messages", {"max_results": 2}, accounts=accounts)
    assert len(seen["entries"]) == 2
    assert seen["metadata"]["unreached"] == "Lavoro"
    alone = call(host, "read_messages", {}, accounts=accounts[1:])
    assert alone["error"]["code"] == "network"


def test_unknown_folder_is_told_with_those_there_are(host):
    seen = call(host, "read_messages", {"folder": "Vacanze"})
    assert seen["error"]["code"] == "not_found"
    assert "INBOX" in seen["error"]["detail"]


def test_password_stands_in_no_result(host):
    for name, args in (
        ("read_messages", {}),
        ("send_messages", {"to": ["l@x.example"], "body": "b"}),
    ):
        assert PASSWORD not in str(call(host, name, args))


def test_hostile_ids_are_refused(host):
    for one in ("", "a|b", "Casa|INBOX|1|x", "Casa|INBOX|1|1 LOGOUT", "|||", "Casa|INBOX|1|-1"):
        seen = call(host, "set_messages", {"ids": [one], "mark": "read"})
        assert seen["error"]["code"] == "invalid_args", one


def test_attachments_are_saved_under_safe_names_of_their_own(host, tmp_path):
    message = EmailMessage(policy=SMTP)
    message["From"], message["Subject"] = "x@y.example", "Allegati"
    message.set_content("eccoli")
    for name, data in (("../../fuori.txt", b"uno"), ("fuori.txt", b"due"), ("foto.png", b"png")):
        message.add_attachment(data, maintype="application", subtype="x", filename=name)
    raw = message.as_bytes() + b""
    host.deliver(raw, folder="Allegate", at=NOON)
    host.deliver(written("senza"), folder="Allegate", at=NOON + 1)
    found = call(host, "read_messages", {"folder": "Allegate"})["entries"]
    args = {"entries": found, "path": f"{tmp_path}/cartella"}

    preview = call(host, "extract_messages", args, mode="preview", roots=[tmp_path])
    assert not (tmp_path / "cartella").exists()
    saved = call(host, "extract_messages", args, roots=[tmp_path], caged=True)

    names = {path.name: path.read_bytes() for path in (tmp_path / "cartella").iterdir()}
    assert names == {"fuori.txt": b"uno", "fuori 2.txt": b"due", "foto.png": b"png"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cartella"]
    assert preview["targets"] == [entry["path"] for entry in saved["entries"]]
    assert {step["do"] for step in preview["undo"]} == {"remove"}
    again = call(host, "extract_messages", args, roots=[tmp_path])
    assert len({entry["path"] for entry in again["entries"]} & set(preview["targets"])) == 0
    assert (tmp_path / "cartella" / "foto.png").read_bytes() == b"png"


def test_attachments_go_into_a_folder_of_their_own_without_a_path(host, tmp_path):
    found = call(host, "read_messages", {"folder": "Allegate"})["entries"]
    saved = call(host, "extract_messages", {"entries": found}, roots=[tmp_path], lang="it")
    assert all(entry["path"].startswith(f"{tmp_path}/Allegati/") for entry in saved["entries"])
