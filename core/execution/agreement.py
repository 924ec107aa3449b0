"""Whether a person must agree to a change first, and whether they have.

Looks at what the change would do (its preview), asks policy, and compares what was said with what
is shown now. Decides nothing by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.catalog.loader import LoadedExecutor
from core.errors import CallRefused, ErrorCode
from core.execution import consent, policy, sources
from core.execution.attempt import Attempt
from core.execution.cage.process import ProcessCage
from core.execution.consent import NeedsAnswer
from core.execution.context import TurnContext
from core.execution.document import document_of
from core.execution.values import listed
from core.turn_state import TurnState


async def agree(
    cage: ProcessCage,
    context: TurnContext,
    state: TurnState,
    executor: LoadedExecutor,
    raw: Mapping[str, Any],
    args: dict[str, Any],
    paths: list[str],
    attempt: Attempt,
) -> None:
    """Preview the change and ask policy whether a person must agree first.

    Raises `NeedsAnswer` with the question when they must and have not agreed to exactly this, and
    `CallRefused` when the preview failed.
    """
    manifest = executor.manifest
    seen = await cage.run(
        executor,
        context.catalog.sdk,
        document_of(context, state, manifest, args, paths),
        mode="preview",
        timeout_s=manifest.timeout_s,
        limits=manifest.limits,
    )
    if not seen.ok:
        raise CallRefused(
            seen.error.code if seen.error else ErrorCode.INTERNAL,
            seen.error.detail if seen.error else "no preview",
            **(dict(seen.error.params) if seen.error else {}),
        )
    preview = seen.content if isinstance(seen.content, Mapping) else seen.metadata
    attempt.preview = preview
    targets = [str(target) for target in preview.get("targets", paths)]
    sinks = [str(v) for name in manifest.sinks for v in listed(args.get(name))] or targets
    origin = sources.origin_of(sinks, raw, manifest, context, state)
    needed = policy.consent(
        manifest,
        count=int(preview.get("count", len(targets))),
        in_workspace=all(context.scope.holds(target, write=True) for target in targets),
        origin=origin,
        named_each=all(policy.is_spoken_of(target, context.said) for target in targets),
        actor=context.actor,
    )
    attempt.checks["consent"] = needed.value
    if needed is policy.Consent.NOT_NEEDED:
        return
    digest = consent.digest_of(manifest.name, args, preview, manifest)
    if attempt.decision is None or attempt.decision.digest != digest:
        source = consent.source_of(origin, context, state)
        raise NeedsAnswer(
            consent.approval_for(manifest, args, preview, targets, digest=digest, source=source)
        )
    attempt.checks["consent"] = "given"
