"""Contacts by name, mail, number, or whatever stands in them, however they are written."""

from __future__ import annotations

from executors._sdk import cards
from executors._sdk.book import Contacts, entry_of
from executors._sdk.result import Failure, done

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MOST = 20


def run(call: Call) -> dict[str, Any]:
    """One entry a contact, those that fit best and no others, all of them when several fit as
    well; without a query everybody. See `executors._sdk.book.entry_of`."""
    query = " ".join(str(call.args.get("query") or "").split())
    if query and not cards.words_of(query):
        raise Failure("missing_input", "query: who is looked for")
    most = int(call.args.get("max_results") or MOST)
    contacts = Contacts(call)
    found: dict[int, list[dict[str, Any]]] = {}
    for key, account, block in contacts.blocks():
        if query and not cards.may_hold(block, query):
            continue
        card = cards.read_card(block)
        rank = cards.rank_of(card, query) if card is not None and query else 0
        if card is not None and rank is not None:
            found.setdefault(rank, []).append(entry_of(key, account, card))
    best = _single(found[min(found)]) if found else []
    best.sort(key=lambda entry: (entry["name"].casefold(), entry["label"]))
    facts: dict[str, Any] = {"truncated": contacts.truncated or len(best) > most}
    if contacts.unreached:
        facts["unreached"] = ", ".join(contacts.unreached)
    if query:
        facts["query"] = query
    return done(best[:most], available=len(best), **facts)


def _single(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same contact in two books is one."""
    seen: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        same = tuple(entry.get(key) for key in ("name", "email", "phone", "org"))
        seen.setdefault(same, entry)
    return list(seen.values())
