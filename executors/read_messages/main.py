"""Mail: the newest messages that fit, from one account or from all, nothing marked as read.

A mailbox is searched by its server and only the beginnings of the messages that are shown are
fetched, whatever its size.
"""

from __future__ import annotations

import email.utils
import html
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from executors._sdk.imap import (
    Box,
    Head,
    MessageId,
    header_of,
    imap_day,
    mail_accounts,
    opened,
    quoted,
    thread_of,
)
from executors._sdk.mail_text import bodies
from executors._sdk.result import Failure, done, from_exception, item
from executors._sdk.windows import NoWindow, read_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MOST = 20
MAX_TEXT = 2000
_BLOCKS = re.compile(r"(?is)<(script|style|head)\b.*?</\1\s*>")
_BREAKS = re.compile(r"(?i)<(?:br|/p|/div|/tr|/li|/h\d)\b[^>]*>")
_TAGS = re.compile(r"(?s)<[^>]*>")


def run(call: Call) -> dict[str, Any]:
    """One entry a message, the newest first: `id`, `account`, `folder`, `sender`, `address`, `to`,
    `subject`, `date`, `unread`, `text` (2000 characters at most, `cut` when there is more),
    `attachments` (names), `message_id`, `thread` (the id of the message that its conversation
    began with, so that entries can be grouped by it)."""
    window = _window(call)
    most = int(call.args.get("max_results") or MOST)
    found: list[dict[str, Any]] = []
    available, last = 0, None
    failed: list[str] = []
    accounts = mail_accounts(call)
    for number, account in enumerate(accounts, 1):
        try:
            with opened(account) as box:
                entries, count = _read(call, box, window, most)
                found += entries
                available += count
        except (Failure, OSError) as exc:
            failure = from_exception(exc)
            if failure is None:
                raise
            last, failed = failure, [*failed, str(account["name"])]
        call.progress(number, len(accounts))
    if last is not None and len(failed) == len(accounts):
        raise last
    found.sort(key=lambda entry: entry["date"], reverse=True)
    shown = found[:most]
    more: dict[str, Any] = {"unreached": ", ".join(failed)} if failed else {}
    unread = sum(entry["unread"] for entry in shown)
    return done(
        shown, available=available, truncated=available > len(shown), unread=unread, **more
    )


def _read(
    call: Call, box: Box, window: tuple[datetime, datetime] | None, most: int
) -> tuple[list[dict[str, Any]], int]:
    args = call.args
    folder = box.open(str(args.get("folder") or ""))
    sender, subject = (str(args.get(k) or "") for k in ("from_contains", "subject_contains"))
    keys = []
    if args.get("unseen_only"):
        keys.append("UNSEEN")
    if sender:
        keys.append(f"FROM {quoted(sender)}")
    if subject:
        keys.append(f"SUBJECT {quoted(subject)}")
    if window:
        # A server's day may begin elsewhere: a day more at each end, the moment decides below.
        keys.append(f"SINCE {imap_day(_shifted(window[0], -1))}")
        keys.append(f"BEFORE {imap_day(_shifted(window[1], 2))}")
    uids = box.uids(" ".join(keys) or "ALL")
    entries: list[dict[str, Any]] = []
    passed = 0
    for head in box.heads(uids[::-1]):
        received = _received(head)
        if (window and not window[0] <= received < window[1]) or not _fits(head, sender, subject):
            passed += 1
            continue
        name = MessageId(box.name, folder, box.validity, head.uid)
        entries.append(_entry(call, head, name, received))
        if len(entries) >= most:
            break
    return entries, len(uids) - passed


def _entry(call: Call, head: Head, name: MessageId, received: datetime) -> dict[str, Any]:
    message = head.message
    text = _text(head)
    sender = message.from_values
    fields: dict[str, Any] = {
        "id": str(name),
        "account": name.account,
        "folder": name.folder,
        "sender": (sender.name or sender.email) if sender else "",
        "address": sender.email if sender else "",
        "to": ", ".join(message.to),
        "subject": " ".join(message.subject.split()) or "-",
        "date": received.astimezone(ZoneInfo(call.tz)).isoformat(timespec="seconds"),
        "unread": head.is_unread,
        "text": text[:MAX_TEXT],
        "size": head.size,
        "message_id": header_of(message, "message-id"),
        "thread": thread_of(message),
    }
    if len(text) > MAX_TEXT or not head.is_whole:
        fields["cut"] = True
    attachments = head.attachments(call.lang)
    if attachments:
        fields["attachments"] = ", ".join(attachments)
    return item(**fields)


def _text(head: Head) -> str:
    plain, marked = bodies(head.message.obj)
    if not plain.strip() and marked:
        bare = _TAGS.sub("", _BREAKS.sub("\n", _BLOCKS.sub("", marked)))
        plain = html.unescape(bare)
    lines = [" ".join(line.split()) for line in plain.replace("\r", "").split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _fits(head: Head, sender: str, subject: str) -> bool:
    """Whether a message has what was looked for: not every server finds what it says."""
    message = head.message
    whose = " ".join([message.from_, *(v.name for v in [message.from_values] if v)])
    return _holds(whose, sender) and _holds(message.subject, subject)


def _holds(text: str, wanted: str) -> bool:
    words = wanted.casefold().split()
    return not wanted or all(word in text.casefold() for word in words)


def _received(head: Head) -> datetime:
    """When the server got it; a server that does not tell leaves the sender's word."""
    try:
        return datetime.strptime(head.received.strip(), "%d-%b-%Y %H:%M:%S %z")
    except ValueError:
        pass
    try:
        said = email.utils.parsedate_to_datetime(head.message.date_str)
        return said.astimezone(UTC) if said.tzinfo else said.replace(tzinfo=UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return datetime(1970, 1, 1, tzinfo=UTC)


def _window(call: Call) -> tuple[datetime, datetime] | None:
    said = call.args.get("time_window")
    if not said:
        return None
    try:
        return read_window(said, call.now, ZoneInfo(call.tz))
    except NoWindow as exc:
        raise Failure("invalid_args", f"time_window: {exc}") from exc


def _shifted(moment: datetime, days: int) -> datetime:
    return datetime.fromtimestamp(moment.timestamp() + days * 86_400, UTC)
