"""Events as they were before a change or a deletion: kept by the preview, put back by an undo."""

from __future__ import annotations

import re

from executors._sdk import ics
from executors._sdk.agenda import EventId, agenda_of
from executors._sdk.result import Failure, failed_item, from_exception, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.agenda import Agenda, FileAgenda, Kept
    from executors._sdk.call import Call

MOST_KEPT = 200_000
"""Of the texts of one call, in characters."""
# Others were told of the change: it cannot be taken back from here alone.
_INVITED = re.compile(r"(?im)^(?:ATTENDEE|ORGANIZER)[;:]")


class Before:
    """The states of a preview. `undo`: how it is taken back; empty when it cannot be."""

    def __init__(self) -> None:
        self.states: list[dict[str, Any]] = []
        self._room = MOST_KEPT
        self._whole = True

    @property
    def undo(self) -> list[dict[str, str]]:
        return [{"do": "put_back_by_id"}] if self._whole and self.states else []

    def note(self, agenda: Agenda | FileAgenda, one: EventId, kept: Kept | None) -> None:
        """How an event stands; `kept`: None when it is not there."""
        state: dict[str, Any] = {"id": str(one), "exists": kept is not None}
        if kept is not None:
            state["version"] = kept.version
            text = agenda.text_of(kept)
            if _INVITED.search(text) or len(text) > self._room:
                self._whole = False
            else:
                self._room -= len(text)
                state["text"] = text
        self.states.append(state)


def put_back(call: Call) -> list[dict[str, Any]]:
    """An entry for each event of `call.put_back`: it is as it was again, if it still is as the
    change left it; `already` when there was nothing to do."""
    return [_put_back(call, one) for one in call.put_back]


def _put_back(call: Call, former: dict[str, Any]) -> dict[str, Any]:
    one = EventId.read(former.get("id"))
    text = str(former["text"])
    try:
        with agenda_of(call, one.account) as agenda:
            kept = agenda.get(one.place)
            if kept is None and former.get("version") is None:
                return item(id=str(one), version=agenda.restore(one.place, text))
            if kept is None:
                raise Failure("changed_since", "the event is not there any more")
            if _events(agenda.text_of(kept)) == _events(text):
                return item(id=str(one), version=kept.version, already=True)
            if kept.version != former.get("version"):
                raise Failure("changed_since", "it has changed meanwhile")
            return item(id=str(one), version=agenda.change(kept, text))
    except (Failure, OSError) as exc:
        failed = from_exception(exc)
        if failed is None:
            raise
        return failed_item(failed.code, failed.detail, id=str(one))


def _events(text: str) -> list[str]:
    return ics.blocks_of(text.replace("\r\n", "\n"))
