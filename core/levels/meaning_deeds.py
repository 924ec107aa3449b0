"""What the deeds of a request come to: the same thing done in other words, and words that say
something only beside some things. Pure."""

from __future__ import annotations

from core.levels.meaning_draft import Draft
from core.levels.meaning_number import ONE
from core.levels.meaning_said import drop, each, plain, rename, swap

# Deeds that only help another, and what they are alone.
_HELPERS = {"make_one": "create", "put": "add", "arrange": "sort"}
# What is read, opened or shown by the same deed.
_CONTENT = frozenset(
    """mail message notification line shopping_list reminder task event news folder calendars
    contact telegram newsletter feed invite""".split()
)
_ONE_CONTENT = frozenset("note document pdf page file log spreadsheet".split())
# What a path or an address is said to be: it is shown when it is read, and not when it is found.
_BY_PATH = frozenset("file document line page word note spreadsheet log folder text".split())
# What stands in letters, and is listed when it is taken out of them.
_IN_LETTERS = frozenset("sender phone_number link mail_address name recipient".split())
_LABELS = frozenset("by:urgency by:topic by:category by:priority by:importance".split())
_MEASURES = frozenset("by:day_date by:size by:name by:memory by:cpu".split())
_GROUPS = frozenset(
    """by:sender by:extension by:type by:recipient by:subject by:year by:month by:day
    by:week""".split()
)
_ORDERING = _LABELS | _MEASURES | _GROUPS
# Of these `all` says nothing beside what bounds them, or of things that are a person's own.
_BOUNDING = frozenset(
    "unread seen empty duplicate recurring active hidden running attached".split()
)
_LISTED = frozenset("folder file process".split())
_OWN = frozenset("contact reminder task calendars alarm note".split())
_ORDERS = {
    "alphabetical": "by:name",
    "a_to_z": "by:name",
    "chronological": "by:day_date",
    "size_order": "by:size",
}
# Of these what is free, left, available and unused is the same.
_ROOM = frozenset("space disk memory slot parking computer battery".split())
_UNUSED = ("left", "available", "unused")
_BY_ITSELF = ("scheduled", "automatic")
_RECURS = ("recurring", "active")
# To check these is to look at them.
_LOOKED_AT = frozenset(
    """mail message notification reminder task event meeting news calendars contact telegram
    newsletter feed shopping_list weather forecast temperature time date here address city battery
    space memory disk cpu process uptime rain snow wind humidity alarm timer""".split()
)
_MONEY = frozenset("bill invoice expense price receipt amount ticket total".split())
_SET_UP = frozenset("reminder task alarm timer contact event".split())
# Whose it is counts: what is mine is another than what is here.
_PERSONAL = frozenset(
    "process address phone_number mail_address name birthday password ip".split()
)
_ABOUT_METNOS = frozenset("capability last_action".split())


def settle_same(draft: Draft) -> None:
    """Different words for one deed."""
    deeds, things, traits = draft.deeds, draft.things, draft.traits
    names = {plain(said.name) for said in things}
    if draft.has("unread_mail", things):
        if len(names) == 1 and not (traits or draft.degrees or deeds or draft.kinds):
            draft.trait("unread", "")
        rename(things, {"unread_mail": "mail"})
        names = {plain(said.name) for said in things}
    _settle_tasks(draft, names)
    if not things and not draft.kinds:
        _settle_nothing(draft)
    if len(things) == 2 and things[0].name == "name" and things[1].name in _LISTED and not deeds:
        del things[0]
    single = {name for name, number in draft.numbers() if number == "1"} & _ONE_CONTENT
    shown = bool(
        names & _CONTENT
        or (draft.kinds & {"path", "url"} and names <= _BY_PATH)
        or (draft.degrees and names & single)
    )
    if deeds in (["read"], ["open"]) and shown and not draft.has("loud", traits):
        draft.drop_deed(0)
    if deeds == ["extract"] and names & {"mail", "message"}:
        each((*things, *traits), lambda name: name.removeprefix("from:"))
        if things[0].name in _IN_LETTERS and not draft.kinds:
            draft.drop_deed(0)
    if "total" in deeds and not names & _MONEY:
        swap(deeds, "total", "count")  # of bills it is a sum
    if "how_much" in draft.asides and "mail" in names and not deeds:
        deeds.append("count")
    if deeds == ["cancel"] and names == {"last_action"}:
        deeds[:] = ["undo"]
    if draft.asks and not deeds:
        drop(traits, "if")
    if deeds == ["delete"] and names == {"trash"} and draft.has("all", traits):
        deeds[:] = ["empty"]
        drop(traits, "all")
        each(things, plain)
    if deeds in ([], ["summarise"]) and "say" in draft.asides and names and not draft.kinds:
        deeds[:] = ["summarise"]
        draft.asides.discard("say")
    if draft.has("unread", traits):
        drop(traits, "left")
    if names & _ROOM:
        rename(
            traits, dict.fromkeys(_UNUSED, "free") | {f"not:{one}": "not:free" for one in _UNUSED}
        )
    if names & {"sender", "recipient"}:
        drop(traits, "who")
    _settle_labels(draft)
    _settle_order_words(draft)


