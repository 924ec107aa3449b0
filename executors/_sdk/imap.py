"""Mailboxes over IMAP: logging in, finding folders and messages, without ever loading a mailbox.

`imap_tools` speaks the protocol through `imaplib`, which connects where the engine's broker says.
Nothing is marked as read by looking. What uses this declares `requires = ["imap-tools"]`.

A message is known outside as one text, `ACCOUNT|FOLDER|UIDVALIDITY|UID`, which no other message
ever has (RFC 3501, 2.3.1.1); when a server numbered a folder anew, the old name means nothing.
"""

from __future__ import annotations

import imaplib
import re
import ssl
from contextlib import contextmanager, suppress

from imap_tools import BaseMailBox, MailBox, MailBoxStartTls, MailBoxUnencrypted, MailMessage
from imap_tools.errors import ImapToolsError, MailboxLoginError
from imap_tools.utils import encode_folder

from executors._sdk import mail_text
from executors._sdk.result import Failure, at_host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from executors._sdk.call import Call

TIMEOUT_S = 20.0
IMAP_ERRORS = (imaplib.IMAP4.error, ImapToolsError)
# Of each message so much is fetched: headers and the beginning of the text.
HEAD_BYTES = 48 * 1024
_BATCH = 50
_IMAP4_LINE = 10_000_000  # one answer line of a server, as imaplib allows
# Folders that people call by other names; RFC 6154 tells which is which.
_USES = {
    "\\Sent": "sent posta_inviata inviata inviati inviate sent_items sent_mail sent_messages",
    "\\Trash": "trash cestino bin deleted deleted_items eliminati",
    "\\Junk": "junk spam indesiderata posta_indesiderata",
    "\\Drafts": "drafts bozze draft",
    "\\Archive": "archive archivio archiviati archiviata",
    "\\All": "all tutti all_mail",
}
_INBOX = frozenset("inbox in_arrivo posta_in_arrivo arrivo entrata".split())


_MESSAGE_ID = re.compile(r"<[^<>\s]{1,300}>")


class MessageId:
    """The parts of a message's name."""

    __slots__ = ("account", "folder", "uid", "validity")

    def __init__(self, account: str, folder: str, validity: int, uid: int) -> None:
        self.account, self.folder, self.validity, self.uid = account, folder, validity, uid

    def __str__(self) -> str:
        return f"{self.account}|{self.folder}|{self.validity}|{self.uid}"

    @classmethod
    def read(cls, text: object) -> MessageId:
        """Raises `Failure` for what names no message."""
        parts = str(text).rsplit("|", 2)
        account, bar, folder = parts[0].partition("|")
        if len(parts) != 3 or not bar or not all(p.isascii() and p.isdigit() for p in parts[1:]):
            raise Failure("invalid_args", "not the id of a message: take those of read_messages")
        return cls(account, folder, int(parts[1]), int(parts[2]))


