"""Add items to a named list; a list that is not there yet is made."""

from __future__ import annotations

from executors._sdk import lists, making, values
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry: the list's `path`, `name`, what was `added`, what was there `already`, and how
    many items there are now. Nothing new writes nothing, and the entry says so."""

    def change() -> tuple[lists.List | None, dict[str, Any]]:
        wanted, added, already = _changed(call)
        facts: dict[str, Any] = {
            "name": wanted.name,
            "added": ", ".join(added),
            "already": ", ".join(already),
            "items": len(wanted.items),
        }
        if added:
            return wanted, facts
        as_was = {"ok": True, "path": wanted.place.path, "created": False, "unchanged": True}
        return None, {**as_was, **facts}

    return done([lists.changed(call, change)])


def preview(call: Call) -> dict[str, Any]:
    wanted, added, _ = _changed(call)
    if not added:
        return making.previewed([])
    return making.previewed([making.foreseen(call, wanted.place, wanted.data())])


def _changed(call: Call) -> tuple[lists.List, list[str], list[str]]:
    texts = lists.texts_of(call.args["items"])
    if not texts:
        raise Failure("invalid_args", "nothing to add")
    wanted = lists.find_or_new(call, str(call.args["name"]))
    there = {values.fold(item.text) for item in wanted.items if not item.done}
    added = [text for text in texts if values.fold(text) not in there]
    already = [text for text in texts if values.fold(text) in there]
    again = {values.fold(text) for text in added}
    # What was ticked and is wanted again stands in the list once.
    wanted.lines = [
        line
        for line in wanted.lines
        if not (isinstance(line, lists.Item) and values.fold(line.text) in again)
    ]
    wanted.lines += [lists.Item(text) for text in added]
    if len(wanted.items) > lists.MOST_ITEMS:
        raise Failure("too_large", f"at most {lists.MOST_ITEMS} items in a list")
    return wanted, added, already