def _settle_tasks(draft: Draft, names: set[str]) -> None:
    """Tasks are planned and recur; what is going on is active, or runs."""
    traits = draft.traits
    if names in ({"homework"}, {"job"}) and {said.name for said in traits} & {
        *_BY_ITSELF,
        *_RECURS,
    }:
        rename(draft.things, {"homework": "task", "job": "task"})
        names = {"task"}
    if names <= {"task"}:
        rename(traits, dict.fromkeys(_BY_ITSELF, "recurring"))
        rename(traits, {f"not:{one}": "not:recurring" for one in _BY_ITSELF})
    if names == {"reminder"}:
        rename(traits, {"ongoing": "active"})
    elif names == {"process"}:
        rename(traits, {"ongoing": "running", "going": "running"})
    if draft.deeds in (["clear"], ["clean"]) and names == {"trash"}:
        draft.deeds[:] = ["empty"]


def _settle_labels(draft: Draft) -> None:
    """`assign a level of urgency to`, `sort into categories`."""
    deeds, things = draft.deeds, draft.things
    labels = [said for said in things if f"by:{plain(said.name)}" in _LABELS]
    if deeds in (["label"], ["rate"]) and (
        labels or _LABELS & {said.name for said in draft.traits}
    ):
        deeds[:] = ["classify"]
    if not deeds and labels and plain(labels[0].name) == "urgency" and len(things) == 2:
        deeds.append("classify")  # `how urgent is my unread mail?`
    if deeds not in (["classify"], ["sort"], ["arrange"], ["group"]) or len(labels) != 1:
        return
    if deeds == ["classify"] or labels[0].name.startswith("to:"):
        deeds[:] = ["classify"]
        things.remove(labels[0])
        draft.traits[:] = [one for one in draft.traits if one.of != plain(labels[0].name)]
        draft.trait(f"by:{plain(labels[0].name)}", "")
        each(things, lambda name: name.removeprefix("to:").removeprefix("at:"))


def _settle_nothing(draft: Draft) -> None:
    """What is meant where no thing is named: `are there any duplicates?`"""
    traits = draft.traits
    if draft.has("duplicate", traits):
        draft.things.append(draft.said("file", ""))
        before, word = draft.words.get("duplicate", ("", ""))
        draft.nouns.append(("file", before, word))
        if before in ONE | ({"a"} if draft.english > 0 else set()) and not draft.asks:
            draft.trait("one", "")
    elif draft.has("recurring", traits) and not draft.deeds:
        names = [said.name for said in traits]
        if names.count("recurring") > 1 or "all" in names:
            draft.things.append(draft.said("task", ""))
            drop(traits, "all")


