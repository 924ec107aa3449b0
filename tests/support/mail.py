"""Mail executors for tests until there are real ones: a mailbox that is a folder of files.

A mailbox is a folder with one folder in it for each of its own, a message a JSON file named after
its id. The executors are signed and put into the home as any other, and run in the cage. What
they read is `external`, moving is `checkable`, sending is `blind`, as with a real mailbox.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from core.config import Settings
from tests.support.executors import signed_executor

_HEAD = """\
format = "metnos.executor/1"
name = "{name}"
version = "1.0.0"
author = "Test"
sdk = "1"
{top}

[description]
it = "{it}"
en = "{en}"

[phrase]
it = "{it}"
en = "{en}"

[affinity]
it = [{words_it}]
en = [{words_en}]

[answer.it]
one = "{answer_it}"

[answer.en]
one = "{answer_en}"

[args]
type = "object"
additionalProperties = false
{args}

[output.entries]
id = "span"
sender = "person"
subject = "text"
category = "text"
folder = "text"

[output.metadata]
count = "number"
{rights}

[[tests]]
name = "runs"
expect = {{ ok = true }}

[files]
"""
_MAILBOX = """
[args.properties.mailbox]
type = "string"
description = { it = "casella", en = "mailbox" }
x-metnos-type = "path"
"""
_ENTRIES = """
[args.properties.entries]
type = "array"
items = { type = "object" }
description = { it = "messaggi", en = "messages" }
x-metnos-type = "free"
"""
_READS = '\n[[capabilities]]\nname = "fs:read"\nhints = ["arg:mailbox"]\n'
_WRITES = _READS + '\n[[capabilities]]\nname = "fs:write"\nhints = ["arg:mailbox"]\n'
_OPEN = """\
import json
import os
import time

from executors._sdk.files import locate
from executors._sdk.result import Failure, done, item


def message_of(box, folder, name):
    with open(f"{box}/{folder}/{name}.json", encoding="utf-8") as file:
        return {**json.load(file), "id": name, "folder": folder}
"""
_READ = (
    _OPEN
    + """

def run(call):
    box = locate(call, call.args["mailbox"]).path
    names = sorted(name[:-5] for name in os.listdir(f"{box}/inbox") if name.endswith(".json"))
    return done([item(**message_of(box, "inbox", name)) for name in names])
"""
)
_CLASSIFY = """\
from executors._sdk.result import done, item

BILLS = ("fattura", "bolletta", "invoice", "bill")


def run(call):
    found = []
    for entry in call.args["entries"]:
        subject = entry.get("subject", "").lower()
        category = "bills" if any(word in subject for word in BILLS) else "other"
        found.append(item(**{**entry, "category": category}))
    return done(found)
"""
_MOVE = (
    _OPEN
    + """

def places(call, entry):
    box = locate(call, call.args["mailbox"])
    name = f"{entry['id']}.json"
    return box.child("inbox", name).path, box.child(call.args["dst"], name).path


def run(call):
    moved = []
    for entry in call.args["entries"]:
        source, target = places(call, entry)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.rename(source, target)
        moved.append(item(id=entry["id"], subject=entry["subject"], folder=call.args["dst"]))
    return done(moved)


def state(path, exists):
    return {"path": path, "exists": exists}


def preview(call):
    entries = call.args["entries"]
    pairs = [places(call, entry) for entry in entries]
    if not all(os.path.exists(source) for source, _ in pairs):
        raise Failure("not_found", "the message is gone", path="")
    return {
        "targets": [entry["subject"] for entry in entries],
        "count": len(entries),
        "before": [state(p, p == source) for source, target in pairs for p in (source, target)],
        "after": [state(p, p == target) for source, target in pairs for p in (source, target)],
        "undo": [{"do": "move", "from": target, "to": source} for source, target in pairs],
    }
"""
)
_SEND = (
    _OPEN
    + """

