"""The terminator: the reply, from the log of the steps.

What is told of effects comes from the records, not from the model; what the model claims without
a step is taken out and said. Knows no channel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.catalog.loader import Catalog
from core.errors import ErrorCode, ErrorInfo
from core.execution import guards
from core.execution.giving import Given
from core.execution.undo_steps import UNDO_LAST_TURN, is_undoable
from core.i18n import Texts
from core.levels.honesty import LATER, Checked, check_claims, names_change
from core.levels.partial import acts, failure_of, undone_of
from core.levels.renderer import Renderer
from core.levels.runner import Outcome
from core.messages import Block, FinalKind, Reply
from core.observation import Effects
from core.plan import FINAL_ANSWER, steps_used
from core.turn_state import StepRecord, TurnState
from core.vocabulary import object_of, verb_of

MOST_NAMED = 3

# Ends that the person or a restart made: there is nothing to look up.
_ENDED_BY_OTHERS = frozenset(
    {
        ErrorCode.STOPPED,
        ErrorCode.INTERRUPTED,
        ErrorCode.DECLINED,
        ErrorCode.CANCELLED,
        ErrorCode.QUESTION_EXPIRED,
    }
)
_ASKS = re.compile(
    r"^\W*(?:(?:a|di|da|in|con|per|su)\s+)?(?:qual[ei]?|quant[oiae]|chi|che|cosa|dove|quando|come"
    r"|which|what|where|who|whom|when|how)\b"
)


@dataclass(frozen=True, slots=True)
class Closing:
    """The reply, and what the log should know of how it was made: claims that were taken out, and
    the failure that it tells."""

    reply: Reply
    unbacked: tuple[str, ...] = ()
    error: ErrorInfo | None = None


@dataclass(frozen=True, slots=True)
class Terminator:
    texts: Texts

    def close(
        self,
        outcome: Outcome,
        *,
        request: str,
        lang: str,
        tz: str,
        home: str,
        catalog: Catalog,
        given: Given = Given(),  # noqa: B008 - frozen
    ) -> Closing:
        """The reply to an outcome. Failures say what was done, not done and unknown; an answer in
        words that hides a failure becomes one. `given` goes along with an answer."""
        renderer = Renderer(self.texts, lang, tz, home)
        state, kind, error = outcome.state, outcome.kind, outcome.error
        unbacked: tuple[str, ...] = ()
        if kind is FinalKind.ANSWER and outcome.answer.strip():
            blocks, unbacked = self._spoken(outcome, request, lang, gives=bool(given.files))
            error = failure_of(state.steps)
            if not blocks and error is None:
                blocks = self._rendered(state.steps, renderer, catalog)
            if error is not None:
                kind = FinalKind.ERROR
                blocks += self.failure(error, state, renderer, known=bool(unbacked))
            else:
                blocks += self._effects(state.steps, renderer)
                blocks += self._not_done(state, renderer)
        elif kind is FinalKind.ANSWER:
            blocks = self._rendered(state.steps, renderer, catalog)
            told = _used(state.steps)
            blocks += self._effects(told, renderer)
            if any(is_undoable(record) for record in state.steps if record not in told):
                blocks.append(Block("small", self.texts.say("effect.can_undo", lang)))
        else:
            error = error or ErrorInfo(ErrorCode.INTERNAL)
            blocks = self._found_so_far(state.steps, renderer, catalog)
            blocks += self.failure(error, state, renderer, kind=kind)
        if not blocks:
            blocks = [Block("text", self.texts.say("answer.nothing_to_say", lang))]
        if kind is FinalKind.ANSWER and is_question(outcome.answer, blocks, state.steps):
            kind = FinalKind.ASK
        files = given.files if kind in {FinalKind.ANSWER, FinalKind.ASK} else ()
        if len(files) < given.total and files:
            words = {"count": len(files), "total": given.total}
            blocks.append(Block("text", self.texts.say("answer.given_some", lang, **words)))
        reply = Reply(tuple(blocks), lang, state.turn_id, kind, attachments=files)
        return Closing(reply, unbacked, error)

    def failure(
        self,
        error: ErrorInfo,
        state: TurnState,
        renderer: Renderer,
        *,
        kind: FinalKind = FinalKind.ERROR,
        known: bool = False,
    ) -> list[Block]:
        """What happened, what was done and what was not, and a reference in small type. `known`:
        it has been said already that nothing was changed."""
        lang, steps = renderer.lang, state.steps
        blocks = [Block("text", self._what_happened(error, steps, renderer, kind))]
        changed = self._effects(steps, renderer)
        blocks += changed
        if changed:
            blocks += self._not_done(state, renderer)
        elif kind is FinalKind.ERROR and not known:
            blocks.append(Block("text", self.texts.say("outcome.nothing_done", lang)))
        if state.turn_id and kind is FinalKind.ERROR and error.code not in _ENDED_BY_OTHERS:
            blocks.append(
                Block("small", self.texts.say("outcome.reference", lang, ref=state.turn_id[:6]))
            )
        return blocks

    def so_far(self, steps: Sequence[StepRecord], renderer: Renderer) -> str:
        """What these steps changed, in a line for each kind; or that they changed nothing."""
        blocks = self._effects(steps, renderer)
        if not blocks:
            return self.texts.say("cap.nothing_changed", renderer.lang)
        return "\n".join(block.text for block in blocks)

    # -- pieces -----------------------------------------------------------------------------------

    def _spoken(
        self, outcome: Outcome, request: str, lang: str, *, gives: bool
    ) -> tuple[list[Block], tuple[str, ...]]:
        """The model's prose, less what it claims without a step; `gives`: files go along."""
        steps = outcome.state.steps
        done = _done(steps) | ({"send"} if gives else set())
        checked = check_claims(
            outcome.answer.strip(),
            lang=lang,
            done=done,
            promises_only=not done and not names_change(request),
        )
        blocks = [Block("prose", checked.text)] if checked.text or not checked.removed else []
        return [*blocks, *self._taken_out(checked, lang, done)], checked.removed

    def _taken_out(self, checked: Checked, lang: str, done: set[str]) -> list[Block]:
        """That something was taken out of the answer, and what holds instead."""
        keys = []
        if checked.claimed:
            keys.append("outcome.claim_removed" if done else "outcome.claim_removed_nothing")
        if checked.promised:
            keys.append("outcome.promise_removed")
        return [Block("text", self.texts.say(key, lang)) for key in keys]

    def _what_happened(
        self, error: ErrorInfo, steps: Sequence[StepRecord], renderer: Renderer, kind: FinalKind
    ) -> str:
        """The error in words. A loop is named with what failed in it; advice to the model says
        nothing to a person. Several items that all failed are told one by one."""
        last = steps[-1].observation if steps else None
        if last is not None and last.error == error and len(last.entries or ()) > 1:
            text = renderer.failures([e for e in last.entries or () if e.get("ok") is False])
        else:
            text = renderer.error(error)
            hint = f"next.{error.code.value}"
            if self.texts.has(hint, renderer.lang):
                text = f"{text} {self.texts.say(hint, renderer.lang)}"
        if kind is not FinalKind.LOOP_BREAK:
            return text
        loop = self.texts.say(f"error.{ErrorCode.LOOP_BREAK.value}", renderer.lang)
        return loop if error.code in guards.ADVICE else f"{loop} {text}"

    def _rendered(
        self,
        steps: Sequence[StepRecord],
        renderer: Renderer,
        catalog: Catalog,
    ) -> list[Block]:
        """The answers of the steps whose result no later step used, in their order; or what the
        plan's own answer makes of them."""
        lang, used = renderer.lang, {record.number for record in _used(steps)}
        blocks: list[Block] = []
        for record in steps:
            if record.tool == FINAL_ANSWER:
                done = _done(steps)
                said = check_claims(str(record.observation.content or ""), lang=lang, done=done)
                blocks += [Block("text", said.text)] if said.text.strip() else []
                blocks += self._taken_out(said, lang, done)
            elif record.tool == UNDO_LAST_TURN and record.observation.ok:
                blocks += self._undone(record, renderer)
            elif record.number not in used and not _is_advice(record):
                executor = catalog.executors.get(record.tool)
                manifest = None if executor is None else executor.manifest
                blocks += renderer.observation(record.observation, manifest)
        return blocks

    def _undone(self, record: StepRecord, renderer: Renderer) -> list[Block]:
        """What came of taking back the last turn, among other things."""
        status = record.observation.metadata.get("status")
        if status != "undone":
            key = "undo.nothing" if status == "nothing" else "undo.again"
            return [Block("text", self.texts.say(key, renderer.lang))]
        failed = [e for e in record.observation.entries or () if e.get("ok") is False]
        blocks = self._effects([record], renderer)
        return [*blocks, Block("text", renderer.failures(failed))] if failed else blocks

    def _found_so_far(
        self, steps: Sequence[StepRecord], renderer: Renderer, catalog: Catalog
    ) -> list[Block]:
        """What was found before the end and served no other step; changes are told apart."""
        used = {record.number for record in _used(steps)}
        found = [
            r for r in steps if r.observation.ok and r.number not in used and not acts(r.tool)
        ]
        return self._rendered(found, renderer, catalog)

    def _not_done(self, state: TurnState, renderer: Renderer) -> list[Block]:
        """One line per kind of change that was wanted and not made."""
        lines: list[str] = []
        for undone in undone_of(state):
            what = self._named([renderer.short_path(name) for name in undone.names], renderer.lang)
            key = f"undone.{undone.verb}" if what else "undone.rest"
            if not self.texts.has(key, renderer.lang):
                key = "undone.other"
            lines.append(self.texts.say(key, renderer.lang, what=what))
        return [Block("text", "\n".join(dict.fromkeys(lines)))] if lines else []

    def _effects(self, steps: Iterable[StepRecord], renderer: Renderer) -> list[Block]:
        """One line per kind of change that was made, and one for what is not known."""
        lines: list[str] = []
        for record in steps:
            effects = record.observation.effects
            if effects is Effects.NONE:
                continue
            names = _changed(record)
            what = self._named([renderer.short_path(name) for name in names], renderer.lang)
            key = f"effect.{verb_of(record.tool)}"
            inside = record.preview is not None and record.preview.get("parts")
            if inside or not self.texts.has(key, renderer.lang):
                key = "effect.other"
            line = self.texts.say(key, renderer.lang, what=what, count=max(1, len(names)))
            if effects is Effects.UNKNOWN:
                line = self.texts.say("effect.unknown", renderer.lang, what=what)
            elif is_undoable(record):
                line = self.texts.say("effect.undoable", renderer.lang, line=line)
            lines.append(line)
        return [Block("text", "\n".join(dict.fromkeys(lines)))] if lines else []

    def _named(self, names: list[str], lang: str) -> str:
        if len(names) <= MOST_NAMED:
            return ", ".join(names)
        more = self.texts.say("answer.more", lang, count=len(names) - MOST_NAMED)
        return f"{', '.join(names[:MOST_NAMED])} {more}"