class Box:
    """One account, logged in."""

    def __init__(self, account: Mapping[str, Any], box: BaseMailBox) -> None:
        self.account = account
        self.name: str = account["name"]
        self._box = box
        self._folders: list[Any] | None = None
        self._abilities: frozenset[str] | None = None
        self.validity = 0

    def open(self, folder: str, *, readonly: bool = True) -> str:
        """Open a folder as people call it; its own name. Raises `Failure("not_found")`."""
        name = self.find_folder(folder)
        if name is None:
            known = ", ".join(f.name for f in self._listed()[:20])
            raise Failure("not_found", f"there is no folder {folder!r}; there are: {known}",
                          path=folder)  # fmt: skip
        status = self._box.folder.status(name, ["UIDVALIDITY"])
        self.validity = int(status["UIDVALIDITY"])
        self._box.folder.set(name, readonly=readonly)
        return name

    def find_folder(self, said: str) -> str | None:
        """The folder that is meant: by its whole name, its last part, or what it is for."""
        wanted = _folded(said)
        if not wanted or wanted in _INBOX:
            return "INBOX"
        folders = self._listed()
        for folder in folders:
            if _folded(folder.name) == wanted:
                return str(folder.name)
        last = [f for f in folders if _folded(f.name.rsplit(f.delim or "/", 1)[-1]) == wanted]
        if len(last) == 1:
            return str(last[0].name)
        for use, words in _USES.items():
            if wanted in words.split():
                marked = [f for f in folders if use.lower() in {x.lower() for x in f.flags}]
                named = [f for f in folders if _folded(f.name) in words.split()]
                if marked or named:
                    return str((marked or named)[0].name)
        return None

    def make_folder(self, name: str) -> str:
        """Make a folder with the separator of this server."""
        clean = folder_name(name, self.separator)
        self._box.folder.create(clean)
        self._folders = None
        return clean

    @property
    def separator(self) -> str:
        """What stands between a folder and one in it."""
        return next((f.delim for f in self._listed() if f.delim), "/")

    def uids(self, criteria: str) -> list[int]:
        """Numbers of the messages of the open folder that fit, the newest last."""
        try:
            words: Any = criteria.encode()
            status, data = self._box.client.uid("SEARCH", "CHARSET", "UTF-8", words)
        except imaplib.IMAP4.error:
            status, data = "NO", []
        if status != "OK":
            # Not every server knows UTF-8; what it then cannot search is sifted by the caller.
            plain = criteria.encode("ascii", "ignore").decode()
            status, data = self._box.client.uid("SEARCH", plain)
        if status != "OK":
            raise Failure("http_status", "the mail server does not search")
        return sorted(int(word) for word in b" ".join(part for part in data if part).split())

    def heads(self, uids: Sequence[int]) -> Iterator[Head]:
        """The beginnings of these messages, in this order, a batch at a time."""
        for at in range(0, len(uids), _BATCH):
            batch = uids[at : at + _BATCH]
            found = {head.uid: head for head in self._fetch(batch)}
            yield from (found[uid] for uid in batch if uid in found)

    def whole(self, uid: int, most: int) -> bytes:
        """A message as it is, `most` bytes at most."""
        status, data = self._box.client.uid("FETCH", str(uid), f"(BODY.PEEK[]<0.{most}>)")
        if status != "OK":
            raise Failure("not_found", "the message is not there any more", path=str(uid))
        for part in data:
            if isinstance(part, tuple):
                return bytes(part[1])
        raise Failure("not_found", "the message is not there any more", path=str(uid))

    def _fetch(self, uids: Sequence[int]) -> Iterator[Head]:
        what = f"(UID FLAGS INTERNALDATE RFC822.SIZE BODYSTRUCTURE BODY.PEEK[]<0.{HEAD_BYTES}>)"
        wanted = ",".join(map(str, uids))
        status, data = self._box.client.uid("FETCH", wanted, what)
        if status != "OK":
            raise Failure("network", "the mail server does not give its messages")
        # A message is some pieces, of which tuples hold literals, ended by one that closes it.
        pieces: list[Any] = []
        for piece in data:
            pieces.append(piece)
            if not isinstance(piece, tuple):
                if any(isinstance(one, tuple) for one in pieces):
                    yield Head(pieces)
                pieces = []

    def move(self, uids: Sequence[int], folder: str) -> None:
        """Move messages of the open folder. What others have marked as deleted stays: EXPUNGE
        without numbers would end that for good."""
        with self._changing():
            self._move(",".join(map(str, uids)), set(uids), encode_folder(folder))

    def _move(self, numbers: str, uids: set[int], target: bytes) -> None:
        if self._can("MOVE"):
            self._uid("MOVE", numbers, target)
            return
        others = set(self.uids("DELETED")) - uids
        self._uid("COPY", numbers, target)
        self._uid("STORE", numbers, "+FLAGS", r"(\Deleted)")
        if self._can("UIDPLUS"):
            self._uid("EXPUNGE", numbers)
        elif not others:
            self._box.client.expunge()

    def _uid(self, command: str, *args: Any) -> None:
        status, data = self._box.client.uid(command, *args)
        if status != "OK":
            raise Failure("http_status", f"the mail server refuses: {_short(data)}")

    def _can(self, name: str) -> bool:
        """What a server says after the login: before it, many tell less."""
        if self._abilities is None:
            _, data = self._box.client.capability()
            said = b" ".join(part for part in data if isinstance(part, bytes))
            self._abilities = frozenset(said.decode("ascii", "replace").upper().split())
        return name in self._abilities

    def flag(self, uids: Sequence[int], flags: Sequence[str], *, on: bool) -> None:
        # The library's own way ends with EXPUNGE, as its way to move does.
        sign, marks = "+" if on else "-", " ".join(flags)
        with self._changing():
            self._uid("STORE", ",".join(map(str, uids)), f"{sign}FLAGS", f"({marks})")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """A server that goes away in the middle may have done it all the same."""
        host = str(self.account["imap_host"])
        try:
            yield
        except OSError as exc:
            raise (at_host(exc, host) or Failure("network", host=host)).unsure() from exc
        except imaplib.IMAP4.abort as exc:
            raise refusal(exc, host).unsure() from exc

    def append(self, message: bytes, folder: str) -> None:
        self._box.append(message, folder, flag_set=["\\Seen"])

    def _listed(self) -> list[Any]:
        if self._folders is None:
            self._folders = list(self._box.folder.list())
        return self._folders


class Head:
    """A message as far as it was fetched."""

    def __init__(self, pieces: Sequence[Any]) -> None:
        meta = mail_text.structure(pieces)
        bodies = [p[1] for p in pieces if isinstance(p, tuple) and b"BODY[" in p[0].upper()]
        raw = bytes(bodies[-1]) if bodies else b""
        self.uid = int(_in(rb"UID (\d+)", meta) or 0)
        self.size = int(_in(rb"RFC822\.SIZE (\d+)", meta) or len(raw))
        self.received = _in(rb'INTERNALDATE "([^"]+)"', meta).decode("ascii", "replace")
        self.flags = frozenset(_in(rb"FLAGS \(([^)]*)\)", meta).decode("ascii", "replace").split())
        self.is_whole = len(raw) >= self.size
        self.message = MailMessage.from_bytes(mail_text.readable(raw))
        self._meta = meta

    def attachments(self, lang: str) -> list[str]:
        """Names of what is attached, as far as the server tells them."""
        return mail_text.attached(self._meta, lang)

    @property
    def is_unread(self) -> bool:
        return "\\Seen" not in self.flags


