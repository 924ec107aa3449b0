"""Sending mail: one message to each address, with files, over the account's own server.

Every message has an id made from the turn and its place in it, so that a call that is repeated
makes the same message; one that lies in the folder of sent mail already is not sent again. A copy
is kept there where the server keeps none by itself.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import mimetypes
import os
import re
import smtplib
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.policy import SMTP

from executors._sdk import imap
from executors._sdk.files import locate, opened
from executors._sdk.imap import Box, MessageId, account_of, mail_accounts
from executors._sdk.mail_text import safe_name
from executors._sdk.result import Failure, at_host, done, failed_by, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from executors._sdk.call import Call

TIMEOUT_S = 30.0
MAX_ATTACHED = 24 << 20
"""Most providers take 25 MB with everything."""
_ADDRESS = re.compile(r"[^@\s<>,;\"()]+@[^@\s<>,;\"()]+\.[^@\s<>,;\"()]{2,}")
MOST_BEFORE = 18
_REPLY = re.compile(r"(?i)(?:re|r|aw|sv)\s*:")
_SHOWN = ("subject", "title", "name", "text", "content", "value", "path", "url")
# Servers that keep what is sent through them; another copy would be a second one.
_KEEPS = ("gmail.com", "googlemail.com", "office365.com", "outlook.com")


def run(call: Call) -> dict[str, Any]:
    """One entry an address: `to`, `subject`, `message_id`, `account`; `already` says that this
    very message was sent before. Once the server is gone the rest fails with it."""
    account = _account(call)
    subject, body, files = _subject(call), _body(call), _files(call)
    entries: list[dict[str, Any]] = []
    addresses = _addresses(call)
    lost: Failure | None = None
    with imap.opened(account) as box:
        before = _conversation(call, box)
        sent = _sent_folder(box)
        with _server(account) as server:
            for number, to in enumerate(addresses, 1):
                message = _message(call, account, to, subject, body, files, before)
                key = str(message["Message-ID"])
                fields: dict[str, Any] = {"to": to, "subject": subject, "message_id": key}
                try:
                    if lost is not None:
                        raise lost
                    if sent and box.uids(f"HEADER Message-ID {imap.quoted(key)}"):
                        entries.append(item(**fields, already=True, account=account["name"]))
                        continue
                    _send(server, account, message, to)
                    entries.append(item(**fields, account=account["name"]))
                except (OSError, Failure, *imap.IMAP_ERRORS) as exc:
                    failed = _failure(exc, str(account["imap_host"]))
                    entries.append(failed_by(failed, **fields))
                    if failed.code in {"network", "timeout"}:
                        lost = Failure(failed.code, failed.detail, **failed.params)
                    continue
                if sent and not account["smtp_host"].endswith(_KEEPS):
                    # It is on its way: a copy that cannot be kept makes no failure of that.
                    with suppress(Failure, OSError, *imap.IMAP_ERRORS):
                        box.append(message.as_bytes(policy=SMTP), sent)
                call.progress(number, len(addresses))
    return done(entries)


def _send(
    server: smtplib.SMTP, account: Mapping[str, Any], message: EmailMessage, to: str
) -> None:
    """Hand a message over. Raises `Failure`; `is_unsure` when the server went away meanwhile."""
    host = str(account["smtp_host"])
    try:
        server.send_message(message, account["address"], [_on_the_wire(to)])
    except (OSError, smtplib.SMTPException) as exc:
        failed = _failure(exc, host)
        raise (failed.unsure() if failed.code in {"network", "timeout"} else failed) from exc


def preview(call: Call) -> dict[str, Any]:
    """To whom, with what. Raises `Failure` for what is no address, for files that cannot be read
    or are too large together."""
    account = _account(call)
    size = sum(_size(call, path) for path in _paths(call))
    if size > MAX_ATTACHED:
        raise Failure("too_large", "more than 24 MB of files", size=size, limit=MAX_ATTACHED)
    body = _body(call)
    if not body.strip() and not _paths(call):
        raise Failure("missing_input", "there is nothing to send: a text or a file is needed")
    return {
        "targets": _addresses(call),
        "count": len(_addresses(call)),
        "subject": _subject(call),
        "body": body[:2000],
        "from": account["address"],
        "files": [safe_name(path) for path in _paths(call)],
        "bytes": size,
    }


def _account(call: Call) -> dict[str, Any]:
    """The account that a mail among the entries came to, else the first."""
    answered = _answered(call)
    if answered is not None:
        return account_of(call, MessageId.read(answered["id"]).account)
    return mail_accounts(call)[0]


def _answered(call: Call) -> dict[str, Any] | None:
    """The mail that this is an answer to: the only entry, when it is one from this address."""
    entries = [e for e in call.args.get("entries") or () if isinstance(e, dict)]
    if len(entries) != 1 or not entries[0].get("message_id") or not entries[0].get("id"):
        return None
    to = [address.casefold() for address in _addresses(call)]
    return entries[0] if to == [str(entries[0].get("address")).casefold()] else None


def _addresses(call: Call) -> list[str]:
    found = []
    for said in call.args["to"]:
        _, address = email.utils.parseaddr(said)
        if not _ADDRESS.fullmatch(address) or len(email.utils.getaddresses([said])) != 1:
            raise Failure("invalid_args", f"{said[:80]!r} is no mail address")
        found.append(address)
    return list({address.casefold(): address for address in found}.values())


def _on_the_wire(to: str) -> str:
    """An address as every server takes it: its domain in ASCII."""
    if to.isascii():
        return to
    head, _, domain = to.rpartition("@")
    try:
        return f"{head}@{domain.encode('idna').decode('ascii')}"
    except UnicodeError as exc:
        raise Failure("invalid_args", f"{to[:80]!r} is no mail address") from exc


def _conversation(call: Call, box: Box) -> list[str]:
    """The ids of the conversation that an answer goes on, the answered one last. Where that is
    not there any more, it alone."""
    answered = _answered(call)
    if answered is None:
        return []
    last, before = str(answered["message_id"]), []
    name = MessageId.read(answered["id"])
    with suppress(Failure, *imap.IMAP_ERRORS):
        box.open(name.folder)
        if box.validity == name.validity:
            before = [one for h in box.heads([name.uid]) for one in imap.chain_of(h.message)]
    # As long chains are cut (RFC 5322 sets no bound, lines do): the first and the last ones.
    before = [one for one in before if one != last]
    return [*before[:1], *before[1:][-MOST_BEFORE:], last]


def _subject(call: Call) -> str:
    said = " ".join(str(call.args.get("subject") or "").split())
    if said:
        return said[:300]
    answered = _answered(call)
    if answered is not None and str(answered.get("subject") or "-") != "-":
        old = " ".join(str(answered["subject"]).split())[:290]
        return old if _REPLY.match(old) else f"Re: {old}"
    first = next((line.strip() for line in _body(call).split("\n") if line.strip()), "")
    return first[:60] or ", ".join(safe_name(path) for path in _paths(call))[:60]


def _body(call: Call) -> str:
    said = call.args.get("body")
    text = _plain(said) if said else ""
    entries = () if _answered(call) else call.args.get("entries") or ()
    told = [_told(e) for e in entries if not _is_file(e)]
    listed = "\n".join(line for line in told if line)
    return f"{text}\n\n{listed}".strip() if listed else text


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("text") or value.get("content") or "")
    return str(value)


def _told(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    found = [str(entry[k]) for k in _SHOWN if entry.get(k) and not isinstance(entry[k], dict)]
    return " · ".join(found)


def _is_file(entry: Any) -> bool:
    return isinstance(entry, dict) and str(entry.get("path") or "").startswith("/")


def _paths(call: Call) -> list[str]:
    listed = [str(path) for path in call.args.get("attachments") or ()]
    listed += [str(e["path"]) for e in call.args.get("entries") or () if _is_file(e)]
    return list(dict.fromkeys(listed))


def _size(call: Call, path: str) -> int:
    with opened(locate(call, path)) as (_, info):
        return info.st_size


def _files(call: Call) -> list[tuple[str, bytes]]:
    found, total = [], 0
    for path in _paths(call):
        with opened(locate(call, path)) as (fd, _), os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(MAX_ATTACHED - total + 1)
        total += len(data)
        if total > MAX_ATTACHED:
            raise Failure("too_large", "more than 24 MB of files", size=total, limit=MAX_ATTACHED)
        found.append((safe_name(path), data))
    return found


def _message(
    call: Call,
    account: Mapping[str, Any],
    to: str,
    subject: str,
    body: str,
    files: list[tuple[str, bytes]],
    before: list[str],
) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    message["From"] = account["address"]
    message["To"] = _on_the_wire(to)
    message["Subject"] = subject
    message["Date"] = email.utils.format_datetime(call.now)
    domain = str(account["address"]).rpartition("@")[2]
    message["Message-ID"] = f"<{_key(call, to)}@{domain}>"
    answered = _answered(call)
    if answered is not None:
        message["In-Reply-To"] = str(answered["message_id"])
        message["References"] = " ".join(before)
    message.set_content(body or " ")
    for name, data in files:
        kind, _ = mimetypes.guess_type(name)
        main, _, sub = (kind or "application/octet-stream").partition("/")
        message.add_attachment(data, maintype=main, subtype=sub, filename=name)
    return message


def _key(call: Call, to: str) -> str:
    """The same for the same message of the same turn, and for no other."""
    parts = [call.turn_id, str(call.step), to.casefold(), _subject(call), _body(call)]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:32]


def _sent_folder(box: Box) -> str | None:
    name = box.find_folder("sent")
    if name is not None:
        box.open(name)
    return name


@contextmanager
def _server(account: Mapping[str, Any]) -> Iterator[smtplib.SMTP]:
    host = str(account["smtp_host"])
    try:
        server = _connected(account)
    except smtplib.SMTPAuthenticationError as exc:
        raise Failure(
            "wrong_credentials", "the server refuses name or password", name=account["name"]
        ) from exc
    except (OSError, smtplib.SMTPException) as exc:
        raise _failure(exc, host) from exc
    try:
        yield server
    finally:
        # What was sent is sent, however the server takes leave.
        with suppress(OSError, smtplib.SMTPException):
            server.quit()
        server.close()


def _connected(account: Mapping[str, Any]) -> smtplib.SMTP:
    host, port = account["smtp_host"], int(account["smtp_port"])
    safety = account["smtp_safety"]
    server: smtplib.SMTP
    if safety == "tls":
        server = smtplib.SMTP_SSL(host, port, timeout=TIMEOUT_S, context=imap.tls())
    else:
        server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
        if safety == "starttls":
            server.starttls(context=imap.tls())
    server.ehlo()
    if server.has_extn("auth"):
        _log_in(server, account["user"], account["password"])
    elif safety != "none":
        raise Failure("wrong_credentials", "the server takes no login", name=account["name"])
    return server


def _log_in(server: smtplib.SMTP, user: str, password: str) -> None:
    """As `SMTP.login`, which knows ASCII alone; other signs go as UTF-8 (RFC 4616)."""
    if f"{user}{password}".isascii():
        server.login(user, password)
        return
    token = base64.b64encode(f"\0{user}\0{password}".encode()).decode("ascii")
    code, said = server.docmd("AUTH", f"PLAIN {token}")
    if code not in {235, 503}:
        raise smtplib.SMTPAuthenticationError(code, said)


def _failure(exc: Exception, host: str) -> Failure:
    match exc:
        case Failure():
            return exc
        case smtplib.SMTPRecipientsRefused():
            return Failure("not_found", "the server does not know this address")
        case smtplib.SMTPNotSupportedError():
            return Failure("unsupported", "this mail server takes no such address")
        case smtplib.SMTPServerDisconnected() | smtplib.SMTPConnectError():
            return Failure("network", "the mail server hung up", host=host)
        case smtplib.SMTPResponseException():
            return Failure("http_status", f"the mail server refuses: {exc.smtp_code}",
                           status=exc.smtp_code)  # fmt: skip
        case smtplib.SMTPException():
            return Failure("http_status", "the mail server refuses")
        case OSError():
            return at_host(exc, host) or Failure("network", "no connection", host=host)
    return imap.refusal(exc, host)
