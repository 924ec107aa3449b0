"""What was asked and how it went: all turns, and one of them step by step.

The host sees everybody's, as `metnos turns` shows them; what looks like a secret is masked.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from bot.console.people import People, place_of
from bot.console.ports import Missing, Outcome, Page, Shown, Visit
from bot.console.story import story_of
from core.execution.undo_steps import UNDO_LAST_TURN
from core.messages import FinalKind
from core.redaction import hide_handles, redact
from core.store import effects, feedback, suspensions, turn_pages, turns
from core.store.turn_log import TurnLog
from core.store.turns import StoredTurn

PER_PAGE = 50
SOURCES = ("engine", "fastpath", "autopath", "dialog", "undo")
KINDS = (*(kind.value for kind in FinalKind), turn_pages.OPEN)
# A turn waits an hour at most for each of its questions; of more days no log is looked at.
_MOST_DAYS = 4


async def listed(visit: Visit) -> Outcome:
    """Turns by day, person, end and source."""
    query = visit.query
    day = _day(query.get("day", ""))
    kind = query.get("kind") if query.get("kind") in KINDS else None
    source = query.get("source") if query.get("source") in SOURCES else None
    page = visit.page_number()
    since = until = None
    if day is not None:
        zone = ZoneInfo(visit.tz)
        since = dt.datetime.combine(day, dt.time(), zone)
        until = dt.datetime.combine(day + dt.timedelta(days=1), dt.time(), zone)
    async with visit.house.stores.main.read() as tx:
        people = await People.read(tx)
        known = dict(people.choices())
        actor = query.get("actor") if query.get("actor") in known else None
        found = await turn_pages.page(
            tx,
            limit=PER_PAGE + 1,
            offset=(page - 1) * PER_PAGE,
            since=since,
            until=until,
            actor_id=actor,
            kind=kind,
            source=source,
        )
    secrets = visit.house.settings.secrets
    chosen = {
        "day": day.isoformat() if day else "",
        "actor": actor or "",
        "kind": kind or "",
        "source": source or "",
    }
    asked = urlencode({name: value for name, value in chosen.items() if value})
    return Shown(
        "turns.html",
        {
            "turns": [
                {
                    "row": row,
                    "name": people.name(row.actor_id),
                    "place": place_of(row.conversation),
                    "request": short(redact(row.request, secrets)),
                    "kind": row.kind.value if row.kind else _open_kind(row.state),
                }
                for row in found[:PER_PAGE]
            ],
            "page": page,
            "more": len(found) > PER_PAGE,
            "base": f"/turns?{asked}" if asked else "/turns",
            "chosen": chosen,
            "people": people.choices(),
            "kinds": KINDS,
            "sources": SOURCES,
        },
    )


async def one(visit: Visit) -> Outcome:
    """One turn by its id or the beginning of it."""
    stores = visit.house.stores
    async with stores.main.read() as tx:
        turn = await turns.get(tx, visit.params["id"])
        if turn is None:
            return Missing()
        (row,) = (await turn_pages.rows_of(tx, [turn.id])).values()
        people = await People.read(tx)
        journal = await effects.of_turn(tx, turn.id)
        questions = await suspensions.of_turn(tx, turn.id)
        undone_at = await effects.undone_at(tx, turn.id)
        vote = await feedback.find(tx, turn.id, turn.actor_id)
    secrets = visit.house.settings.secrets
    log = TurnLog(visit.house.settings.metnos_home / "turns")
    lines = await asyncio.to_thread(_lines_of, log, turn)
    story = story_of(
        lines,
        journal,
        questions,
        catalog=visit.house.loader.current(),
        lang=visit.lang,
        secrets=secrets,
    )
    return Shown(
        "turn.html",
        {
            "turn": turn,
            "row": row,
            "kind": row.kind.value if row.kind else _open_kind(row.state),
            "name": people.name(turn.actor_id),
            "place": place_of(turn.conversation),
            "request": hide_handles(redact(turn.request, secrets)),
            "answer": hide_handles(redact(turn.answer or "", secrets)),
            "story": story,
            "why": visit.words.fault,
            "undone_at": undone_at,
            "undoes": next((e for e in journal if e.tool == UNDO_LAST_TURN), None),
            "vote": None if vote is None else vote.value,
        },
    )


def short(text: str, most: int = 120) -> str:
    """A text on one line, cut at the end."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def _lines_of(log: TurnLog, turn: StoredTurn) -> list[dict[str, object]]:
    """The lines of a turn's segments in order: of the log, and the one that is not in it yet."""
    found: dict[int, dict[str, object]] = {}
    if turn.log_line:
        found[_segment(turn.log_line)] = dict(turn.log_line)
    if turn.log_day is None:
        return list(found.values())
    begun = turn.started_at
    ended = turn.ended_at or begun + dt.timedelta(days=1)
    # By the person's clock a turn may have begun on the day before the one here.
    first = begun.date() - dt.timedelta(days=1) if turn.segment > 1 else turn.log_day
    for back in range(min((turn.log_day - first).days, _MOST_DAYS) + 1):
        if len(found) >= turn.segment:
            break
        day = turn.log_day - dt.timedelta(days=back)
        for line in log.lines_of(turn.id, day, since=begun, until=ended):
            found.setdefault(_segment(line), line)
    return [found[number] for number in sorted(found)]


def _segment(line: object) -> int:
    number = line.get("segment") if isinstance(line, dict) else None
    return number if isinstance(number, int) else 1


def _open_kind(state: str) -> str:
    return "waiting" if state == "suspended" else "running"


def _day(text: str) -> dt.date | None:
    try:
        day = dt.date.fromisoformat(text)
    except ValueError:
        return None
    return day if 1990 <= day.year <= 2200 else None


PAGES = (
    Page("/turns", listed, nav="console.nav.turns"),
    Page("/turns/{id}", one),
)
