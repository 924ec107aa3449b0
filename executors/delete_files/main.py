"""Delete files and folders: into the trash of the turn, where they can be taken back."""

from __future__ import annotations

from executors._sdk.discarding import discard, foresee

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry per item: `path`, `bytes` (of all in a folder), `items`, `trash` (where it is)."""
    return discard(call)


def preview(call: Call) -> dict[str, Any]:
    """What would go, without touching it. Raises `Failure` when nothing could be deleted."""
    return foresee(call)
