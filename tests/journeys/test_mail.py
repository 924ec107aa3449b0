"""Flow 14: mail is read, classified by the model, and moved with consent; refused; pressed twice;
pressed by a guest. The mailbox is Dovecot's, the sending server aiosmtpd, the programs our own."""

from __future__ import annotations

import email
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import SMTP, default

import pytest

from tests.journeys.stage import GUEST, HOST, Stage, open_stage, token_of, ways
from tests.support.mail_servers import HAS_DOVECOT, PASSWORD, USER, MailHost, mail_host
from tests.support.scripted_model import Ask, Rule

pytestmark = [
    pytest.mark.filterwarnings("ignore:Session.login_data:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Requiring AUTH:UserWarning"),
    pytest.mark.needs_dovecot,
    pytest.mark.skipif(not HAS_DOVECOT, reason="needs dovecot-imapd and root"),
]
REQUEST = {
    "it": "classifica la posta di {} e sposta le bollette nella cartella {}",
    "en": "classify the mail from {} and move the bills to the folder {}",
}
APPROVED = {"it": "Approvato da te alle", "en": "Approved by you at"}
ONLY = {"it": "solo la persona a cui l'ho chiesto", "en": "Only the person I asked"}
DECLINED = {"it": "Hai detto di no alle", "en": "You said no at"}
SENT = {
    "it": "manda una mail a {} con oggetto cena e testo vengo volentieri",
    "en": "send an email to {} with subject dinner and text vengo volentieri",
}
FRIEND = "marta@posta.example"
INBOX = ["Cena?", "Fattura di novembre", "Your invoice"]
BILLS = ["Fattura di novembre", "Your invoice"]
MOVES = "^(classifica|classify)"
SENDS = "^(manda|send)"


def _word(ask: Ask, after: str) -> str:
    found = re.search(rf"(?:{after}) (\S+)", ask.user)
    assert found is not None
    return found[1]


def _bills(ask: Ask) -> list[str]:
    """The two classes of a request, in its own words."""
    return ["bollette", "altro"] if "classifica" in ask.user else ["bills", "other"]


def _classes(ask: Ask) -> str:
    """What a model answers that reads the passages: a class for each, in their order."""
    bills, other = ("bollette", "altro") if "bollette" in str(ask.body) else ("bills", "other")
    passages = ask.user.split("<<<")[1:]
    about = [bills if re.search("Fattura|invoice", text) else other for text in passages]
    return json.dumps({"classes": about})


RULES = [
    Rule(user="<<<", text=_classes),
    Rule(
        user=MOVES,
        after=0,
        calls=lambda ask: [("read_messages", {"from_contains": _word(ask, "di|from")})],
    ),
    Rule(
        user=MOVES,
        after=1,
        calls=lambda ask: [
            (
                "classify_entries",
                {"from_step": 1, "dimension": _bills(ask)[0], "labels": _bills(ask)},
            )
        ],
    ),
    Rule(
        user=MOVES,
        after=2,
        calls=lambda ask: [
            (
                "filter_entries",
                {
                    "from_step": 2,
                    "where": [{"field": "category", "op": "eq", "value": _bills(ask)[0]}],
                },
            )
        ],
    ),
    Rule(
        user=MOVES,
        after=3,
        calls=lambda ask: [
            ("move_messages", {"from_step": 3, "folder": _word(ask, "cartella|folder")})
        ],
    ),
    Rule(user=MOVES, after=4, text="Ok."),
    Rule(
        user=SENDS,
        after=0,
        calls=lambda ask: [
            (
                "send_messages",
                {
                    "to": [FRIEND],
                    "subject": _word(ask, "oggetto|subject"),
                    "body": "vengo volentieri",
                },
            )
        ],
    ),
    Rule(user=SENDS, after=1, text="Ok."),
]


@pytest.fixture(scope="module")
def mailbox() -> Iterator[MailHost]:
    with mail_host() as host:
        yield host


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory, mailbox: MailHost) -> Iterator[Stage]:
    with open_stage(tmp_path_factory.mktemp("flow14"), RULES, METNOS_MEMORY="1") as stage:
        values = {
            "address": USER, "user": USER,
            "imap_host": "127.0.0.1", "imap_port": mailbox.imap_port, "imap_safety": "none",
            "smtp_host": "127.0.0.1", "smtp_port": mailbox.smtp_port, "smtp_safety": "none",
        }  # fmt: skip
        settings = [part for k, v in values.items() for part in ("--set", f"{k}={v}")]
        subprocess.run(
            [sys.executable, "-m", "bot", "accounts", "add", "mail", "Casa", "--secret-stdin",
             *settings],
            env={**stage.env, **stage.telegram.bot_env()}, cwd=stage.tmp, input=PASSWORD,
            text=True, check=True, timeout=120, capture_output=True,
        )  # fmt: skip
        yield stage


def _deliver(host: MailHost, sender: str, subject: str, text: str) -> None:
    message = EmailMessage(policy=SMTP)
    message["From"], message["To"], message["Subject"] = sender, USER, subject
    message.set_content(text)
    host.deliver(message.as_bytes())


def _subjects(host: MailHost, sender: str, folder: str = "") -> list[str]:
    """The subjects of one sender's messages in a folder, sorted."""
    messages = [email.message_from_bytes(raw, policy=default) for raw in host.folder(folder)]
    return sorted(str(one["Subject"]) for one in messages if one["From"] == sender)


