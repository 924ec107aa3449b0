"""When a plan that worked may be kept, and when it may serve again (S12). Pure.

A plan is kept with where its values came from, and with signatures of the tools that it uses and
of their families: a program that was signed anew, or a new one that might serve better, makes it
a miss. Nothing here knows a store.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.catalog.lexicon import fold
from core.catalog.loaded import Catalog
from core.catalog.manifest import Manifest
from core.levels.meaning import Meaning, meaning_of
from core.levels.tracing import Binding, NotKept, fill, shape_of, stands_for, trace, types_of
from core.messages import FinalKind
from core.observation import Effects, Provenance
from core.plan import FINAL_ANSWER, FROM_STEP, Plan, Step, references_in, steps_used
from core.turn_state import StepRecord
from core.vocabulary import META_TOOLS, object_of, verb_of

POLICY_VERSION = 1
"""Raised when the gate's rules change so that what was learnt before must be planned anew."""

MAX_REQUEST = 600
_PRODUCERS = frozenset("read find get list".split())
_SPACES = re.compile(r"\s+")
# What a request that leans on the one before begins with, or speaks of. What says itself which
# ones it means (`those that contain`) leans on nothing.
_LEANING = re.compile(
    r"""(?ix)
      ^\W*(?: e | ed | and | anche | also | poi | then | invece | instead | ma | but | o | or )\b
    | \b(?: quell[oaie] | those ) \b (?! \s+ (?: che | con | that | which | with )\b )
    | \b(?: lo\ stesso | la\ stessa | the\ same )\b
      (?! \s+ (?: contenut[oi] | nome | hash | impronta | dimensione | contents? | name
      | size )\b )
    | \b(?: ess[oaie] | l'altr[oa] | the\ other | ultim[oa]\ (?:risultato|risposta)
      | ancora\ una\ volta | di\ nuovo | again )\b
    | \b that \b (?<!those\ that) (?! \s*'?\s*(?:is|s|was|are|were|has|have|contain\w*)\b )
    | \b(?: quest[oaie] | this | these )\b (?! \s+\w )"""
)
# Pronouns, which may mean something that the same request named before: `find a.txt and read it`.
_PRONOUN = re.compile(
    r"""(?ix)
      (?<!is\ )(?<!was\ )(?<!time\ )\b it \b (?! \s*'?\s*(?:is|s)\b ) | \b them \b
    | \b\w{3,}(?:ar|er|ir|ndo)(?:lo|la|li|le)\b | \b\w{3,}[ai]lo\b"""
)
_NAMED_BEFORE = re.compile(r"(?i)\w+\W+\S+.*\b(?:e|ed|poi|and|then)\b")
# An address, a path or a file's name: no word in it is said (`www.posta.it`, `a/this.md`).
_NAMED = re.compile(r"\S*[^\W_][@/.\\]\w\S*|[~/]\S+")
# Deeds that a request may name, and the verbs of tools that do them.
DEEDS: Mapping[str, frozenset[str]] = {
    "delete": frozenset({"delete", "move"}),
    "empty": frozenset({"delete"}),
    "cancel": frozenset({"delete", "cancel"}),
    "move": frozenset({"move"}),
    "copy": frozenset({"move", "write", "create"}),
    "rename": frozenset({"move", "change"}),
    "create": frozenset({"create", "write", "schedule"}),
    "add": frozenset({"write", "create", "set", "change", "move"}),
    "write": frozenset({"write", "create", "send"}),
    "save": frozenset({"write", "create", "get"}),
    "send": frozenset({"send", "share"}),
    "forward": frozenset({"send"}),
    "reply": frozenset({"send"}),
    "share": frozenset({"share", "send"}),
    "compress": frozenset({"compress"}),
    "unpack": frozenset({"extract"}),
    "extract": frozenset({"extract", "read"}),
    "convert": frozenset({"change", "create"}),
    "summarise": frozenset({"describe"}),
    "classify": frozenset({"classify"}),
    "group": frozenset({"group"}),
    "sort": frozenset({"sort", "order", "find", "list"}),
    "translate": frozenset({"describe", "change"}),
    "remind": frozenset({"schedule", "create"}),
    "mark": frozenset({"set", "write"}),
    "update": frozenset({"change", "set", "write"}),
    "install": frozenset({"install"}),
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """A plan to keep, with all by which it is found again. Hashes are 16 hexadecimal digits, empty
    where that way of finding is closed.

    `text` is normalised, `request` as it was said · `exact`: of the text · `shape`, `wording`: of
    what is asked and of the words, every value by its type · `meaning`: of what is asked, for
    plans without values.
    """

    text: str
    plan: Plan
    bindings: tuple[Binding, ...]
    values: tuple[tuple[str, str], ...]
    exact: str
    shape: str
    wording: str
    meaning: str
    tools: str
    families: str
    changes: bool
    why_exact: str = ""
    request: str = ""

    @property
    def is_value_bound(self) -> bool:
        return bool(self.values or self.bindings or self.why_exact)


def serves(lesson: Lesson) -> str:
    """How a kept plan is found again: `exact`, `template`, `meaning`; `retired` when it is not."""
    if not lesson.tools:
        return "retired"
    if lesson.meaning:
        return "meaning"
    return "template" if lesson.shape or lesson.wording else "exact"


def normal(text: str) -> str:
    """The text as it is compared for sameness: case, accents, spaces and ends do not count."""
    return _SPACES.sub(" ", fold(text)).strip(" \t\n.!?…")


def exact_key(text: str) -> str:
    return _hash(normal(text))


def request_refusal(text: str, *, quoted: str | None, in_conversation: bool) -> str | None:
    """Why a request is neither served from memory nor learnt; None when it may be."""
    if quoted:
        return "quotes"
    if not text.strip() or len(text) > MAX_REQUEST:
        return "length"
    if any(unicodedata.category(c) in {"Cf", "Cc", "Co", "Cn"} and c not in "\n\t" for c in text
           if c != "\u200d"):  # fmt: skip
        return "odd_characters"
    if in_conversation and _leans(text):
        return "leans_on_conversation"
    return None


def _leans(text: str) -> bool:
    """Whether a request may only be understood after the one before."""
    text = _NAMED.sub("x", text)
    return _LEANING.search(text) is not None or any(
        _NAMED_BEFORE.search(text[: one.start()]) is None for one in _PRONOUN.finditer(text)
    )


def make_lesson(
    request: str,
    plan: Plan,
    records: Sequence[StepRecord],
    kind: FinalKind,
    catalog: Catalog,
    *,
    quoted: str | None = None,
    in_conversation: bool = False,
) -> Lesson:
    """What to keep of a turn that ended well. Raises `NotKept` with the reason otherwise."""
    if kind is not FinalKind.ANSWER:
        raise NotKept("no_answer")
    refusal = request_refusal(request, quoted=quoted, in_conversation=in_conversation)
    if refusal is not None:
        raise NotKept(refusal)
    _check_steps(plan, records, catalog)
    meaning = meaning_of(request)
    if not (meaning.deeds or meaning.things or meaning.traits) and not (
        # Known by its words alone, it serves other values in the very same words.
        meaning.values and any(word is not None for word in meaning.words)
    ):
        raise NotKept("says_too_little")
    _check_deeds(meaning, plan)
    manifests = {name: one.manifest for name, one in catalog.executors.items()}
    traced = trace(plan, meaning, manifests)
    tools, families = tools_signature(plan, catalog), families_signature(plan, catalog)
    if not tools:
        raise NotKept("tool_missing")
    shape, wording = shape_of(meaning, set(range(len(meaning.values))))
    open_to_others = not traced.exact
    # Plans without a value are for everybody who says the same; a template is for its own actor.
    bound = bool(traced.bindings) or traced.worded
    free = open_to_others and not meaning.values and not bound
    return Lesson(
        text=normal(request),
        plan=plan,
        bindings=traced.bindings,
        values=tuple(
            (kind, value.text)
            for kind, value in zip(types_of(meaning, traced.places), meaning.values, strict=True)
        ),
        exact=exact_key(request),
        shape=_hash(shape) if open_to_others and bound and shape and not traced.worded else "",
        wording=_hash(wording) if open_to_others and bound else "",
        meaning=_hash(meaning.key) if free and meaning.key else "",
        tools=tools,
        families=families,
        changes=any(_mutates(step, manifests) for step in plan.steps),
        why_exact=traced.why,
        request=request,
    )


def read_again(lesson: Lesson) -> Lesson:
    """A lesson that was learnt by an earlier word list, by the one of today: where its request is
    read otherwise now, it is found by its words alone."""
    meaning = meaning_of(lesson.request or lesson.text)
    shape, wording, same = keys_of(meaning)
    kept = len(lesson.values) == len(meaning.values) and all(
        stands_for(kind, value) and value.text == text
        for (kind, text), value in zip(lesson.values, meaning.values, strict=True)
    )
    try:
        _check_deeds(meaning, lesson.plan)
    except NotKept:
        kept = False
    return replace(
        lesson,
        shape=shape if kept and lesson.shape else "",
        wording=wording if kept and lesson.wording else "",
        meaning=same if kept and lesson.meaning else "",
    )


def keys_of(meaning: Meaning) -> tuple[str, str, str]:
    """Shape, wording and meaning under which a request looks for plans; empty where closed."""
    shape, wording = shape_of(meaning, set(range(len(meaning.values))))
    values = bool(meaning.values)
    return (
        _hash(shape) if values and shape else "",
        _hash(wording) if values else "",
        _hash(meaning.key) if not values and meaning.key else "",
    )


def serve_template(lesson: Lesson, meaning: Meaning) -> Plan | None:
    """The plan of a template for a request of the same shape: its values where the old ones stood,
    what was not bound equal. None when it does not fit after all."""
    if len(lesson.values) != len(meaning.values):
        return None
    bound = {binding.value for binding in lesson.bindings}
    for index, ((kind, text), value) in enumerate(zip(lesson.values, meaning.values, strict=True)):
        if not stands_for(kind, value) or (index not in bound and value.text != text):
            return None
    return fill(lesson.plan, lesson.bindings, meaning.values)


def staleness(tools: str, families: str, plan: Plan, catalog: Catalog) -> str | None:
    """Why a kept plan may not serve with this catalogue; None when all is as it was."""
    now = tools_signature(plan, catalog)
    if not tools or not now:
        return "tool_missing"
    if tools != now:
        return "tool_changed"
    if families != families_signature(plan, catalog):
        return "new_sibling"
    return None


def tools_signature(plan: Plan, catalog: Catalog) -> str:
    """Of the manifests of all tools that the plan uses; empty when one is not offered."""
    parts = [str(POLICY_VERSION)]
    for name in sorted({step.tool for step in plan.steps if step.tool not in META_TOOLS}):
        executor = catalog.offered.get(name)
        if executor is None:
            return ""
        parts.append(f"{name}={executor.manifest.digest}")
    return _hash("\n".join(parts))


def families_signature(plan: Plan, catalog: Catalog) -> str:
    """Of the names that could serve in the place of the plan's tools: same object and verb, where
    the verbs that bring things count as one."""
    wanted = {_family(step.tool) for step in plan.steps if step.tool not in META_TOOLS}
    # What is kept from a guest is no news to them: their catalogue counts like the whole one.
    names = {*catalog.offered, *catalog.withheld}
    return _hash("\n".join(sorted(name for name in names if _family(name) in wanted)))


def _family(tool: str) -> tuple[str, str]:
    verb = verb_of(tool)
    return ("*" if verb in _PRODUCERS else verb), object_of(tool)


# -- what is kept ---------------------------------------------------------------------------------


def _check_steps(plan: Plan, records: Sequence[StepRecord], catalog: Catalog) -> None:
    """Every step went well, did what it is for, and no part of it was shaped by the outside."""
    done = [record for record in records if record.tool != FINAL_ANSWER]
    if not done:
        raise NotKept("no_step")
    outside: set[int] = set()
    for number, record in enumerate(done, start=1):
        if record.tool in META_TOOLS:
            raise NotKept("builtin")
        if not record.observation.ok:
            raise NotKept("failed_step")
        executor = catalog.executors.get(record.tool)
        if executor is None:
            raise NotKept("tool_missing")
        if executor.manifest.is_mutating:
            if record.observation.effects is Effects.UNKNOWN:
                raise NotKept("effects_unknown")
            if record.observation.effects is Effects.NONE:
                raise NotKept("no_effect")
        if number <= len(plan.steps) and _is_led(
            plan.steps[number - 1], executor.manifest, outside
        ):
            raise NotKept("shaped_by_outside")
        if record.observation.provenance is Provenance.EXTERNAL:
            outside.add(number)
    if len([step for step in plan.steps if step.tool != FINAL_ANSWER]) != len(done):
        raise NotKept("steps_differ")


def _is_led(step: Step, manifest: Manifest, outside: set[int]) -> bool:
    """Whether what came from outside says where this step acts: a sink is a reference to it."""
    if not outside:
        return False
    led = {name for name, value in step.args.items() if steps_used({name: value}) & outside}
    if FROM_STEP in led:
        led |= {"entries", *manifest.vector, *(manifest.sinks if manifest.is_mutating else ())}
    return any(name in led for name in manifest.sinks)


def _check_deeds(meaning: Meaning, plan: Plan) -> None:
    """Each thing the person wanted done is done by some step."""
    verbs = {verb_of(step.tool) for step in plan.steps if step.tool not in META_TOOLS}
    for deed in meaning.deeds:
        if deed.startswith("not:"):
            raise NotKept("negated")
        wanted = DEEDS.get(deed)
        if wanted is not None and wanted.isdisjoint(verbs):
            raise NotKept("verb_missing")


def _mutates(step: Step, manifests: Mapping[str, Manifest]) -> bool:
    manifest = manifests.get(step.tool)
    return manifest is not None and manifest.is_mutating


def plan_of(records: Iterable[StepRecord], catalog: Catalog) -> Plan:
    """A finished step-by-step turn as a plan. What a call took whole from an earlier step is a
    reference to it again, so that the plan holds no results."""
    done = [r for r in records if r.tool != FINAL_ANSWER and r.tool not in META_TOOLS]
    steps: list[Step] = []
    for record in done:
        executor = catalog.executors.get(record.tool)
        args = dict(record.raw_args)
        if executor is not None and not _has_references(args):
            args = _with_references(args, executor.manifest, done[: len(steps)])
        steps.append(Step(record.tool, args))
    return Plan(tuple(steps))


def _has_references(args: Mapping[str, Any]) -> bool:
    return "from_step" in args or any(True for _ in references_in(dict(args)))


def _with_references(
    args: dict[str, Any], manifest: Manifest, earlier: Sequence[StepRecord]
) -> dict[str, Any]:
    for name, value in args.items():
        if not isinstance(value, list) or len(value) < 2:
            continue
        for place in range(len(earlier), 0, -1):
            entries = earlier[place - 1].observation.entries or ()
            for key in ("path", "url", "id"):
                brought = [entry.get(key) for entry in entries]
                if brought and brought == value and manifest.takes_entries:
                    rest = {k: v for k, v in args.items() if k != name}
                    return {**rest, "from_step": place}
    return args


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
