"""Take items out of a named list, or all of them."""

from __future__ import annotations

from executors._sdk import lists, making, values
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry: the list's `path`, `name`, what was `removed`, what is `missing` in it, and how
    many `items` are left. Fails with not_found when none of them is in it."""
    wanted, removed, missing = _changed(call)
    facts = {
        "name": wanted.name,
        "removed": ", ".join(removed[:30]),
        "missing": ", ".join(missing),
        "items": len(wanted.items),
    }
    if not removed:
        return done([])
    return done([making.put(call, wanted.place, [wanted.data()], **facts)])


def preview(call: Call) -> dict[str, Any]:
    wanted, removed, _ = _changed(call)
    if not removed:
        return making.previewed([])
    return making.previewed([making.foreseen(call, wanted.place, wanted.data())])


def _changed(call: Call) -> tuple[lists.List, list[str], list[str]]:
    name = str(call.args["name"])
    wanted = lists.find(call, name)
    if wanted is None:
        raise Failure("not_found", "there is no such list", path=lists.plain_name(name))
    if call.args.get("all") is True:
        out = list(wanted.items)
        missing: list[str] = []
    else:
        out, missing = _meant(wanted.items, lists.texts_of(call.args.get("items") or ()))
        if not out:
            raise Failure("not_found", "none of this is in the list", path=", ".join(missing))
    wanted.lines = [line for line in wanted.lines if line not in out]
    return wanted, [one.text for one in out], missing


def _meant(items: list[lists.Item], texts: list[str]) -> tuple[list[lists.Item], list[str]]:
    """The items that are meant: called so, else the only one that holds the words."""
    out: list[lists.Item] = []
    missing = []
    for text in texts:
        word = values.fold(text)
        same = [one for one in items if values.fold(one.text) == word]
        near = [one for one in items if f" {word} " in f" {values.fold(one.text)} "]
        found = same or (near if len(near) == 1 else [])
        out += [one for one in found if one not in out]
        missing += [] if found else [text]
    return out, missing
