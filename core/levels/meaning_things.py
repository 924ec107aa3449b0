"""What the things of a request come to: what goes without saying, and in which order they are
wanted. Pure."""

from __future__ import annotations

from core.levels.meaning_draft import Draft
from core.levels.meaning_said import NAMED, NAMED_AS, PLACES, drop, each, plain, rename

_SUPERLATIVES = {
    "old": "oldest",
    "new": "newest",
    "big": "biggest",
    "small": "smallest",
    "heavy": "heaviest",
    "light": "lightest",
    "high": "highest",
    "low": "lowest",
    "long": "longest",
    "short": "shortest",
    "older": "oldest",
    "newer": "newest",
    "bigger": "biggest",
    "smaller": "smallest",
    "heavier": "heaviest",
    "lighter": "lightest",
    "higher": "highest",
    "lower": "lowest",
    "longer": "longest",
    "shorter": "shortest",
}
_BY_SIZE = {"highest": "biggest", "lowest": "smallest"}
_BY_DATE = {"highest": "newest", "lowest": "oldest"}
_OPPOSITES = ("oldest newest", "biggest smallest", "heaviest lightest", "highest lowest",
              "longest shortest")  # fmt: skip
_AGAINST = {a: b for pair in _OPPOSITES for a, b in (pair.split(), pair.split()[::-1])}
_MOST = frozenset({"heaviest", "highest", "biggest"})
_LEAST = frozenset({"lightest", "lowest", "smallest"})

# What is asked of where one is, unless another place is named.
_OF_HERE = frozenset(
    "address weather forecast city temperature rain snow wind humidity time".split()
)
_MACHINE = frozenset({"computer", "program"})


def settle_things(draft: Draft) -> None:
    """What goes without saying beside a thing."""
    things, traits = draft.things, draft.traits
    if draft.transfers or {"mail", "message"} & {said.name for said in things}:
        each(things, lambda name: name.replace("at:", "to:"))
    else:
        each(things, lambda name: name.replace("at:", "").replace("from:", ""))
    each((*things, *traits, *draft.degrees), lambda name: name.replace("not:with:", "not:"))
    if not draft.transfers:  # `share the list with the family`
        each(traits, lambda name: name.removeprefix("with:"))
    names = {said.name for said in things}
    if "message" in names and names & {"from:mail", "to:mail"} and not draft.transfers:
        rename(things, {"from:mail": "mail", "to:mail": "mail"})
        names = {said.name for said in things}
    if "fresh" in {said.name for said in traits} and {"mail", "message"} & names:
        rename(traits, {"fresh": "unread"})
    if "mail" in names:
        drop(things, "message")
        if (
            draft.asks
            and not (draft.kinds or draft.degrees)
            and [one.name for one in traits] == ["received"]
        ):
            rename(traits, {"received": "unread"})
        drop(traits, "received")
    if names - {"nearby"}:
        rename(things, {"nearby": "here"})
        names = {said.name for said in things}
    draft.at_hand = "here" in names
    if names & _OF_HERE:
        drop(things, "here")
        drop(traits, "by:here", "outside")
    if {"weather", "forecast", "temperature"} & names:
        drop(traits, "how", "nice")
        if "temperature" in names:
            drop(things, "weather")
    if names == {"song"} and not draft.deeds and all(n == "n" for _, n in draft.numbers()):
        rename(things, {"song": "music"})  # to list the songs
    if "time" in names:
        drop(things, "clock_item")
    if "battery" in names:
        drop(traits, "free")
    if {"sort", "group", "classify"} & set(draft.deeds) and draft.has("day_date", things):
        drop(things, "day_date")
        draft.trait("by:day_date", "")
    if "uptime" in names:
        drop(things, "computer")
    if draft.has("nearest", traits):
        drop(traits, "where")
    _settle_machine(draft, names)
    _name_folders(draft)


def _settle_machine(draft: Draft, names: set[str]) -> None:
    """Room on the disk, and what runs."""
    things, traits = draft.things, draft.traits
    if draft.has("running", traits) and names <= _MACHINE and not draft.kinds and not draft.deeds:
        things[:] = [draft.said("process", "")]
        names = {"process"}
    if not draft.deeds and names <= {"disk", "space", "memory", "computer"} and "disk" in names:
        bound = {said.name for said in traits} & {"free", "busy", "usage"}
        if "space" in names or bound or "memory" in names:
            rename(things, {"disk": "space", "memory": "space"})
            rename(traits, {"usage": "busy"})
            things[:] = [said for said in things if said.name != "computer"][:1]
    if "space" in names and not draft.deeds:
        drop(things, "disk", "computer")
    if "process" in names:
        drop(things, "computer")
        rename(traits, {"active": "running", "not:active": "not:running"})
        for one in ("memory", "cpu"):
            if one in names:
                drop(things, one)
                draft.trait(f"by:{one}", "")


