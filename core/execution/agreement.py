"""Whether a person must agree first, and whether they have.

Looks at what the change would do (its preview), asks policy, and compares what was said, now or
for good, with what is shown now. Decides nothing by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.catalog.loader import LoadedExecutor
from core.catalog.manifest import Manifest
from core.clock import Clock
from core.errors import CallRefused, ErrorCode
from core.execution import consent, policy, secret_args, sources, standing
from core.execution.accounts import Opened
from core.execution.addresses import Doubt
from core.execution.attempt import Attempt
from core.execution.consent import CHANGE, NeedsAnswer, Question
from core.execution.context import TurnContext
from core.execution.document import document_of
from core.execution.policy import Consent
from core.execution.runner import Runner
from core.execution.standing import Given
from core.execution.values import listed
from core.messages import Autonomy, Role
from core.observation import Provenance
from core.store import approvals
from core.store.stores import Stores
from core.turn_state import TurnState
from core.vocabulary import object_of

# After so many times a person knows what the card says.
KNOWN_AFTER = 3


@dataclass(frozen=True, slots=True)
class Agreement:
    """Holds what is needed to ask; keeps nothing of any call."""

    cage: Runner
    stores: Stores
    clock: Clock

    def to_addresses(
        self,
        context: TurnContext,
        state: TurnState,
        manifest: Manifest,
        raw: Mapping[str, Any],
        args: Mapping[str, Any],
        urls: list[str],
        attempt: Attempt,
    ) -> None:
        """See whether the person must agree to contact these addresses.

        Those of a change are only noted: they are asked about along with it. Raises `NeedsAnswer`
        with the question, `CallRefused` for a guest, who cannot agree to what leaves the house.
        """
        doubts = sources.doubts_about(urls, raw, context, state)
        if not doubts:
            return
        attempt.checks["consent"] = Consent.NEEDED.value
        if context.actor.role is Role.GUEST:
            raise CallRefused(ErrorCode.NOT_AUTHORIZED, next(iter(doubts.values())).value)
        attempt.composed = tuple(doubts)
        if manifest.is_mutating:
            return
        digest = consent.digest_of(manifest.name, args, list(doubts), manifest)
        if not _agreed(attempt, digest):
            private = Doubt.AFTER_PRIVATE in doubts.values()
            source = sources.where_from(context, state, private=private)
            raise NeedsAnswer(
                consent.address_question(manifest, list(doubts), digest=digest, source=source)
            )
        attempt.checks["consent"] = Consent.GIVEN.value

    async def to_change(
        self,
        context: TurnContext,
        state: TurnState,
        executor: LoadedExecutor,
        raw: Mapping[str, Any],
        args: dict[str, Any],
        paths: list[str],
        attempt: Attempt,
        mine: Opened,
        foreseen: Mapping[str, Any] | None = None,
    ) -> None:
        """Preview the change and ask policy whether a person must agree first. `foreseen`: its
        preview, when no program has to be asked for it.

        Raises `NeedsAnswer` with the question when they must and have agreed to exactly this
        neither now nor for good, and `CallRefused` when the preview failed.
        """
        manifest = executor.manifest
        preview = foreseen or await self._preview(context, state, executor, args, paths, mine)
        attempt.preview = preview
        targets = [str(target) for target in preview.get("targets", paths)]
        count = int(preview.get("count", len(targets)))
        if not count and policy.is_about_nothing(manifest, args, targets):
            attempt.checks["consent"] = Consent.NOT_NEEDED.value
            return
        sinks = [str(v) for name in manifest.sinks for v in listed(args.get(name))]
        acted_on = list(dict.fromkeys([*sinks, *paths])) or targets
        if object_of(manifest.name) == "lists" and isinstance(args.get("name"), str):
            acted_on = [args["name"]]  # a list is called by its name; nobody says its path
        origin = sources.origin_of(acted_on, raw, manifest, context, state)
        attempt.origin = origin
        if attempt.composed:
            origin = Provenance.EXTERNAL
        in_workspace = all(
            context.scope.holds(target, write=True) or policy.is_own(manifest, target)
            for target in targets
        )
        recipients = tuple(consent.recipients_of(args, manifest))
        needed = policy.consent(
            manifest,
            count=count,
            in_workspace=in_workspace,
            origin=origin,
            named_each=all(policy.is_spoken_of(target, context.said) for target in acted_on)
            and all(policy.is_spoken_of(target, context.said) for target in targets),
            actor=context.actor,
            known_recipients=await self._knows(context, recipients),
        )
        attempt.checks["consent"] = needed.value
        if needed is Consent.NOT_NEEDED:
            return
        kind = standing.kind_of(manifest, args, targets)
        given = Given(context.actor.id, kind, count, recipients)
        digest = consent.digest_of(manifest.name, args, preview, manifest)
        bond = None
        may_stand = policy.may_stand(manifest, in_workspace=in_workspace, origin=origin)
        if (
            may_stand
            and consent.can_be_undone(manifest, preview)
            and not sources.knew_external(context, state)
        ):
            bond = standing.bond_of(manifest, raw, args, targets, context, state)
        if _agreed(attempt, digest):
            always = attempt.decision is not None and attempt.decision.choice == consent.ALWAYS
            attempt.given = replace(given, bond=bond if always else None)
            attempt.checks["consent"] = Consent.GIVEN.value
            return
        question = consent.approval_for(
            manifest,
            args,
            preview,
            targets,
            digest=digest,
            source=(
                sources.where_from(context, state, acted_on)
                if origin is Provenance.EXTERNAL
                else None
            ),
            addresses=attempt.composed,
        )
        if attempt.decision is not None:
            if attempt.decision.choice == CHANGE and question.changeable is not None:
                raise NeedsAnswer(consent.which_recipient(manifest.name, question.changeable))
            question = replace(question, changed=attempt.decision.changed)
        async with self.stores.main.read() as tx:
            mandate = None
            if bond is not None:
                now = self.clock.now()
                mandate = await approvals.find(tx, context.actor.id, bond, count=count, now=now)
            before = await approvals.agreed_to(tx, context.actor.id, kind)
        if mandate is not None:
            attempt.given = replace(given, mandate=mandate.id)
            attempt.checks["consent"] = Consent.STANDING.value
            return
        raise NeedsAnswer(
            replace(
                question,
                may_always=bond is not None,
                brief=_is_known(question, before, lasting=policy.is_lasting(manifest)),
            )
        )

    async def _preview(
        self,
        context: TurnContext,
        state: TurnState,
        executor: LoadedExecutor,
        args: Mapping[str, Any],
        paths: list[str],
        mine: Opened,
    ) -> Mapping[str, Any]:
        manifest = executor.manifest
        seen = await self.cage.run(
            executor,
            context.catalog.sdk,
            mine.into(document_of(context, state, manifest, args, paths)),
            mode="preview",
            timeout_s=manifest.timeout_s,
            limits=manifest.limits,
        )
        seen = secret_args.masked(seen, mine.secrets)
        if not seen.ok:
            raise CallRefused(
                seen.error.code if seen.error else ErrorCode.INTERNAL,
                seen.error.detail if seen.error else "no preview",
                **(dict(seen.error.params) if seen.error else {}),
            )
        return seen.content if isinstance(seen.content, Mapping) else seen.metadata

    async def _knows(self, context: TurnContext, recipients: tuple[str, ...]) -> bool:
        """Whether all of these were agreed to before; looked up where it makes a difference."""
        if not recipients or context.actor.autonomy is not Autonomy.FULL:
            return False
        async with self.stores.main.read() as tx:
            return await approvals.knows_recipients(tx, context.actor.id, recipients)


def _agreed(attempt: Attempt, digest: str) -> bool:
    """Whether the person has just agreed to exactly this."""
    decision = attempt.decision
    return decision is not None and decision.agreed and decision.digest == digest


def _is_known(question: Question, before: approvals.Agreed, *, lasting: bool) -> bool:
    """Whether a line says enough: the like was agreed to a few times, with no fewer items, it can
    be undone, and nothing from outside had a word in it."""
    return (
        question.reversible
        and not lasting
        and question.source is None
        and not question.addresses
        and before.times >= KNOWN_AFTER
        and question.count <= before.most
    )