def run(call):
    folder = locate(call, call.args["mailbox"]).child("sent").path
    os.makedirs(folder, exist_ok=True)
    name = str(len(os.listdir(folder)) + 1)
    sent = {key: call.args.get(key, "") for key in ("to", "subject", "text")}
    with open(f"{folder}/{name}.json", "x", encoding="utf-8") as file:
        json.dump(sent, file)
    if call.args.get("slow"):
        time.sleep(20)
    return done([item(name=sent["to"], id=name, subject=sent["subject"], sender=sent["to"])])


def preview(call):
    return {"targets": [call.args["to"]], "count": 1}
"""
)


def add_mail(settings: Settings) -> None:
    """Put `read_`, `classify_`, `move_` and `send_messages` into a signed home."""
    for manifest, code in (_reading(), _classifying(), _moving(), _sending()):
        signed_executor(settings, manifest, code)


def fill_mailbox(mailbox: Path, messages: dict[str, dict[str, Any]]) -> None:
    """A mailbox at this path, with `messages` (id → sender, subject, text) in its inbox."""
    inbox = mailbox / "inbox"
    inbox.mkdir(parents=True)
    for name, message in messages.items():
        (inbox / f"{name}.json").write_text(json.dumps(message), encoding="utf-8")


def folder_of(mailbox: Path, name: str) -> list[str]:
    """The ids of the messages in one of its folders."""
    return sorted(path.stem for path in (mailbox / name).glob("*.json"))


def _reading() -> tuple[str, str]:
    return _HEAD.format(
        name="read_messages",
        top='effect = "pure"\nprovenance = "external"\nrender = "list"',
        it="Legge la posta",
        en="Reads mail",
        words_it='"posta", "mail", "messaggi"',
        words_en='"mail", "messages", "inbox"',
        answer_it="Ho letto {count|number} messaggi.",
        answer_en="I read {count|number} messages.",
        args='required = ["mailbox"]\n' + _MAILBOX,
        rights=_READS,
    ), _READ


def _classifying() -> tuple[str, str]:
    return _HEAD.format(
        name="classify_messages",
        top='effect = "pure"\nrender = "list"',
        it="Ordina la posta per argomento",
        en="Tells what mail is about",
        words_it='"classifica", "argomento"',
        words_en='"classify", "sort by topic"',
        answer_it="Ho guardato {count|number} messaggi.",
        answer_en="I looked at {count|number} messages.",
        args='required = ["entries"]\n' + _ENTRIES,
        rights='\n[[capabilities]]\nname = "compute:pure"\n',
    ), _CLASSIFY


def _moving() -> tuple[str, str]:
    top = 'effect = "checkable"\nreversible = true\nundo = "move_back"\nrender = "file_effect"'
    dst = """
[args.properties.dst]
type = "string"
description = { it = "cartella", en = "folder" }
x-metnos-type = "span"
"""
    return _HEAD.format(
        name="move_messages",
        top=top,
        it="Sposta la posta",
        en="Moves mail",
        words_it='"sposta", "archivia"',
        words_en='"move", "archive"',
        answer_it="Ho spostato {count|number} messaggi.",
        answer_en="I moved {count|number} messages.",
        args='required = ["mailbox", "entries", "dst"]\n' + _MAILBOX + _ENTRIES + dst,
        rights=_WRITES,
    ), _MOVE


def _sending() -> tuple[str, str]:
    more = """
[args.properties.to]
type = "string"
description = { it = "a chi", en = "to whom" }
x-metnos-type = "person"
x-metnos-sink = "recipient"

[args.properties.subject]
type = "string"
description = { it = "oggetto", en = "subject" }
x-metnos-type = "free"

[args.properties.text]
type = "string"
description = { it = "testo", en = "text" }
x-metnos-type = "free"

[args.properties.slow]
type = "boolean"
description = { it = "con calma", en = "slowly" }
x-metnos-type = "free"
"""
    return _HEAD.format(
        name="send_messages",
        top='effect = "blind"\nrender = "list"',
        it="Manda una mail",
        en="Sends a mail",
        words_it='"manda", "invia", "scrivi a"',
        words_en='"send", "write to", "mail"',
        answer_it="Ho mandato la mail a {sender}.",
        answer_en="I sent the mail to {sender}.",
        args='required = ["mailbox", "to", "text"]\n' + _MAILBOX + more,
        rights=_WRITES,
    ), _SEND
