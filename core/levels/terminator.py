"""The terminator: the reply, from the log of the steps.

What is told of effects comes from the records, not from the model; what the model claims without
a step is taken out and said. Knows no channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.catalog.loader import Catalog
from core.errors import ErrorCode, ErrorInfo
from core.i18n import Texts
from core.levels.honesty import check_claims, names_change
from core.levels.renderer import Renderer
from core.levels.runner import Outcome
from core.messages import Block, FinalKind, Reply
from core.observation import Effects
from core.plan import FINAL_ANSWER, steps_used
from core.turn_state import StepRecord
from core.vocabulary import verb_of

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Closing:
    """The reply, and what the log should know of how it was made."""

    reply: Reply
    unbacked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Terminator:
    texts: Texts

    def close(
        self, outcome: Outcome, *, request: str, lang: str, tz: str, home: str, catalog: Catalog
    ) -> Closing:
        """The reply to an outcome. Failures say what was done, not done and unknown."""
        renderer = Renderer(self.texts, lang, tz, home)
        steps = outcome.state.steps
        kind = outcome.kind
        unbacked: tuple[str, ...] = ()
        if kind is FinalKind.ANSWER and outcome.answer.strip():
            blocks, unbacked = self._spoken(outcome, request, lang)
            if not blocks:
                blocks = self._rendered(steps, renderer, catalog)
            blocks += self._effects(steps, renderer)
        elif kind is FinalKind.ANSWER:
            blocks = self._rendered(steps, renderer, catalog)
        else:
            error = outcome.error or ErrorInfo(ErrorCode.INTERNAL)
            blocks = self.failure(error, steps, renderer, kind=kind, turn_id=outcome.state.turn_id)
            if kind is not FinalKind.ERROR:
                blocks = self._found_so_far(steps, renderer, catalog) + blocks
        if not blocks:
            blocks = [Block("text", self.texts.say("answer.nothing_to_say", lang))]
        if kind is FinalKind.ANSWER and _is_question(outcome, blocks):
            kind = FinalKind.ASK
        return Closing(Reply(tuple(blocks), lang, outcome.state.turn_id, kind), unbacked)

    def failure(
        self,
        error: ErrorInfo,
        steps: Sequence[StepRecord],
        renderer: Renderer,
        *,
        kind: FinalKind = FinalKind.ERROR,
        turn_id: str = "",
    ) -> list[Block]:
        """What happened, what was not done, what to do next, and a reference in small type."""
        lang = renderer.lang
        blocks = [Block("text", renderer.error(error))]
        changed = self._effects(steps, renderer)
        blocks += changed
        if not changed and _could_have_changed(steps, kind):
            blocks.append(Block("text", self.texts.say("outcome.nothing_done", lang)))
        if turn_id and kind is FinalKind.ERROR:
            blocks.append(
                Block("small", self.texts.say("outcome.reference", lang, ref=turn_id[:6]))
            )
        return blocks

    # -- pieces -----------------------------------------------------------------------------------

    def _spoken(
        self, outcome: Outcome, request: str, lang: str
    ) -> tuple[list[Block], tuple[str, ...]]:
        """The model's prose, less what it claims without a step."""
        steps = outcome.state.steps
        done = {verb_of(r.tool) for r in steps if r.observation.effects is Effects.DONE}
        if not done and not names_change(request):
            return [Block("prose", outcome.answer.strip())], ()
        checked = check_claims(outcome.answer.strip(), lang=lang, done=done)
        blocks = [Block("prose", checked.text)] if checked.text else []
        if checked.removed:
            key = "outcome.claim_removed" if done else "outcome.claim_removed_nothing"
            blocks.append(Block("text", self.texts.say(key, lang)))
        return blocks, checked.removed

    def _rendered(
        self, steps: Sequence[StepRecord], renderer: Renderer, catalog: Catalog
    ) -> list[Block]:
        """The answers of the steps whose result no later step used, in their order."""
        used = set().union(*(steps_used(r.raw_args) for r in steps)) if steps else set()
        blocks: list[Block] = []
        for record in steps:
            if record.tool == FINAL_ANSWER:
                text = str(record.observation.content or "")
                blocks += [Block("text", text)] if text else []
            elif record.number not in used:
                executor = catalog.executors.get(record.tool)
                manifest = None if executor is None else executor.manifest
                blocks += renderer.observation(record.observation, manifest)
        return blocks

    def _found_so_far(
        self, steps: Sequence[StepRecord], renderer: Renderer, catalog: Catalog
    ) -> list[Block]:
        good = [record for record in steps if record.observation.ok]
        return self._rendered(good[-1:], renderer, catalog)

    def _effects(self, steps: Iterable[StepRecord], renderer: Renderer) -> list[Block]:
        """One line per kind of change that was made, and one for what is not known."""
        lines: list[str] = []
        for record in steps:
            effects = record.observation.effects
            if effects is Effects.NONE:
                continue
            names = _changed(record)
            what = self._named([renderer.path(name) for name in names], renderer.lang)
            key = f"effect.{verb_of(record.tool)}"
            if not self.texts.has(key, renderer.lang):
                key = "effect.other"
            line = self.texts.say(key, renderer.lang, what=what, count=max(1, len(names)))
            if effects is Effects.UNKNOWN:
                line = self.texts.say("effect.unknown", renderer.lang, what=what)
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
    names = [_name(entry) for entry in entries]
    if not any(names) and record.preview is not None:
        names = [str(target) for target in record.preview.get("targets", ())]
    return [name for name in names if name]


def _name(entry: Mapping[str, Any]) -> str:
    source, path = entry.get("source"), entry.get("path")
    if source and path:
        return f"{source} → {path}"
    return str(path or entry.get("url") or entry.get("id") or entry.get("name") or "")


def _could_have_changed(steps: Sequence[StepRecord], kind: FinalKind) -> bool:
    return kind is FinalKind.ERROR and all(
        record.observation.effects is Effects.NONE for record in steps
    )


def _is_question(outcome: Outcome, blocks: Sequence[Block]) -> bool:
    """Whether the model's answer is itself a question (`ask`)."""
    prose = [block.text for block in blocks if block.kind == "prose"]
    last = prose[-1].rstrip(' \n*_)"»') if prose else ""
    return bool(outcome.answer) and last.endswith("?") and not outcome.state.steps
