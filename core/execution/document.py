"""The call as the caged program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from core.catalog.manifest import Manifest
from core.config import PUBLIC_SERVICES
from core.egress.rules import SERVICE
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
    services = _services(context, manifest)
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
        "private_hosts": [*context.private_hosts, *_own_hosts(services)],
        "services": services,
        "user_agent": "Metnos",
    }


def _services(context: TurnContext, manifest: Manifest) -> dict[str, str]:
    """The services that the manifest names; "" for one that is off or unknown."""
    hints = [hint for right in manifest.capabilities for hint in right.hints]
    names = [hint.removeprefix(SERVICE) for hint in hints if hint.startswith(SERVICE)]
    return {name: context.services.get(name, "") for name in names}


def _own_hosts(services: Mapping[str, str]) -> list[str]:
    """`host:port` of the services that the owner runs: these may be inside."""
    found = []
    for url in services.values():
        if url and url not in PUBLIC_SERVICES:
            parts = urlsplit(url)
            host = parts.hostname or ""
            port = parts.port or (443 if parts.scheme == "https" else 80)
            found.append(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    return found
