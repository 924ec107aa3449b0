"""Secret arguments of a call: a handle everywhere, what it stands for only in the call document.

An argument that the manifest marks `x-metnos-type = "secret"` takes the handle of a secret answer
of this very turn. The value goes to the child over its descriptor; what comes back is searched for
it. Everything else, the journal, the log, the state and the model, knows the handle alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode, ErrorInfo
from core.execution.context import TurnContext
from core.observation import Observation
from core.plan import parse_template
from core.redaction import MASK, mask_values
from core.store import credentials
from core.store.stores import Stores

SECRET = "secret"  # noqa: S105 - a type, not one


def names_of(manifest: Manifest) -> frozenset[str]:
    return frozenset(name for name, kind in manifest.types.items() if kind == SECRET)


async def opened(
    stores: Stores, context: TurnContext, manifest: Manifest, args: Mapping[str, Any]
) -> dict[str, str]:
    """Name → value of the secret arguments that are given.

    Raises `CallRefused` for anything but a handle of this person and this turn, and
    `SecretUnreadable`.
    """
    found: dict[str, str] = {}
    for name in sorted(names_of(manifest) & args.keys()):
        handle = args[name]
        value = None
        if credentials.is_handle(handle):
            async with stores.main.read() as tx:
                value = await credentials.reveal(
                    tx,
                    stores.vault,
                    actor_id=context.actor.id,
                    turn_id=context.turn_id,
                    handle=handle,
                )
        if value is None:
            raise CallRefused(
                ErrorCode.INVALID_ARGS,
                f"{name}: a secret is never written out; ask for it with a get_inputs field of "
                "kind secret and refer to that step",
                argument=name,
            )
        found[name] = value
    return found


def with_values(document: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    """The call document with the secrets in it, and what is to be masked in what the child says
    outside its result."""
    if not values:
        return dict(document)
    args = {**document["args"], **values}
    return {**document, "args": args, "masks": list(values.values())}


def storable(args: Mapping[str, Any], manifest: Manifest | None) -> dict[str, Any]:
    """Arguments as they may be kept: a secret that somebody wrote out is masked."""
    if manifest is None:
        return dict(args)
    secret = names_of(manifest)
    return {
        name: MASK if name in secret and not _is_safe(value) else value
        for name, value in args.items()
    }


def masked(observation: Observation, values: Mapping[str, str]) -> Observation:
    """What came back, without the secrets that went in."""
    if not values:
        return observation
    secrets, error = list(values.values()), observation.error
    if error is not None:
        error = ErrorInfo(
            error.code,
            mask_values(dict(error.params), secrets),
            error.retryable,
            mask_values(error.detail, secrets),
        )
    entries = observation.entries
    return Observation(
        ok=observation.ok,
        content=mask_values(observation.content, secrets),
        entries=None if entries is None else tuple(mask_values(list(entries), secrets)),
        metadata=mask_values(dict(observation.metadata), secrets),
        error=error,
        effects=observation.effects,
        provenance=observation.provenance,
    )


def _is_safe(value: Any) -> bool:
    if value is None or credentials.is_handle(value):
        return True
    try:
        template = parse_template(value) if isinstance(value, str) else None
    except CallRefused:
        return False
    return template is not None and template.whole is not None
