"""What people are asked: questions that stand open, and those of the last days. Only what was
asked, never what was answered."""

from __future__ import annotations

from bot.console.pages.turns import short
from bot.console.people import People, place_of
from bot.console.ports import Outcome, Page, Shown, Visit
from core.redaction import redact
from core.store import suspension_pages, turn_pages
from core.store.suspension_pages import QuestionRow
from core.store.turn_pages import TurnRow

MOST_OPEN = 100
PER_PAGE = 50


async def listed(visit: Visit) -> Outcome:
    page = visit.page_number()
    async with visit.house.stores.main.read() as tx:
        people = await People.read(tx)
        waiting = await suspension_pages.unsettled(tx, limit=MOST_OPEN)
        over = await suspension_pages.settled(tx, limit=PER_PAGE + 1, offset=(page - 1) * PER_PAGE)
        of = await turn_pages.rows_of(tx, [one.turn_id for one in (*waiting, *over)])
    secrets = visit.house.settings.secrets
    now = visit.house.clock.now()

    def shown(one: QuestionRow) -> dict[str, object]:
        turn: TurnRow | None = of.get(one.turn_id)
        is_late = one.state.value == "open" and one.expires_at <= now
        return {
            "row": one,
            "name": people.name(one.actor_id),
            "place": place_of(one.conversation),
            "request": "" if turn is None else short(redact(turn.request, secrets)),
            "state": "late" if is_late else one.state.value,
            "left": max(0.0, (one.expires_at - now).total_seconds()),
        }

    return Shown(
        "dialogs.html",
        {
            "waiting": [shown(one) for one in waiting],
            "over": [shown(one) for one in over[:PER_PAGE]],
            "page": page,
            "more": len(over) > PER_PAGE,
        },
    )


PAGES = (Page("/dialogs", listed, nav="console.nav.dialogs"),)
