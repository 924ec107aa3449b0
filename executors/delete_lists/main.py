"""Take items out of a named list, or all of them; or throw the list itself away."""

from __future__ import annotations

from executors._sdk import lists, making, values
from executors._sdk.discarding import discard, foresee
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry: the list's `path`, `name`, what was `removed`, what is `missing` in it, and how
    many are `left`. Fails with not_found when none of them is in it.

    A list that goes as a whole goes into the trash: its `path`, `deleted` (its name), and how many
    items it had (`lost`)."""
    if call.args.get("whole") is True:
        gone = _there(call)
        result = discard(call, paths=[lists.whole(call, gone)])
        for entry in result["entries"]:
            entry.update(deleted=gone.name, lost=len(gone.items))
        return result

    def change() -> tuple[lists.List | None, dict[str, Any]]:
        wanted, removed, missing = _changed(call)
        facts: dict[str, Any] = {
            "name": wanted.name,
            "removed": ", ".join(removed[:30]),
            "missing": ", ".join(missing),
            "left": len(wanted.items),
        }
        return (wanted, facts) if removed else (None, {})

    entry = lists.changed(call, change)
    return done([entry] if entry else [])


def preview(call: Call) -> dict[str, Any]:
    """`parts`: what would go out of a list that stays."""
    if call.args.get("whole") is True:
        return foresee(call, paths=[lists.whole(call, _there(call))])
    wanted, removed, _ = _changed(call)
    if not removed:
        return making.previewed([])
    changed = making.foreseen(call, wanted.place, wanted.data())
    return making.previewed([changed], parts=removed)


def _there(call: Call) -> lists.List:
    name = str(call.args["name"])
    found = lists.find(call, name)
    if found is None:
        raise Failure("not_found", "there is no such list", path=lists.plain_name(name))
    return found


def _changed(call: Call) -> tuple[lists.List, list[str], list[str]]:
    wanted = _there(call)
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
