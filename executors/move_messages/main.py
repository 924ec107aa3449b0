"""Moving mail to another folder of its account; the folder is made when it is not there.

A message keeps no name when it moves, so a second call finds nothing to move: repeating harms
nothing, and what is gone is told.
"""

from __future__ import annotations

from executors._sdk.imap import folder_name
from executors._sdk.messages import each_folder, known_of, missing, present, previewed
from executors._sdk.result import done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.imap import Box, MessageId


def run(call: Call) -> dict[str, Any]:
    """One entry a message: `id` (what it was called), `subject`, `folder` (where it is now);
    `made` says that the folder is new."""
    known = known_of(call)

    def moved(box: Box, folder: str, names: list[MessageId]) -> list[dict[str, Any]]:
        # Nothing is made for messages that are not there.
        there, gone = present(box, folder, names, readonly=False)
        if not there:
            return missing(gone)
        target = box.find_folder(call.args["folder"])
        more = {"made": True} if target is None else {}
        if target == folder:
            more["unchanged"] = True
        target = target or box.make_folder(call.args["folder"])
        if target != folder:
            box.move([name.uid for name in there], target)
        return missing(gone) + [
            item(id=str(name), subject=known.get(str(name), ""), folder=target, **more)
            for name in there
        ]

    return done(each_folder(call, moved))


def preview(call: Call) -> dict[str, Any]:
    """What would move. Raises `Failure` when nothing is there, or for what no folder is called."""
    said = str(call.args["folder"])
    return previewed(
        call,
        check=lambda box: box.find_folder(said) or folder_name(said, box.separator),
        destination=said,
    )
