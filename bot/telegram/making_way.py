"""A tap that begins the running turn anew: it cannot wait in the queue behind that very turn."""

from __future__ import annotations

import logging

from bot.telegram.inbound import Tap, read
from bot.telegram.ports import Turns
from core.errors import MetnosError
from core.store.inbox import StoredInbox

log = logging.getLogger(__name__)


async def make_way(turns: Turns, row: StoredInbox) -> None:
    """End the turn that stands in the way of a tap, if the tap is for that; it is worked in the
    queue like any other. What goes wrong is logged: the tap then waits."""
    try:
        heard = read(row.body["update"], bot_id=row.bot_id)
        if isinstance(heard, Tap) and heard.inbound is not None:
            await turns.make_way(heard.inbound)
    except (KeyError, ValueError, MetnosError):
        log.exception("no way made", extra={"inbox_id": row.id})
