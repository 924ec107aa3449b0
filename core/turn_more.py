"""The rest of a list: what the button does under an answer that shows only the first items."""

from __future__ import annotations

from core.messages import Block
from core.turn_actions import Act, Press


async def press_more(press: Press) -> Act:
    """Say the rest, once; the button goes when it was the only one."""
    params = press.action.params
    tells = (Block("text", str(params.get("text") or "")),)
    return Act(tells=tells, row=() if params.get("alone") is True else None)