def header_of(message: Any, name: str) -> str:
    """The first header of that name on one line, "" where there is none."""
    values = message.headers.get(name) or ("",)
    return " ".join(str(values[0]).split())[:300]


def chain_of(message: Any) -> list[str]:
    """The ids of the messages before this one in its conversation, the first one first."""
    values = message.headers.get("references") or message.headers.get("in-reply-to") or ("",)
    return list(dict.fromkeys(_MESSAGE_ID.findall(str(values[0])[:20_000])))


def thread_of(message: Any) -> str:
    return next(iter(chain_of(message)), "") or header_of(message, "message-id")


@contextmanager
def opened(account: Mapping[str, Any]) -> Iterator[Box]:
    """An account's mailbox, logged in and out. Raises `Failure`: `wrong_credentials`, `network`,
    `timeout`, `tls_failed`, `certificate_expired`, `host_not_found`, `host_denied`."""
    host = str(account["imap_host"])
    try:
        box = _connected(account)
        try:
            try:
                plain = f"{account['user']}{account['password']}".isascii()
                login = box.login if plain else box.login_utf8
                login(account["user"], account["password"], initial_folder=None)
            except MailboxLoginError as exc:
                raise Failure(
                    "wrong_credentials",
                    "the server refuses name or password",
                    name=account["name"],
                ) from exc
            yield Box(account, box)
        finally:
            with suppress(OSError, imaplib.IMAP4.error, ImapToolsError):
                box.client.logout()
            with suppress(OSError):
                box.client.shutdown()
    except OSError as exc:
        raise at_host(exc, host) or Failure("network", "no connection", host=host) from exc
    except IMAP_ERRORS as exc:
        raise refusal(exc, host) from exc
    except UnicodeError as exc:
        raise Failure("http_status", f"the mail server refuses: {_short(exc)}") from exc


def refusal(exc: Exception, host: str) -> Failure:
    """What an error of the protocol stands for."""
    if isinstance(exc, imaplib.IMAP4.abort):
        return Failure("network", "the mail server hung up", host=host)
    return Failure("http_status", f"the mail server refuses: {_short(exc)}")


def _connected(account: Mapping[str, Any]) -> BaseMailBox:
    host, port = account["imap_host"], int(account["imap_port"])
    match account["imap_safety"]:
        case "none":
            return MailBoxUnencrypted(host, port, timeout=TIMEOUT_S)
        case "starttls":
            return MailBoxStartTls(host, port, timeout=TIMEOUT_S, ssl_context=tls())
    return MailBox(host, port, timeout=TIMEOUT_S, ssl_context=tls())


def tls() -> ssl.SSLContext:
    """Certificates are checked, and against the name of the server."""
    return ssl.create_default_context()


def mail_accounts(call: Call) -> list[dict[str, Any]]:
    """The mail accounts of a call. Raises `Failure("needs_credentials")` without one."""
    found = [account for account in call.accounts if account["kind"] == "mail"]
    if not found:
        raise Failure("needs_credentials", "there is no mail account", kind="mail")
    return found


def account_of(call: Call, name: str) -> dict[str, Any]:
    """The account that a message's name says. Raises `Failure`."""
    for account in mail_accounts(call):
        if account["name"] == name:
            return account
    raise Failure("not_found", f"there is no account {name!r}", path=name)


def quoted(text: str) -> str:
    """A text as a search key: quoted, on one line."""
    flat = " ".join(text.split())[:200]
    return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'


def folder_name(said: str, separator: str) -> str:
    """A new folder's name. Raises `Failure(invalid_args)` for what is none."""
    clean = re.sub(r"[\x00-\x1f\x7f%*]", "", said).replace("/", separator)
    clean = clean.strip(separator + " ")
    if not clean or len(clean) > 200 or "." in (clean[-1], clean[0]) or "//" in clean:
        raise Failure("invalid_args", "that is no name for a folder")
    return clean


def imap_day(moment: datetime) -> str:
    """`18-Mar-2026`, in no language."""
    months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
    return f"{moment.day:02d}-{months[moment.month - 1]}-{moment.year}"


def _in(pattern: bytes, text: bytes) -> bytes:
    match = re.search(pattern, text, re.I)
    return match[1] if match else b""


def _folded(text: str) -> str:
    return re.sub(r"[\s.]+", "_", text.strip().casefold())


def _short(exc: object) -> str:
    return " ".join(str(exc).split())[:200]
