"""A month written down before it is lived: who asks what, when, in which words, and what goes
wrong. The same seed gives the same month, with memory and without."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from tests.bench.household.kinds import Call, Kind, load_kinds
from tests.bench.household.values import Said, draw

DAYS = 30
WRONG = 0.05
LIKED, PINNED = 0.03, 0.01
SIGNED_ANEW = 6
_AWAKE = (7.0, 16.0)
"""First hour, and how many from there on."""
_USUAL, _OTHER_LANG = 0.6, 0.1


@dataclass(frozen=True, slots=True)
class Person:
    """`number` 0 is the host."""

    number: int
    lang: str
    sender: str

    @property
    def is_host(self) -> bool:
        return self.number == 0


PEOPLE = (Person(0, "it", "42"), Person(1, "en", "77"), Person(2, "it", "88"))


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, at `after` from the beginning. `misled`: what a model that is asked proposes
    instead of what is right, None mostly. `vote`: the button that is pressed when all is well."""

    number: int
    after: timedelta
    person: Person
    kind: Kind
    text: str
    right: tuple[Call, ...]
    values: dict[str, Said]
    misled: tuple[Call, ...] | None
    vote: str | None


@dataclass(frozen=True, slots=True)
class Month:
    """`signed_anew`: before which requests which program is; `sibling` before which one a new
    program of a family that exists comes in."""

    seed: int
    asked: tuple[Asked, ...]
    signed_anew: dict[int, str]
    sibling: int


def write_month(seed: int, turns: int, url: str, *, only: Collection[str] = ()) -> Month:
    """A month of so many requests. `url` is where the pages are; `only` names the kinds, if it
    shall not be all."""
    rng = Random(seed)
    kinds = [kind for kind in load_kinds() if not only or kind.name in only]
    rng.shuffle(kinds)
    weights = [1 / rank for rank in range(1, len(kinds) + 1)]
    habits: dict[tuple[int, str, str], int] = {}
    moments = sorted(_moment(rng) for _ in range(turns))
    asked = []
    for number, after in enumerate(moments):
        person = rng.choice(PEOPLE)
        (kind,) = rng.choices(kinds, weights)
        while not (person.is_host or kind.for_guests):
            (kind,) = rng.choices(kinds, weights)
        lang = person.lang
        if rng.random() < _OTHER_LANG:
            lang = "en" if lang == "it" else "it"
        wordings = range(len(kind.words[lang]))
        usual = habits.setdefault((person.number, kind.name, lang), rng.choice(wordings))
        wording = usual if rng.random() < _USUAL else rng.choice(wordings)
        values: dict[str, Said] = {}
        for slot in kind.slots:
            taken = {said.meant for said in values.values()}
            values[slot] = draw(slot, rng, lang, number, url, taken)
        asked.append(
            Asked(
                number,
                after,
                person,
                kind,
                kind.say(lang, wording, values),
                tuple(kind.right(values)),
                values,
                _misled(rng, kind, values) if rng.random() < WRONG else None,
                rng.choices((None, "👍", "⚡"), (1 - LIKED - PINNED, LIKED, PINNED))[0],
            )
        )
    names = sorted({tool for kind in kinds for tool, _ in kind.plan})
    apart = max(1, turns // (SIGNED_ANEW + 1))
    signed = {apart * (at + 1): rng.choice(names) for at in range(min(SIGNED_ANEW, turns - 1))}
    return Month(seed, tuple(asked), signed, turns * 2 // 3)


def _moment(rng: Random) -> timedelta:
    hour = _AWAKE[0] + rng.random() * _AWAKE[1]
    return timedelta(days=rng.randrange(DAYS), hours=hour)


def _misled(rng: Random, kind: Kind, values: dict[str, Said]) -> tuple[Call, ...]:
    """What a model might wrongly make of it: the plan of another kind that speaks of the same
    values or of fewer, and changes nothing."""
    right = kind.right(values)
    wrong = [
        calls
        for other in load_kinds()
        if set(other.slots) <= set(kind.slots) and not other.changes
        if (calls := other.right(values)) != right
    ]
    return tuple(rng.choice(wrong))
