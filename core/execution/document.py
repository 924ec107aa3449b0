"""The call as the caged program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.catalog.manifest import Manifest
from core.execution.context import TurnContext
from core.execution.paths import TRASH, folders_of
from core.turn_state import TurnState


def document_of(
    context: TurnContext,
    state: TurnState,
    manifest: Manifest,
    args: Mapping[str, Any],
    paths: list[str],
) -> dict[str, Any]:
    """The call as the child reads it, and what the cage needs to close it in."""
    return {
        "paths": paths,
        "product_home": context.scope.product_home,
        "workspace": context.scope.workspace,
        "v": 1,
        "tool": manifest.name,
        "args": dict(args),
        "lang": context.lang,
        "tz": context.tz,
        "now": context.now.isoformat(),
        "turn_id": context.turn_id,
        "step": len(state.steps) + 1,
        "actor_id": context.actor.id,
        **folders_of(manifest, context.scope),
        "home": context.scope.home,
        "trash_name": TRASH,
        "private_hosts": list(context.private_hosts),
        "user_agent": "Metnos",
    }
