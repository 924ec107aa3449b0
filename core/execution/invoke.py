"""The gate: the one way by which a call becomes an action.

In this order, always on resolved values: known and offered → references → JSON Schema → canonical
values → scope → grounding → duplicates → caps → guard → judge → preview → consent → journal →
cage → observation → journal → scratchpad. A call's own failure is an observation, never an
exception. A call that needs a person's word first is a question, and has done nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.catalog.loader import LoadedExecutor
from core.catalog.manifest import Manifest
from core.clock import Clock
from core.config import Settings
from core.errors import CallRefused, ErrorCode, to_error_info
from core.execution import (
    accounts,
    arguments,
    asking,
    builtins,
    consent,
    grounding,
    guards,
    keeping,
    machine,
    policy,
    secret_args,
    sources,
    whereabouts,
)
from core.execution.account_words import CREDENTIALS
from core.execution.agreement import Agreement
from core.execution.attempt import Attempt
from core.execution.consent import Decision, NeedsAnswer, Question
from core.execution.context import StateLookup, TurnContext
from core.execution.credential_tools import CredentialTools
from core.execution.document import document_of
from core.execution.paths import canonical_path, check_scope
from core.execution.preimages import drop_second_names
from core.execution.reading import Reader, kind_of
from core.execution.recipients import Recipients
from core.execution.runner import Runner
from core.execution.undo import Undo
from core.execution.vaglio import Vaglio
from core.execution.values import listed
from core.observation import Effects, Observation, Provenance
from core.plan import FINAL_ANSWER, Step
from core.store.stores import Stores
from core.store.turn_log import PolicyLog
from core.turn_state import StepRecord, TurnState

log = logging.getLogger(__name__)

_EXTERNAL = Provenance.EXTERNAL

ProgressSink = Callable[[int | None, int | None], None]


@dataclass(frozen=True, slots=True)
class Gate:
    """Holds what calls need; keeps nothing of any call."""

    cage: Runner
    stores: Stores
    clock: Clock
    settings: Settings
    policy_log: PolicyLog
    credentials: CredentialTools | None = None
    recipients: Recipients | None = None
    reader: Reader | None = None

    @property
    def _vaglio(self) -> Vaglio:
        return Vaglio(self.clock, self.policy_log, self.settings.metnos_judge_threshold)

    async def call(
        self,
        context: TurnContext,
        state: TurnState,
        step: Step,
        *,
        offered: frozenset[str],
        on_progress: ProgressSink | None = None,
        decision: Decision | None = None,
    ) -> StepRecord | Question:
        """Take one proposed step through all checks, run it, and return what came of it; or the
        question that a person must answer first, when nothing was run.

        `decision`: their answer to the question that this very step had. `offered` are the tool
        names the proposer could choose from. Never raises for the call's own failure; a change is
        journalled before it runs, and its end is committed together with the state that holds it.
        Calling twice acts twice: the guards look at `state` only.
        """
        started = self.clock.monotonic()
        attempt = Attempt(decision=decision)
        typed = sources.typed_in(state)
        if decision is not None and (changed := consent.changed_by(decision, step.tool, context)):
            whole = {name: value for name, value in changed.items() if "." not in name}
            step = replace(step, args={**step.args, **whole})
            attempt.decision = replace(decision, changed=changed)
            typed = (*typed, *(str(v) for value in changed.values() for v in listed(value)))
        context = replace(context, typed=typed)
        try:
            observation = await self._pass(context, state, step, offered, attempt, on_progress)
        except NeedsAnswer as exc:
            return exc.question
        except CallRefused as exc:
            observation = Observation.failed(to_error_info(exc))
        except Exception as exc:
            log.exception("call failed", extra={"tool": step.tool})
            left = Effects.UNKNOWN if attempt.ran and attempt.mutating else Effects.NONE
            observation = Observation.failed(to_error_info(exc), effects=left)
        record = StepRecord(
            number=len(state.steps) + 1,
            tool=step.tool,
            raw_args=secret_args.storable(arguments.storable(step.args), _manifest(context, step)),
            resolved_args=attempt.resolved,
            observation=observation,
            shown={},
            checks=attempt.checks,
            key=attempt.key,
            ran=attempt.ran,
            latency_ms=round((self.clock.monotonic() - started) * 1000),
            preview=attempt.preview,
            tokens_in=attempt.usage.tokens_in,
            tokens_out=attempt.usage.tokens_out,
            cached=attempt.usage.cached,
            model_ms=attempt.model_ms,
        )
        return await keeping.keep(
            self.stores,
            self.clock,
            context,
            state,
            record,
            journal=attempt.journal,
            left_out=attempt.left_out,
            along=attempt.along,
        )

    async def _pass(
        self,
        context: TurnContext,
        state: TurnState,
        step: Step,
        offered: frozenset[str],
        attempt: Attempt,
        on_progress: ProgressSink | None,
    ) -> Observation:
        guards.check_steps(state.steps, extended=state.extended)
        lookup = StateLookup(context, state)
        if step.tool in builtins.BUILTINS:
            if step.tool != FINAL_ANSWER and step.tool not in offered:
                raise CallRefused(ErrorCode.UNKNOWN_TOOL, guards.unknown(step.tool, offered))
            attempt.resolved = arguments.resolve_references(step.args, None, lookup)
            guards.check_caps(state.steps, step.tool, step.args, None, extended=state.extended)
            attempt.ran = True
            if step.tool == FINAL_ANSWER:
                return Observation(ok=True, content=str(attempt.resolved.get("text", "")))
            if step.tool in asking.ASKING:
                attempt.resolved = asking.with_lists(step.tool, attempt.resolved, lookup)
                answer = asking.answer_of(step.tool, attempt.resolved, attempt.decision)
                whose = sources.of_answer(step.args, context, state)
                return replace(answer, provenance=whose)
            if step.tool == whereabouts.GET_LOCATION:
                now = self.clock.now()
                return await whereabouts.get_location(self.stores, context, now, attempt.decision)
            if step.tool in CREDENTIALS and self.credentials is not None:
                return await self.credentials.run(
                    step.tool, attempt.resolved, context, attempt.decision
                )
            if step.tool == builtins.UNDO_LAST_TURN:
                attempt.mutating, undo = True, Undo(self.cage, self.stores, self.clock)
                seen, attempt.journal = await undo.put_back_last(context, state)
                return seen
            read = await builtins.scratchpad_read(self.stores, context, attempt.resolved)
            return replace(read, provenance=sources.of_entry(attempt.resolved["id"], state))
        executor = context.catalog.executors.get(step.tool)
        if step.tool in context.catalog.withheld:
            raise CallRefused(ErrorCode.NOT_AUTHORIZED, "this tool is the host's alone: answer")
        if step.tool in context.catalog.dormant:
            raise accounts.missing(context.catalog.dormant[step.tool])
        if executor is None or step.tool not in offered:
            raise CallRefused(
                ErrorCode.UNKNOWN_TOOL, guards.unknown(step.tool, offered), tool=step.tool
            )
        manifest = executor.manifest
        attempt.mutating = manifest.is_mutating
        args = arguments.resolve_references(step.args, manifest, lookup)
        guards.check_source(args, manifest, context.catalog)
        args = arguments.validate(args, manifest, lookup.runtime)
        attempt.checks["validation"] = "ok"
        paths: list[str] = []
        try:
            args = arguments.canonicalise(
                args, manifest, lambda text: canonical_path(text, context.scope)
            )
            attempt.resolved = args
            attempt.key = guards.call_key(step.tool, args)
            paths = [p for group in arguments.paths_in(args, manifest).values() for p in group]
            for path in paths:
                check_scope(path, context.scope, write=manifest.is_mutating)
        except CallRefused as exc:
            self._vaglio.note_refused(context, manifest, args, exc, attempt)
            raise
        attempt.checks["scope"] = "ok"
        people: list[Any] = []
        if self.recipients is not None and "recipient" in manifest.sinks.values():
            answered = attempt.decision.changed if attempt.decision is not None else {}
            args, put_in = await self.recipients.resolved(context, state, manifest, args, answered)
            context = replace(context, typed=(*context.typed, *put_in))
            people = await self.recipients.paired(context, manifest, args)
            attempt.resolved, attempt.key = args, guards.call_key(step.tool, args)
        secrets = await secret_args.opened(self.stores, context, manifest, args)
        mine = await accounts.opened(self.stores, context, manifest, args)
        args = self._ground(context, state, step, manifest, args, attempt)
        urls = _urls(args, executor)
        guards.check_duplicates(state.steps, step.tool, args, [*paths, *urls])
        guards.check_caps(state.steps, step.tool, step.args, manifest, extended=state.extended)
        guards.check_declined(state.steps, attempt.key)
        if attempt.decision is not None and not attempt.decision.agreed:
            attempt.checks["consent"] = "declined"
            raise CallRefused(ErrorCode.DECLINED, "the person said no to this: do not do it")
        self._vaglio.weigh(context, manifest, args, paths, attempt)
        agreement = Agreement(self.cage, self.stores, self.clock)
        try:
            agreement.to_addresses(context, state, manifest, step.args, args, urls, attempt)
        except (CallRefused, NeedsAnswer):
            verdict = policy.Verdict(False, "composed_address")
            self._vaglio.note(context, manifest, args, verdict)
            raise
        if manifest.is_mutating:
            foreseen = None
            if people and self.recipients is not None:
                foreseen = self.recipients.foreseen(people, args)
            await agreement.to_change(
                context, state, executor, step.args, args, paths, attempt, mine, foreseen
            )
            attempt.journal = await keeping.open_journal(
                self.stores,
                self.clock,
                context,
                state,
                manifest,
                step.args,
                attempt.preview or {},
                attempt.given,
            )
        attempt.ran = True
        if people and self.recipients is not None:
            seen, attempt.along = self.recipients.sending(context, state, people, args)
            return seen
        document = document_of(context, state, manifest, args, paths)
        document |= await whereabouts.told_to(
            manifest, self.stores, context, self.clock.now(), attempt.decision
        )
        document |= await machine.told_to(manifest)
        observation = await self.cage.run(
            executor,
            context.catalog.sdk,
            mine.into(secret_args.with_values(document, secrets)),
            mode="run",
            timeout_s=manifest.timeout_s,
            limits=manifest.limits,
            on_progress=on_progress,
        )
        observation = secret_args.masked(observation, {**secrets, **mine.secrets})
        kind = kind_of(manifest)
        if kind is not None:
            if self.reader is None:
                raise CallRefused(ErrorCode.MODEL_MISSING, "no model reads here")
            reading = await self.reader.read(kind, context, state, args, observation, on_progress)
            observation = reading.observation
            attempt.usage, attempt.model_ms = reading.usage, reading.model_ms
        if manifest.is_mutating and not observation.ok and attempt.preview is not None:
            # A child that was killed has not tidied up behind itself.
            await asyncio.to_thread(drop_second_names, attempt.preview.get("undo"))
        whereabouts.ask_if_needed(observation, manifest, args, attempt.decision)
        outside = attempt.origin is _EXTERNAL or (
            not manifest.is_mutating
            and (
                sources.of_steps(step.args, state) is _EXTERNAL
                or sources.was_sent(paths, context.inbox)
            )
        )
        # Sorting or filtering what the outside said makes nothing of it ours.
        return replace(observation, provenance=_EXTERNAL) if outside else observation

    def _ground(
        self,
        context: TurnContext,
        state: TurnState,
        step: Step,
        manifest: Manifest,
        args: dict[str, Any],
        attempt: Attempt,
    ) -> dict[str, Any]:
        """The arguments without those that nobody gave and that the tool can do without."""
        attempt.checks["grounding"] = "denied"
        ground = sources.ground_of(context, state)
        attempt.left_out = grounding.check(step.args, args, manifest, ground)
        if not attempt.left_out:
            attempt.checks["grounding"] = "ok"
            return args
        attempt.checks["grounding"] = f"without {', '.join(attempt.left_out)}"
        attempt.resolved = {k: v for k, v in args.items() if k not in attempt.left_out}
        attempt.key = guards.call_key(step.tool, attempt.resolved)
        return attempt.resolved


def _manifest(context: TurnContext, step: Step) -> Manifest | None:
    executor = context.catalog.executors.get(step.tool)
    return None if executor is None else executor.manifest


def _urls(args: Mapping[str, Any], executor: LoadedExecutor) -> list[str]:
    kinds = executor.manifest.sinks
    return [str(v) for name in args if kinds.get(name) == "url" for v in listed(args[name])]
