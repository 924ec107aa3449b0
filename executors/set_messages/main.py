"""Marking mail as read, unread, important or not; the same mark twice is the same mark."""

from __future__ import annotations

from executors._sdk.imap import account_of, opened
from executors._sdk.messages import by_folder, ids_of, known_of, missing, present, previewed
from executors._sdk.result import done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_MARKS = {
    "read": ("\\Seen", True),
    "unread": ("\\Seen", False),
    "flagged": ("\\Flagged", True),
    "unflagged": ("\\Flagged", False),
}


def run(call: Call) -> dict[str, Any]:
    """One entry a message: `id`, `subject`, `mark`."""
    entries = []
    ids, known = ids_of(call), known_of(call)
    mark = call.args["mark"]
    flag, on = _MARKS[mark]
    for (account, folder), names in by_folder(ids).items():
        with opened(account_of(call, account)) as box:
            there, gone = present(box, folder, names, readonly=False)
            entries += missing(gone)
            if there:
                box.flag([name.uid for name in there], [flag], on=on)
            entries += [
                item(id=str(name), subject=known.get(str(name), ""), mark=mark) for name in there
            ]
        call.progress(len(entries), len(ids))
    return done(entries)


def preview(call: Call) -> dict[str, Any]:
    """What would be marked. Raises `Failure("not_found")` when nothing is there."""
    return previewed(call)
