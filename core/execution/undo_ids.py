"""Taking back by id: deleting what a step had made, with the tool that its manifest names, looked
at before it acts; and putting back what a step had changed, with that very tool.

The tool's preview says how each id stands (`before`: `{id, exists, version}`); what has another
version than when it was made has changed since, and stays. To put back, the tool is given the
former text and the version it had left (`put_back` of the call, which no plan can fill), and does
so only to that version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.catalog.loader import LoadedExecutor
from core.errors import CallRefused, ErrorCode, ErrorInfo
from core.execution import accounts, arguments, policy, secret_args
from core.execution.context import TurnContext
from core.execution.document import document_of
from core.execution.runner import Runner
from core.execution.undo_steps import UndoItem
from core.observation import Effects, Observation
from core.store.stores import Stores
from core.turn_state import TurnState


@dataclass(frozen=True, slots=True)
class ById:
    """For one undo, as its step number `step`."""

    cage: Runner
    stores: Stores
    context: TurnContext
    step: int

    async def is_gone(self, item: UndoItem) -> bool:
        """Whether the thing is not there any more. Raises `CallRefused` when it has changed, or
        cannot be looked at."""
        seen = await self._run(item, "preview")
        if not seen.ok:
            raise _refused(seen)
        facts = seen.content if isinstance(seen.content, Mapping) else seen.metadata
        states = facts.get("before")
        wanted = item.made["id"]
        state = next(
            (s for s in states or () if isinstance(s, Mapping) and s.get("id") == wanted), None
        )
        if state is None:
            raise CallRefused(ErrorCode.CHANGED_SINCE, "its state is not told")
        if not state.get("exists"):
            return True
        if item.made.get("version") is not None and state.get("version") != item.made["version"]:
            raise CallRefused(ErrorCode.CHANGED_SINCE, "it has another version now")
        return False

    async def delete(self, item: UndoItem) -> Effects:
        """Delete it; what is known of the effect. Raises `CallRefused` when it did not work."""
        seen = await self._run(item, "run")
        if not seen.ok or any(entry.get("ok") is False for entry in seen.entries or ()):
            raise _refused(seen)
        return seen.effects

    async def put_back(self, item: UndoItem) -> tuple[Effects, bool]:
        """Put the former text back; what is known of the effect, and whether it was so already.
        Raises `CallRefused` when it has changed since, or did not work."""
        former = {"id": item.made["id"], "version": item.made.get("version"),
                  "text": (item.found or {}).get("text")}  # fmt: skip
        seen = await self._run(item, "run", put_back=[former])
        if not seen.ok or any(entry.get("ok") is False for entry in seen.entries or ()):
            raise _refused(seen)
        already = any(entry.get("already") for entry in seen.entries or ())
        return (Effects.NONE if already else seen.effects), already

    async def _run(self, item: UndoItem, mode: Any, **told: Any) -> Observation:
        executor = self._executor(item)
        manifest = executor.manifest
        ids = manifest.vector[0] if manifest.vector else "ids"
        args: dict[str, Any] = {ids: [item.made["id"]]}
        if "versions" in manifest.properties and item.made.get("version") is not None:
            args["versions"] = [item.made["version"]]
        if accounts.ARGUMENT in manifest.properties and item.made.get("account"):
            args[accounts.ARGUMENT] = item.made["account"]
        args = arguments.validate(args, manifest)
        verdict = policy.guard(manifest, args, self.context.actor, forbidden=(), system=())
        if not verdict.approved:
            raise policy.refuse(verdict)
        state = TurnState(self.context.turn_id, self.context.request)
        mine = await accounts.opened(self.stores, self.context, manifest, args)
        document = document_of(self.context, state, manifest, args, [])
        seen = await self.cage.run(
            executor,
            self.context.catalog.sdk,
            mine.into({**document, "step": self.step, **told}),
            mode=mode,
            timeout_s=manifest.timeout_s,
            limits=manifest.limits,
        )
        return secret_args.masked(seen, mine.secrets)

    def _executor(self, item: UndoItem) -> LoadedExecutor:
        # Also one that is no longer offered for planning.
        executor = self.context.catalog.executors.get(item.tool)
        if executor is None or not executor.manifest.is_mutating:
            raise CallRefused(ErrorCode.EXECUTOR_CHANGED, f"{item.tool} is not there any more")
        return executor


def _refused(seen: Observation) -> CallRefused:
    failed = next((e["error"] for e in seen.entries or () if e.get("ok") is False), None)
    error = ErrorInfo.from_json(failed) if isinstance(failed, Mapping) else seen.error
    error = error or ErrorInfo(ErrorCode.INTERNAL)
    return CallRefused(error.code, error.detail, **dict(error.params))
