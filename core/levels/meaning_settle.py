"""What a request comes to, once all its words are known. Pure."""

from __future__ import annotations

from core.levels.meaning_deeds import settle_asides, settle_deeds, settle_same
from core.levels.meaning_draft import Draft
from core.levels.meaning_said import Said, drop, rename
from core.levels.meaning_things import settle_order, settle_things


def _foreign(draft: Draft) -> list[str]:
    """A little word of the other language, which is a name: `tell al`."""
    little = draft.foreign
    rest = draft.english + len(little["it"]) - len(little["en"])
    english = rest > 0 or (rest == 0 and len(little["en"]) > len(little["it"]))
    other = [word for word in little["it" if english else "en"] if word not in _SHARED]
    return other if (rest or len(little["it"]) != len(little["en"])) and len(other) == 1 else []


_SHARED = frozenset("a i do so me".split())
"""Little words that stand in both languages, whatever they mean there."""


def settle(draft: Draft) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Deeds, things and traits as they are compared."""
    told = [one.name for one in draft.traits if draft.owner(one).strip("*")]
    if len({one.name for one in draft.things}) < len(draft.things) and len(told) > 1:
        draft.trait(">".join(told), "")  # `empty folders in hidden folders`: which is which
    if 1 < draft.either < draft.place:
        draft.asides.add("or")
    # English `a` is one thing, Italian `a` says to what.
    english = draft.english > 0
    rename(draft.traits, {"a_one": "one"}) if english else drop(draft.traits, "a_one")
    for word in _foreign(draft):
        draft.trait(f"?{word}", "")
    if draft.transfers:
        for said in draft.things:
            if said.inside and ":" not in said.name:
                said.name = f"at:{said.name}"
    settle_same(draft)
    settle_deeds(draft)
    settle_things(draft)
    settle_asides(draft)
    settle_order(draft)
    if draft.changes:
        names = [*draft.weak, *draft.wholes]
        names += [f"n:{thing}" for thing, number in draft.numbers() if number == "n"]
    else:
        names = [f"1:{thing}" for thing in draft.singles()]
        names += ["asked"] if "asked_you" in draft.weak and draft.is_done() else []
    for name in dict.fromkeys(names):
        draft.traits.append(Said(name, 0, draft.place, of="*"))
    many_deeds = len(draft.deeds) > 1
    many_things = len({said.name for said in draft.things}) > 1

    def marked(said: Said) -> str:
        owner = draft.owner(said) if many_things else ""
        deed = f"#{said.deed}" if many_deeds and said.of != "*" else ""
        return f"{said.name}{'@' if owner else ''}{owner}{deed}"

    things = [f"{said.name}#{said.deed}" if many_deeds else said.name for said in draft.things]
    return (
        tuple(draft.deeds),
        tuple(dict.fromkeys(things)),
        (
            *sorted({marked(t) for t in draft.traits}),
            *(f"~{marked(d)}" for d in draft.degrees),
        ),
    )
