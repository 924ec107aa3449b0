"""Saving what is attached to mail into a folder: each file under its own name, none in the place
of another.

A preview fetches the files too, since what is written must be known before it is agreed to.
"""

from __future__ import annotations

import email
from email.policy import default

from executors._sdk import making
from executors._sdk.imap import account_of, opened, safe_name
from executors._sdk.messages import by_folder, ids_of, known_of, missing, present
from executors._sdk.result import Failure, done, failed_item, from_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call

MAX_MESSAGE = 40 << 20
MOST_FILES = 100
MAX_TOTAL = 200 << 20
_FOLDERS = {"it": "Allegati", "en": "Attachments"}


def run(call: Call) -> dict[str, Any]:
    """One entry a file: `path`, `name`, `bytes`, `subject`; `wanted` when the name was taken."""
    entries: list[dict[str, Any]] = []
    taken: set[str] = set()
    gone: list[Any] = []
    for subject, name, data in _attached(call, gone):
        try:
            spot = _spot(call, name, taken)
            taken.add(spot.place.path)
            more = {"wanted": spot.wanted.path} if spot.wanted else {}
            entries.append(
                making.put(call, spot.place, [data], name=name, subject=subject, **more)
            )
        except (OSError, Failure) as exc:
            failed = from_exception(exc)
            if failed is None:
                raise
            entries.append(failed_item(failed.code, failed.detail, name=name, subject=subject))
        call.progress(len(entries), None)
    return done([*entries, *missing(gone)])


def preview(call: Call) -> dict[str, Any]:
    """The files that would be made. Raises `Failure("not_found")` when no message is there."""
    taken: set[str] = set()
    gone: list[Any] = []
    made = []
    for _, name, data in _attached(call, gone):
        spot = _spot(call, name, taken)
        taken.add(spot.place.path)
        made.append(making.foreseen(call, spot.place, data))
    if gone and not made:
        raise Failure("not_found", "none of these messages is there any more", path="")
    return making.previewed(made)


def _attached(call: Call, gone: list[Any]) -> Iterator[tuple[str, str, bytes]]:
    """Subject, name and bytes of each attachment, in the order of the messages; what is not there
    any more is added to `gone`."""
    count = total = 0
    known = known_of(call)
    for (account, folder), names in by_folder(ids_of(call)).items():
        with opened(account_of(call, account)) as box:
            there, lost = present(box, folder, names)
            gone += lost
            for one in there:
                raw = box.whole(one.uid, MAX_MESSAGE)
                if len(raw) >= MAX_MESSAGE:
                    raise Failure("too_large", "a message over 40 MB", limit=MAX_MESSAGE)
                message = email.message_from_bytes(raw, policy=default)
                subject = known.get(str(one)) or " ".join(str(message["subject"] or "").split())
                for part in message.walk():
                    name = _name(part)
                    if name is None:
                        continue
                    data = part.get_payload(decode=True)
                    data = data if isinstance(data, bytes) else b""
                    count, total = count + 1, total + len(data)
                    if count > MOST_FILES or total > MAX_TOTAL:
                        raise Failure("too_many", "100 files and 200 MB at most", limit=MOST_FILES)
                    yield subject, name, data


def _name(part: Any) -> str | None:
    """The name of an attached file; None for what is no file."""
    if part.is_multipart() or part.get_content_maintype() == "multipart":
        return None
    try:
        name = part.get_filename()
    except (ValueError, LookupError, IndexError, TypeError):
        name = None  # a header that cannot be read
    if not name and part.get_content_disposition() != "attachment":
        return None
    if name:
        return safe_name(str(name))
    return f"allegato.{part.get_content_subtype()}"[:60]


def _spot(call: Call, name: str, taken: set[str]) -> making.Spot:
    folder = call.args.get("path")
    if not folder:
        folder = f"{call.roots[0].rstrip('/')}/{_FOLDERS.get(call.lang, _FOLDERS['en'])}"
    ending = name.rpartition(".")[2] if "." in name[1:] else "bin"
    return making.spot_for(
        call, f"{str(folder).rstrip('/')}/{name}", ext=ending, taken=taken, default=name
    )