def _changed(record: StepRecord) -> list[str]:
    """What a changing step names: its items that worked, else what its preview announced."""
    entries = [e for e in record.observation.entries or () if e.get("ok") is not False]
    names = [_name(entry) for entry in entries if entry.get("unchanged") is not True]
    if not any(names) and record.preview is not None:
        names = [str(target) for target in record.preview.get("targets", ())]
    return [name for name in names if name]


def _name(entry: Mapping[str, Any]) -> str:
    source, path = entry.get("source"), entry.get("path")
    if source and path:
        return f"{source} → {path}"
    named = (entry.get(key) for key in ("url", "name", "title", "subject", "id"))
    return str(path or next(filter(None, named), ""))


def _used(steps: Sequence[StepRecord]) -> list[StepRecord]:
    """The steps whose result another one worked with."""
    numbers = set().union(*(steps_used(record.raw_args) for record in steps if record.ran))
    return [record for record in steps if record.number in numbers]


def _is_advice(record: StepRecord) -> bool:
    error = record.observation.error
    return error is not None and error.code in guards.ADVICE


def is_question(answer: str, blocks: Sequence[Block], steps: Sequence[StepRecord]) -> bool:
    """Whether the model's answer is itself a question (`ask`).

    After steps that brought something, a last sentence that only offers more is none: it must ask
    which, what, where; or be all that was said.
    """
    prose = [block.text for block in blocks if block.kind == "prose"]
    last = prose[-1].rstrip(' \n*_)"»') if answer and prose else ""
    if not last.endswith("?"):
        return False
    if not any(record.observation.ok for record in steps):
        return True
    sentence = re.split(r"(?<=[.!?:])\s+|\n+", last)[-1]
    return sentence == last or _ASKS.search(sentence.casefold()) is not None


def _done(steps: Sequence[StepRecord]) -> set[str]:
    """The verbs of what was changed, with `LATER` when a task was scheduled."""
    tools = {record.tool for record in steps if record.observation.effects is Effects.DONE}
    later = {LATER} if any(_schedules(tool) for tool in tools) else set()
    return {verb_of(tool) for tool in tools} | later


def _schedules(tool: str) -> bool:
    return tool == "schedule_recurring" or (
        object_of(tool) == "tasks" and verb_of(tool) in {"create", "set", "write", "change"}
    )
