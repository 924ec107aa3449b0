"""Delete folders with all that is in them: into the trash of the turn, from where they can be
taken back. What is no folder is refused."""

from __future__ import annotations

from executors._sdk.discarding import discard, foresee

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry per folder: `path`, `bytes` and `items` of all that is in it, `trash`."""
    return discard(call, folders_only=True)


def preview(call: Call) -> dict[str, Any]:
    """What would go, without touching it. Raises `Failure` when nothing could be deleted."""
    return foresee(call, folders_only=True)
