"""Moving mail to another folder of its account; the folder is made when it is not there.

A message keeps no name when it moves, so a second call finds nothing to move: repeating harms
nothing, and what is gone is told.
"""

from __future__ import annotations

from executors._sdk.imap import account_of, opened
from executors._sdk.messages import by_folder, ids_of, known_of, missing, present, previewed
from executors._sdk.result import done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry a message: `id` (what it was called), `subject`, `folder` (where it is now);
    `made` says that the folder is new."""
    entries = []
    ids, known = ids_of(call), known_of(call)
    for (account, folder), names in by_folder(ids).items():
        with opened(account_of(call, account)) as box:
            target = box.find_folder(call.args["folder"])
            made = target is None
            target = target or box.make_folder(call.args["folder"])
            there, gone = present(box, folder, names, readonly=False)
            entries += missing(gone)
            if there and target != folder:
                box.move([name.uid for name in there], target)
            for name in there:
                more = {"made": True} if made else {}
                entries.append(
                    item(id=str(name), subject=known.get(str(name), ""), folder=target, **more)
                )
        call.progress(len(entries), len(ids))
    return done(entries)


def preview(call: Call) -> dict[str, Any]:
    """What would move. Raises `Failure("not_found")` when nothing is there."""
    return previewed(call, destination=str(call.args["folder"]))