def _name_folders(draft: Draft) -> None:
    """`cartella documenti`, `documents folder`: one place, of which the order says nothing;
    places stand last."""
    for first, second in zip(draft.things, draft.things[1:], strict=False):
        pair = {plain(first.name), plain(second.name)}
        follows = second.place == first.place + 1 or (
            second.place == first.place + 2 and first.place + 1 in draft.ofs
        )
        if follows and "folder" in pair and len(pair & NAMED) == 1:
            found = (pair & NAMED).pop()
            role = first.name.removesuffix(plain(first.name))
            first.name = f"{role}{NAMED_AS.get(found, found)}"
            second.name = "-"
    drop(draft.things, "-")
    if len(draft.deeds) < 2 and not draft.transfers:
        draft.things.sort(key=lambda said: said.name in PLACES)


def _measured(draft: Draft) -> str:
    """By what it is ordered, where that was said."""
    for measure in ("size", "day_date", "memory", "cpu"):
        if draft.has(f"by:{measure}", draft.traits) or draft.has(measure, draft.things):
            return measure
    return ""


def settle_order(draft: Draft) -> None:
    """In which order things are wanted, and which end of it."""
    traits, degrees = draft.traits, draft.degrees
    if draft.has("process", draft.things) or draft.has("by:memory", traits):
        rename(degrees, {"uses_most": "heaviest", "uses_least": "lightest"})
    each(degrees, lambda name: plain(name) if not name.startswith("not:") else name)
    said_ends = [one.name for one in degrees]
    ordered = (
        "sort" in draft.deeds
        or draft.has("first", traits)
        or (len(said_ends) == 2 and said_ends[1] == _AGAINST.get(said_ends[0]))
        or bool({"highest", "lowest"} & set(said_ends) and _measured(draft))
    )
    if {"next", "first"} & {one.name for one in traits} and not degrees:
        draft.trait("of:n" if any(n == "n" for _, n in draft.numbers()) else "of:1", "")
    if ordered:
        rename(degrees, _BY_SIZE if _measured(draft) == "size" else {})
        rename(degrees, _BY_DATE if _measured(draft) == "day_date" else {})
        rename(degrees, _SUPERLATIVES)
    if weighed := draft.has("by:memory", traits) or draft.has("by:cpu", traits):
        drop(traits, "running")
        rename(degrees, {"top": "heaviest"})
        for said, meant in (("more", "heaviest"), ("less", "lightest")):
            if draft.has(said, traits):
                drop(traits, said)
                degrees.append(draft.said(meant, ""))
        rename(degrees, dict.fromkeys(_MOST, "heaviest") | dict.fromkeys(_LEAST, "lightest"))
        if degrees:
            drop(traits, "usage")
    else:
        sizes = {"heaviest": "biggest", "lightest": "smallest"}
        process = draft.has("process", draft.things) or draft.has("program", draft.things)
        backwards = {big: heavy for heavy, big in sizes.items()}
        rename(degrees, backwards if process else sizes)
    if not any(said.name in _AGAINST for said in degrees):
        if draft.changes and degrees:
            draft.trait("of:" + "".join(sorted({said.number for said in degrees})), "")
        return
    if not ordered:
        # `the largest file` is one, `the largest files` are some.
        owners = {draft.owner(one) for one in degrees}
        numbers = {one.number for one in degrees if one.number}
        numbers = numbers or {n for thing, n in draft.numbers() if thing in owners}
        number = "1" if draft.singled else "".join(sorted(numbers))
        drop(traits, "changed") if {"oldest", "newest"} & {one.name for one in degrees} else None
        draft.trait("in_order" if weighed and number == "n" else f"of:{number}", "")
        return
    if len(degrees) == 2 and degrees[1].name.rpartition(":")[2] == _AGAINST.get(degrees[0].name):
        del degrees[1]  # from the oldest to the newest
    draft.deeds[:] = [deed for deed in draft.deeds if deed != "sort"]
    drop(traits, "first")
    draft.trait("in_order", "")
    # What it is ordered by goes without saying.
    told = {one.name for one in degrees}
    for measure, ends in (
        ("day_date", {"oldest", "newest"}),
        ("size", {"biggest", "smallest"}),
    ):
        if ends & told:
            drop(draft.things, measure)
            drop(traits, f"by:{measure}")
