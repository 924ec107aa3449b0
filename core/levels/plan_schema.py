"""The JSON schema of one request's plan: which tools, and which values in their arguments.

Typed arguments are what stands in the person's text, a step's number, or a reference to a step.
A tool whose needs are met neither by the text nor by an earlier step is not there, so nothing is
invented. Pure: manifests and spans in, schema out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from core.catalog.manifest import Manifest
from core.levels.argument_schemas import TEXT_ARGS, Arguments, object_schema
from core.levels.deeds import DESTRUCTIVE
from core.levels.path_choices import Schema
from core.levels.wish import Wish, brings_items
from core.plan import FINAL_ANSWER, FROM_STEP, OTHER_STEP, PIPES
from core.vocabulary import verb_of

MOST_STEPS = 4
# Characters. A small model that does not find an end would write until its tokens are used up.
MOST_ANSWER = 250

_PATTERNS = frozenset({"pattern", "patterns"})
_LISTING = frozenset({"find", "list"})
# Reading what one step brought, be it a single text.
_READING = frozenset({"describe", "classify", "extract"})


def plan_schema(wish: Wish) -> Schema:
    """The schema of a plan: an answer alone, or one to four tool steps.

    What may stand at a place depends on the place: only later steps take from earlier ones. The
    places have their own schemas in `prefixItems`; `items` admits what any of them does, for
    servers that know only that.
    """
    every = (steps_at(wish, number) for number in range(1, MOST_STEPS + 1))
    places = list(takewhile(bool, every))
    text: Schema = {"type": "string"}
    if not wish.wide:
        text["maxLength"] = MOST_ANSWER
    answer = _step(FINAL_ANSWER, object_schema({"text": text}, ["text"]))
    whole: list[Schema] = [{"type": "array", "items": answer, "minItems": 1, "maxItems": 1}]
    if places:
        whole.append(
            {
                "type": "array",
                "prefixItems": [{"anyOf": place} for place in places],
                "items": {"anyOf": places[-1] + _missing(places[0], places[-1])},
                "minItems": min(_fewest(wish), len(places)),
                "maxItems": len(places),
            }
        )
    return object_schema({"steps": {"anyOf": whole}}, ["steps"])


def _fewest(wish: Wish) -> int:
    """Two where a list is to be worked on, which finding it does not do."""
    spans, verbs = wish.spans, {verb_of(name) for name in wish.tools}
    sums = spans.operation is not None and "compute" in verbs
    sorts = spans.descending is not None and "sort" in verbs
    lists = bool(verbs & _LISTING)
    chooses = bool(spans.sought) and "filter" in verbs
    works = ((sums or sorts) and lists) or chooses or _asks_to_read(wish)
    return 2 if works and not wish.acting else wish.fewest


def _asks_to_read(wish: Wish) -> bool:
    """Whether the words ask for what a model makes of a text: a summary, classes, data."""
    return any(
        phrase in wish.words
        for name, manifest in wish.tools.items()
        if verb_of(name) in _READING and manifest.takes_entries
        for phrases in manifest.affinity.values()
        for phrase in phrases
    )


def may_use_tools(wish: Wish) -> bool:
    """Whether a plan for this request may begin with any tool."""
    return bool(steps_at(wish, 1))


def _missing(first: list[Schema], last: list[Schema]) -> list[Schema]:
    return [step for step in first if step not in last]


def steps_at(wish: Wish, number: int) -> list[Schema]:
    """The forms that a step at this place (1 is the first) may have."""
    found: list[Schema] = []
    for name, manifest in wish.tools.items():
        if manifest.is_mutating and name not in wish.acting:
            continue
        found += [_step(name, args) for args in _Forms(wish, manifest, number).all()]
    return found


def _step(name: str, args: Schema) -> Schema:
    return object_schema({"tool": {"const": name}, "args": args}, ["tool", "args"])


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms that a step with one tool may have at one place of the plan."""

    wish: Wish
    manifest: Manifest
    number: int

    def all(self) -> Iterable[Schema]:
        """One schema per way to meet the tool's needs; none when they cannot be met."""
        groups = self.manifest.requires_one_of or (("entries",),) * self._needs_entries or ((),)
        for group in groups:
            required = [*self.manifest.args.get("required", ()), *group]
            form = self._form(list(dict.fromkeys(required)))
            if form is not None:
                yield form

    @property
    def _needs_entries(self) -> bool:
        return "entries" in self.manifest.args.get("required", ())

    def _form(self, required: list[str]) -> Schema | None:
        properties: dict[str, Any] = {}
        needed: list[str] = []
        by_step = "entries" in required
        if by_step and not self._may_take_a_step():
            return None
        arguments = Arguments(self.wish, self.manifest, self.number, self._may_start())
        others = {n for group in self.manifest.requires_one_of for n in group} - set(required)
        for name, spec in self.manifest.properties.items():
            if name in self.manifest.runtime_args or name in others:
                continue
            if name == "entries":
                if by_step:
                    properties[FROM_STEP] = {"enum": list(range(1, self.number))}
                    needed.append(FROM_STEP)
                continue
            if name == PIPES[OTHER_STEP]:
                if name in required and self.number < 3:
                    return None
                if self.number >= 3:
                    properties[OTHER_STEP] = {"enum": list(range(1, self.number))}
                    needed += [OTHER_STEP] if name in required else []
                continue
            values, forced = arguments.offer(name, spec, required=name in required)
            if values is None:
                if name in required or (name in TEXT_ARGS and self._must_say()):
                    return None
                continue
            properties[name] = values
            if name in required or forced:
                needed.append(name)
        if not properties and self._passes_over_what_was_named():
            return None
        if verb_of(self.manifest.name) in _LISTING and self._lists_too_much(properties):
            return None
        if not by_step and not self._may_start() and not self._brings_together(properties):
            return None
        return object_schema(properties, needed)

    def _must_say(self) -> bool:
        """Whether nothing is changed without a text; a mail may go with what is attached."""
        sends = verb_of(self.manifest.name) == "send"
        return self.manifest.is_mutating and not (sends and self.number > 1)

    def _may_start(self) -> bool:
        """Whether a step at this place may live from the text alone: one for each thing asked."""
        return self.number <= self.wish.clauses

    def _brings_together(self, properties: Mapping[str, Any]) -> bool:
        """Whether the step writes or sends what an earlier one brought."""
        carries = TEXT_ARGS | {"attachments", "urls"}
        by_ids = any(name.endswith("ids") for name in properties)
        if by_ids and verb_of(self.manifest.name) in DESTRUCTIVE:
            said = self.wish.mentions
            return self.number > 1 and bool(said.times or said.names or self.wish.spans.quoted)
        return self.number > 1 and (by_ids or not carries.isdisjoint(properties))

    def _passes_over_what_was_named(self) -> bool:
        """Whether a call with no argument would leave aside the path that the person wrote."""
        takes_paths = "path" in self.manifest.types.values()
        return takes_paths and any(path.grade == "said" for path in self.wish.spans.paths)

    def _lists_too_much(self, properties: Mapping[str, Any]) -> bool:
        """Whether a search would leave aside what narrows it: what is done next would then be
        done to everything else as well."""
        spans = self.wish.spans
        # Where files are compared, a name is said to differ, not to be looked for.
        compares = "other_paths" in self.manifest.properties
        sought = [p for p in spans.patterns if not compares or p.startswith("*.")]
        by_name = bool(sought) and _PATTERNS.isdisjoint(properties)
        units = {a.unit for a in spans.amounts if a.bound in {"min", "max", "last"}}
        kinds = {kind for name, kind in self.manifest.types.items() if name in properties}
        by_size = "bytes" in units and "size" not in kinds
        by_age = "days" in units and not any(name.endswith("_days") for name in properties)
        return by_name or (bool(self.wish.acting) and (by_size or by_age))

    def _may_take_a_step(self) -> bool:
        """Whether an earlier step can bring what this one works on."""
        if self.number == 1:
            return False
        if not self._may_have_items():
            return False
        if verb_of(self.manifest.name) == "write":
            return False  # writing each item back to its own path is never what was asked
        if verb_of(self.manifest.name) in DESTRUCTIVE:
            return self._is_narrowed()
        return True

    def _is_narrowed(self) -> bool:
        """Whether the person's words narrow a search, all of them in ways that a search knows.

        What it brings is destroyed only then: `older than` and `the largest` it does not know.
        """
        spans = self.wish.spans
        if spans.descending is not None or any(a.bound == "older" for a in spans.amounts):
            return False
        measured = any(a.unit in {"bytes", "days"} and a.bound for a in spans.amounts)
        return bool(spans.patterns) or measured

    def _may_have_items(self) -> bool:
        """Whether an earlier step can bring several items, or a text to choose lines from."""
        spans = self.wish.spans
        for manifest in self.wish.tools.values():
            if brings_items(manifest) and any(_Forms(self.wish, manifest, 1).all()):
                return True
        if not self._needs_entries:
            return False
        if verb_of(self.manifest.name) in _READING:
            return any(
                verb_of(name) in {"read", "get"} and any(_Forms(self.wish, manifest, 1).all())
                for name, manifest in self.wish.tools.items()
                if manifest.output.get("entries")
            )
        chooses = verb_of(self.manifest.name) == "filter" and bool(spans.sought)
        return chooses or len(spans.files) > 1 or len(spans.urls) > 1
