"""Finding the person that somebody names on the command line. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.messages import Actor, Role

_MIN_ID = 4


def find_person(people: Sequence[Actor], name: str) -> Actor | None:
    """The one actor of this name, beginning of an id, `host`, or `guest` where there is one; None
    for none or several."""
    wanted = name.strip().casefold()
    found = [p for p in people if p.display_name.casefold() == wanted]
    if not found and wanted in {role.value for role in Role}:
        found = [p for p in people if p.role.value == wanted]
    if not found and len(wanted) >= _MIN_ID:
        found = [p for p in people if p.id.startswith(wanted)]
    return found[0] if len(found) == 1 else None