def _asked(stage: Stage, host: MailHost, lang: str, name: str) -> tuple[str, str, str, dict]:
    """Up to the card: who wrote, the folder, the request, and the message that asks."""
    stage.speak(lang)
    sender, folder = f"{name}.{lang}@energia.example", "Fatture"
    for subject, text in zip(INBOX, ("Venerdì?", "60 euro", "40 euro"), strict=True):
        _deliver(host, sender, subject, text)
    request = REQUEST[lang].format(sender, folder)
    # A card that was agreed to a few times is one line.
    named = "Fattura di novembre.*Your invoice|Your invoice.*Fattura|2 (elementi|items)"
    card = stage.ask(HOST, request, named, buttons=["^✅", "^✋"])
    assert _subjects(host, sender) == INBOX, "nothing moves before the answer"
    return sender, folder, request, card


@ways("it quiet", "en quiet", "en killed")
def test_mail_is_moved_once_after_a_yes_pressed_twice(
    stage: Stage, mailbox: MailHost, lang: str, killed: bool
) -> None:
    sender, folder, request, card = _asked(stage, mailbox, lang, f"agreed{killed}")
    if killed:
        stage.crash()

    yes = token_of(card, "^✅")
    stage.telegram.tap(HOST, yes, message=card["message"])
    stage.telegram.tap(HOST, yes, message=card["message"])

    stage.hear(HOST, APPROVED[lang], kind="edit")
    lines = stage.ended(request, 2)
    assert [line["final_kind"] for line in lines] == ["awaiting", "answer"]
    assert _subjects(mailbox, sender) == ["Cena?"]
    assert _subjects(mailbox, sender, folder) == BILLS
    assert stage.effects_of(lines[0]["turn_id"]) == [("move_messages", "done")]
    assert stage.state_of_questions(lines[0]["turn_id"]) == ["done"]
    assert PASSWORD not in str(stage.log_lines())


@ways("it quiet", "en quiet")
def test_nothing_is_asked_where_no_mail_is_to_move(
    stage: Stage, mailbox: MailHost, lang: str, killed: bool
) -> None:
    stage.speak(lang)
    sender = f"no{lang}@posta.example"
    _deliver(mailbox, sender, "Cena?", "Venerdì?")

    event = stage.ask(HOST, REQUEST[lang].format(sender, "Fatture"), "Ok")

    assert "✋" not in json.dumps(event["message"], ensure_ascii=False)
    [line] = stage.ended(REQUEST[lang].format(sender, "Fatture"), 1)
    assert line["final_kind"] == "answer"
    assert _subjects(mailbox, sender) == ["Cena?"]


@ways("it quiet", "en killed")
def test_mail_stays_after_a_no(stage: Stage, mailbox: MailHost, lang: str, killed: bool) -> None:
    sender, folder, request, card = _asked(stage, mailbox, lang, f"refused{killed}")
    if killed:
        stage.crash()

    stage.telegram.press(HOST, "^✋", message_id=card["message"]["message_id"])

    stage.hear(HOST, DECLINED[lang], kind="edit")
    lines = stage.ended(request, 2)
    assert _subjects(mailbox, sender) == INBOX
    assert _subjects(mailbox, sender, folder) == []
    assert stage.effects_of(lines[0]["turn_id"]) == []
    assert [step["error_class"] for step in lines[1]["steps"]] == ["declined"]


@ways("it quiet", "en killed")
def test_mail_is_not_moved_by_the_tap_of_a_guest(
    stage: Stage, mailbox: MailHost, lang: str, killed: bool
) -> None:
    stage.speak(lang, HOST, GUEST)
    sender, _, request, card = _asked(stage, mailbox, lang, f"guest{killed}")
    if killed:
        stage.crash()

    stage.telegram.tap(GUEST, token_of(card, "^✅"))
    stage.telegram.tap(GUEST, token_of(card, "^✋"))

    for _ in range(2):
        stage.hear(GUEST, ONLY[lang], kind="answer")
    assert _subjects(mailbox, sender) == INBOX
    [line] = stage.lines_of(request)
    assert stage.state_of_questions(line["turn_id"]) == ["open"]
    stage.telegram.press(HOST, "^✋", message_id=card["message"]["message_id"])
    stage.ended(request, 2)
    assert stage.effects_of(line["turn_id"]) == []


@ways("it quiet", "en killed")
def test_mail_goes_out_once_and_only_after_a_yes(
    stage: Stage, mailbox: MailHost, lang: str, killed: bool
) -> None:
    stage.speak(lang)
    mailbox.sent.clear()
    request = SENT[lang].format(FRIEND)
    card = stage.ask(HOST, request, FRIEND, buttons=["^✅", "^✋"])
    assert mailbox.sent == []
    if killed:
        stage.crash()

    for _ in range(2):
        stage.telegram.tap(HOST, token_of(card, "^✅"), message=card["message"])

    lines = stage.ended(request, 2)
    assert [one.rcpt_tos for one in mailbox.sent] == [[FRIEND]]
    assert stage.effects_of(lines[0]["turn_id"]) == [("send_messages", "done")]


@ways("it quiet", "en killed")
def test_second_time_nothing_is_planned_and_the_yes_is_asked_again(
    stage: Stage, mailbox: MailHost, lang: str, killed: bool
) -> None:
    planned = []
    for _ in range(2):
        mailbox.empty()
        mailbox.empty("Fatture")
        before = len(stage.model.asked)
        sender, folder, _, card = _asked(stage, mailbox, lang, f"again{killed}")
        if killed:
            stage.crash()
        stage.telegram.press(HOST, "^✅", message_id=card["message"]["message_id"])
        stage.hear(HOST, APPROVED[lang], kind="edit")
        stage.settle()
        assert _subjects(mailbox, sender, folder) == BILLS
        planned.append(sum("<<<" not in ask.user for ask in stage.model.asked[before:]))
    assert planned[1] == 0
