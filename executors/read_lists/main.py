"""Read a named list; without a name, tell which lists there are."""

from __future__ import annotations

from executors._sdk import lists
from executors._sdk.result import Failure, done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry per item (`text`, `done`, `list`), or per list (`text`, `path`)."""
    name = call.args.get("name")
    if not name:
        return done([item(text=one.name, path=one.place.path) for one in lists.every(call)])
    found = lists.find(call, str(name))
    if found is None:
        raise Failure("not_found", "there is no such list", path=lists.plain_name(str(name)))
    left = [one for one in found.items if not one.done]
    ticked = [one for one in found.items if one.done]
    entries = [
        item(text=one.text, done=one.done, list=found.name, mark="✓ " if one.done else "• ")
        for one in [*left, *ticked]
    ]
    return done(entries, name=found.name, path=found.place.path, left=len(left))
