"""Saving what is attached to mail into a folder: each file under its own name, none in the place
of another.

A preview fetches the files too, since what is written must be known before it is agreed to.
"""

from __future__ import annotations

import email
from email.policy import default

from executors._sdk import making
from executors._sdk.imap import account_of, opened
from executors._sdk.mail_text import file_name
from executors._sdk.messages import by_folder, ids_of, known_of, missing, present
from executors._sdk.result import Failure, done, failed_by, failed_item, from_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.imap import Box, MessageId

MAX_MESSAGE = 40 << 20
MOST_FILES = 100
MAX_TOTAL = 200 << 20
_FOLDERS = {"it": "Allegati", "en": "Attachments"}


def run(call: Call) -> dict[str, Any]:
    """One entry a file: `path`, `name`, `bytes`, `subject`; `wanted` when the name was taken. A
    message that cannot be read, or is too large, is an entry that failed."""
    attached = _Attached(call)
    entries: list[dict[str, Any]] = []
    taken: set[str] = set()
    for subject, name, data in attached.files():
        try:
            spot = _spot(call, name, taken)
            taken.add(spot.place.path)
            more: dict[str, Any] = {"wanted": spot.wanted.path} if spot.wanted else {}
            entries.append(
                making.put(call, spot.place, [data], name=name, subject=subject, **more)
            )
        except (OSError, Failure) as exc:
            failed = from_exception(exc)
            if failed is None:
                raise
            entries.append(failed_item(failed.code, failed.detail, name=name, subject=subject))
        call.progress(len(entries), None)
    return done([*entries, *attached.lost])


def preview(call: Call) -> dict[str, Any]:
    """The files that would be made. Raises `Failure` when none could."""
    attached = _Attached(call)
    taken: set[str] = set()
    made = []
    for _, name, data in attached.files():
        spot = _spot(call, name, taken)
        taken.add(spot.place.path)
        made.append(making.foreseen(call, spot.place, data))
    if attached.lost and not made:
        error = attached.lost[0]["error"]
        raise Failure(error["code"], error["detail"], **error["params"])
    return making.previewed(made)


class _Attached:
    """What is attached to the messages of a call. `lost`: entries of those that could not be
    looked through, complete once `files` is through."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._known = known_of(call)
        self._count = self._total = 0
        self.lost: list[dict[str, Any]] = []

    def files(self) -> Iterator[tuple[str, str, bytes]]:
        """Subject, name and bytes of each, in the order of the messages."""
        for (account, folder), names in by_folder(ids_of(self._call)).items():
            seen: set[MessageId] = set()
            try:
                with opened(account_of(self._call, account)) as box:
                    yield from self._of_folder(box, folder, names, seen)
            except (Failure, OSError) as exc:
                failed = from_exception(exc)
                if failed is None:
                    raise
                self.lost += [self._failed(failed, one) for one in names if one not in seen]

    def _of_folder(
        self, box: Box, folder: str, names: list[MessageId], seen: set[MessageId]
    ) -> Iterator[tuple[str, str, bytes]]:
        there, gone = present(box, folder, names)
        self.lost += missing(gone)
        seen.update(gone)
        for one in there:
            raw = box.whole(one.uid, MAX_MESSAGE)
            seen.add(one)
            if len(raw) >= MAX_MESSAGE:
                failed = Failure("too_large", "a message over 40 MB", limit=MAX_MESSAGE)
                self.lost.append(self._failed(failed, one))
                continue
            message = email.message_from_bytes(raw, policy=default)
            del raw
            subject = self._known.get(str(one)) or _subject(message)
            for part in message.walk():
                name = file_name(part, self._call.lang)
                if name is None:
                    continue
                data = part.get_payload(decode=True)
                data = data if isinstance(data, bytes) else b""
                if self._count == MOST_FILES or self._total + len(data) > MAX_TOTAL:
                    failed = Failure("too_many", "100 files and 200 MB at most",
                                     count=self._count + 1, limit=MOST_FILES)  # fmt: skip
                    self.lost.append(failed_by(failed, id=str(one), name=name, subject=subject))
                    continue
                self._count, self._total = self._count + 1, self._total + len(data)
                yield subject, name, data

    def _failed(self, failure: Failure, one: MessageId) -> dict[str, Any]:
        subject = self._known.get(str(one), "")
        return failed_by(failure, id=str(one), name=subject, subject=subject)


def _subject(message: Any) -> str:
    try:
        return " ".join(str(message["subject"] or "").split())
    except (ValueError, LookupError, IndexError, TypeError):
        return ""  # a header that cannot be read


def _spot(call: Call, name: str, taken: set[str]) -> making.Spot:
    folder = call.args.get("path")
    if not folder:
        folder = f"{call.roots[0].rstrip('/')}/{_FOLDERS.get(call.lang, _FOLDERS['en'])}"
    ending = name.rpartition(".")[2] if "." in name[1:] else "bin"
    return making.spot_for(
        call, f"{str(folder).rstrip('/')}/{name}", ext=ending, taken=taken, default=name
    )
