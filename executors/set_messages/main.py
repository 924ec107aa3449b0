"""Marking mail as read, unread, important or not; the same mark twice is the same mark."""

from __future__ import annotations

from executors._sdk.messages import each_folder, known_of, missing, present, previewed
from executors._sdk.result import done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.imap import Box, MessageId

_MARKS = {
    "read": ("\\Seen", True),
    "unread": ("\\Seen", False),
    "flagged": ("\\Flagged", True),
    "unflagged": ("\\Flagged", False),
}


def run(call: Call) -> dict[str, Any]:
    """One entry a message: `id`, `subject`, `mark`."""
    known, mark = known_of(call), call.args["mark"]
    flag, on = _MARKS[mark]

    def marked(box: Box, folder: str, names: list[MessageId]) -> list[dict[str, Any]]:
        there, gone = present(box, folder, names, readonly=False)
        if there:
            box.flag([name.uid for name in there], [flag], on=on)
        return missing(gone) + [
            item(id=str(name), subject=known.get(str(name), ""), mark=mark) for name in there
        ]

    return done(each_folder(call, marked))


def preview(call: Call) -> dict[str, Any]:
    """What would be marked. Raises `Failure` when nothing is there."""
    return previewed(call)
