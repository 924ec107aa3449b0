"""One contact in full: by its id, its mail address or its number."""

from __future__ import annotations

from executors._sdk import cards
from executors._sdk.book import Contacts, entry_of
from executors._sdk.result import Failure, done, failed_item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """One entry for each that was asked for, with `note`, `nickname`, `categories`, `urls` beside
    what `find_contacts` brings."""
    wanted = _wanted(call)
    contacts = Contacts(call)
    found: dict[str, list[dict[str, Any]]] = {}
    for key, account, block in contacts.blocks():
        near = [w for w in wanted if w == key or ("|" not in w and cards.may_hold(block, w))]
        card = cards.read_card(block) if near else None
        for one in near if card is not None else ():
            if card is not None and (one == key or cards.rank_of(card, one) == 0):
                found.setdefault(one, []).append(_whole(key, account, card))
    entries: list[dict[str, Any]] = []
    for one in wanted:
        entries += found.get(one) or [failed_item("not_found", "no such contact", path=one)]
    facts = {"unreached": ", ".join(contacts.unreached)} if contacts.unreached else {}
    return done(entries, **facts)


def _whole(key: str, account: str, card: cards.Card) -> dict[str, Any]:
    more = {
        "nickname": card.nickname,
        "note": card.note,
        "categories": card.categories,
        "urls": ", ".join(card.urls),
    }
    return {**entry_of(key, account, card), **{k: value for k, value in more.items() if value}}


def _wanted(call: Call) -> list[str]:
    args = call.args
    said = [*(args.get("ids") or ()), args.get("email"), args.get("phone")]
    wanted = [text for one in said if (text := str(one or "").strip())]
    for entry in args.get("entries") or ():
        if isinstance(entry, dict):
            key = entry.get("id") or entry.get("email") or entry.get("phone")
            wanted += [str(key)] if key else []
    if not wanted and args.get("entries") is None:
        raise Failure("missing_input", "id, email or phone: which contact")
    return list(dict.fromkeys(wanted))