def _settle_order_words(draft: Draft) -> None:
    """`in alphabetical order`, `organise by sender`, `sort into groups`."""
    deeds, traits = draft.deeds, draft.traits
    if draft.has("z_to_a", traits):
        draft.trait("a_to_z", "")
    for word, meant in _ORDERS.items():
        if draft.has(word, traits):
            if {plain(deed) for deed in deeds} <= {"put", "arrange", "sort", "make_one"}:
                deeds[:] = ["sort"]
            rename(traits, {word: meant})
    by = {said.name for said in traits if said.name.startswith("by:")}
    free = not (deeds or draft.kinds or draft.degrees)
    if free and len(draft.things) == 1 and len(by & _ORDERING) == 1:
        deeds.append("arrange")
    if deeds == ["classify"] and by and by <= _GROUPS:
        swap(deeds, "classify", "group")
    if "mark" in deeds and by & _LABELS:
        swap(deeds, "mark", "classify")
    if "arrange" in deeds and "group" not in deeds:
        if by & _LABELS:
            swap(deeds, "arrange", "classify")
        elif by and not by & _MEASURES:
            swap(deeds, "arrange", "group")
    order = list(dict.fromkeys(said.name for said in traits if said.name.startswith("by:")))
    several = len(order) > 1
    if several and {"group", "sort"} & set(deeds):
        draft.trait(">".join(order), "")
    if sorted(deeds) == ["group", "sort"] and not draft.degrees and not several:
        draft.drop_deed(deeds.index("sort"))


def settle_deeds(draft: Draft) -> None:
    """What only helps another deed, and what is said twice."""
    deeds, traits = draft.deeds, draft.traits
    for helper, alone in _HELPERS.items():
        # `fai un riassunto` is the summary, `fai una nota` makes one.
        if helper in deeds and (helper != "arrange" or "group" in deeds) and len(deeds) > 1:
            draft.drop_deed(deeds.index(helper))
        ordered = {"in_order", "by:name", "by:day_date"} & {said.name for said in traits}
        told = ordered or draft.degrees or any(one.name.startswith("by:") for one in traits)
        if helper != "arrange" or told:  # `tidy up my files` is no order
            swap(deeds, helper, "sort" if helper == "put" and ordered else alone)
    for at in range(len(deeds) - 1, 0, -1):
        if deeds[at] == deeds[at - 1]:
            draft.drop_deed(at)
    if {"group", "sort", "summarise", "compress"} & set(deeds):
        drop(traits, "up")
    if "mark" in deeds or "update" in deeds:
        rename(traits, {"to_read": "seen"})
        drop(traits, "how")
    rename(traits, {"to_read": "unread"})
    archived = any(said.name in {"to:archive", "at:archive"} for said in draft.things)
    if deeds == ["move"] and archived:
        deeds[:] = ["archive"]
        drop(draft.things, "to:archive", "at:archive")
    if "create" in deeds:
        drop(traits, "fresh", "one")
    if deeds == ["undo"]:
        drop(draft.things, "last_action")


def settle_asides(draft: Draft) -> None:
    """Words that count only here and there, and the `all` that goes without saying."""
    asides, traits, deeds = draft.asides, draft.traits, draft.deeds
    names = {plain(said.name) for said in draft.things}
    if "mine" in asides and names & _PERSONAL and not ("current" in asides or draft.at_hand):
        draft.trait("own", "")
    if "yours" in asides and not names & _ABOUT_METNOS and deeds != ["undo"]:
        draft.trait("yours", "")
    if "some" in asides and not draft.asks:
        draft.trait("some", "")
    if "or" in asides:
        draft.trait("or", "")
    if "set_up" in asides and not names & _SET_UP:
        draft.trait("set_up", "")
    if "sought" in asides and draft.kinds & {"path", "url", "quoted"} and names <= _BY_PATH:
        draft.trait("sought", "")
    if draft.asks and not deeds:
        drop(traits, "one")
    if "say" in asides:
        draft.trait("say", "")
    seen = names and (names <= _LOOKED_AT or draft.has("duplicate", traits))
    if "look" in asides and not seen:
        draft.trait("look", "")
    if "take" in asides and not (seen or names & _IN_LETTERS):
        draft.trait("take", "")
    if not deeds:
        drop(traits, "and_show", "show_and")
    said = {one.name for one in traits}
    if said & _BOUNDING and "summarise" not in deeds:
        rename(traits, {"every": "all"})
        said = {one.name for one in traits}
    if "all" not in said or draft.kinds or len(names) != 1 or "undo" in deeds:
        return
    own = names & _OWN or ("mine" in asides and "folder" in names)
    if said & _BOUNDING or (own and not draft.changes):
        drop(traits, "all")
