"""Guard and judge over one call, and the policy log, which holds argument names only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.catalog.manifest import Manifest
from core.clock import Clock
from core.errors import CallRefused, ErrorCode
from core.execution import policy
from core.execution.attempt import Attempt
from core.execution.context import TurnContext
from core.execution.paths import is_refused, is_system_tree
from core.store.turn_log import PolicyLog


@dataclass(frozen=True, slots=True)
class Vaglio:
    """`threshold`: the least score of the judge, in [0, 1]. Keeps nothing of any call."""

    clock: Clock
    policy_log: PolicyLog
    threshold: float

    def weigh(
        self,
        context: TurnContext,
        manifest: Manifest,
        args: Mapping[str, Any],
        paths: list[str],
        attempt: Attempt,
    ) -> None:
        """Guard, then judge. Raises `CallRefused` for a no; every verdict is logged."""
        verdict = policy.guard(
            manifest,
            args,
            context.actor,
            forbidden=[
                p for p in paths if is_refused(p, context.scope, mutating=manifest.is_mutating)
            ],
            system=[p for p in paths if is_system_tree(p)],
        )
        attempt.checks["guard"] = "ok" if verdict.approved else "denied"
        if verdict.approved:
            verdict = policy.judge(
                manifest,
                args,
                context.said,
                threshold=self.threshold,
                pointed_at=context.pointed_at,
            )
            attempt.checks["judge"] = "ok" if verdict.approved else "denied"
        self.note(context, manifest, args, verdict)
        if not verdict.approved:
            raise policy.refuse(verdict)

    def note_refused(
        self,
        context: TurnContext,
        manifest: Manifest,
        args: Mapping[str, Any],
        exc: CallRefused,
        attempt: Attempt,
    ) -> None:
        """A path that is forbidden as spelt, or outside the scope, is a verdict like any other."""
        if exc.code is ErrorCode.FORBIDDEN_PATH:
            attempt.checks["guard"] = "denied"
        elif exc.code in {ErrorCode.OUT_OF_SCOPE, ErrorCode.OUT_OF_WORKSPACE}:
            attempt.checks["scope"] = "denied"
        else:
            return
        blocked_by: policy.BlockedBy | None = "guard" if "guard" in attempt.checks else None
        verdict = policy.Verdict(False, exc.code.value, blocked_by=blocked_by)
        self.note(context, manifest, args, verdict)

    def note(
        self,
        context: TurnContext,
        manifest: Manifest,
        args: Mapping[str, Any],
        verdict: policy.Verdict,
    ) -> None:
        self.policy_log.append(
            policy.log_line(
                verdict,
                tool=manifest.name,
                args=args,
                turn_id=context.turn_id,
                now=self.clock.now(),
            )
        )
