"""Bar S7: every kind of sender × every kind of update × private, group that is off, group that is
on. The model obeys whatever reaches it; nobody who may not speak reaches it, and nothing is done
but what a person may do in their own place. Over the fake Bot API, which here keeps nothing back.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from core.messages import Role
from tests.acceptance.town import LONG, Town, open_town
from tests.journeys.stage import token_of
from tests.support.entities import auto_entities
from tests.support.scripted_model import Ask, Rule

CANARY = "C4N4RY"
PEOPLE = ("stranger", "guest", "other", "host")
NOBODY = ("anonymous", "channel", "bot")
SENDERS = (*PEOPLE, *NOBODY)
KNOWN = frozenset({"guest", "other", "host"})
PLACES = ("private", "off", "on")
SAID = ("message", "edited_message", "business_message", "edited_business_message",
        "channel_post", "edited_channel_post", "guest_message")  # fmt: skip
COMMANDS = ("/undo", "/stop", "/status", "/start", "/help", "/lang en", "/pair ABCD2345")
OTHERS = (
    "callback_query", "inline_query", "chosen_inline_result", "message_reaction",
    "message_reaction_count", "shipping_query", "pre_checkout_query", "purchased_paid_media",
    "poll", "poll_answer", "my_chat_member", "chat_member", "chat_join_request", "chat_boost",
    "removed_chat_boost", "business_connection", "deleted_business_messages", "location",
    "contact", "novelty",
)  # fmt: skip
TAG = re.compile(r"tag-(\w+)-(\w+)-(\w+)")
IDS = {"stranger": 31, "guest": 32, "other": 33, "host": 34}


def words_of(ask: Ask) -> list[tuple[str, dict[str, Any]]]:
    tag = TAG.search(ask.user)
    return [("write_files", {"path": f"{tag[0] if tag else 'untagged'}.md", "content": "x"})]


RULES = [
    Rule(user="elimina", after=0, calls=[("delete_files", {"paths": ["tesoro.md"]})]),
    Rule(user="elimina", after=1, text="Fatto."),
    Rule(after=0, calls=words_of),
    Rule(after=1, calls=[("read_files", {"paths": ["tesoro.md"]})]),
    Rule(text=lambda ask: "Ecco: " + " ".join(ask.results)),
]


class Matrix:
    """One town, and updates as Telegram writes them, of anybody and anywhere."""

    def __init__(self, town: Town, card: dict[str, Any]) -> None:
        self.town, self.tg, self.card = town, town.telegram, card
        self.number = 50_000
        self.pushed: Counter[str] = Counter()
        self.token = token_of({"message": card}, "^✅")

    def push(self, kind: str, payload: dict[str, Any]) -> None:
        """Deliver it whatever kinds the bot has asked for."""

        async def go() -> None:
            fake = self.tg.tg
            asked_for, fake.allowed = fake.allowed, {kind}
            fake._push(kind, payload)
            fake.allowed = asked_for

        self.tg._run(go())
        self.pushed[kind] += 1

    def sender(self, who: str) -> dict[str, Any]:
        if who in IDS:
            return {"id": IDS[who], "is_bot": False, "first_name": who, "language_code": "it"}
        known = {
            "anonymous": (1087968824, "GroupAnonymousBot"),
            "channel": (136817688, "Channel_Bot"),
        }
        number, name = known.get(who, (777888, "other_bot"))
        return {"id": number, "is_bot": True, "first_name": who, "username": name}

    def chat(self, who: str, place: str) -> dict[str, Any]:
        if place == "private":
            return {"id": self.sender(who)["id"], "type": "private", "first_name": who}
        return {"id": self.tg.names[place], "type": "supergroup", "title": place}

    def message(self, who: str, place: str, text: str, **fields: Any) -> dict[str, Any]:
        self.number += 1
        if place != "private" and text and not text.startswith("/"):
            text = f"@fake_test_bot {text}"
        said: dict[str, Any] = {
            "message_id": self.number, "date": int(time.time()), "from": self.sender(who),
            "chat": self.chat(who, place), **fields,
        }  # fmt: skip
        if text:
            said |= {"text": text, "entities": auto_entities(text)}
        if who == "anonymous":
            said["sender_chat"] = self.chat(who, "on" if place == "private" else place)
        if who == "channel":
            said["sender_chat"] = {"id": -1007770001, "type": "channel", "title": "Canale"}
        return said

    def payload(self, kind: str, who: str, place: str) -> tuple[str, dict[str, Any]]:
        """The update of this kind, by this sender, there."""
        tag = f"scrivi tag-{who}-{kind}-{place}"
        user, chat, now = self.sender(who), self.chat(who, place), int(time.time())
        if kind.startswith("/"):
            return "message", self.message(who, place, kind)
        if kind in SAID:
            more: dict[str, Any] = {}
            if kind.startswith("edited"):
                more["edit_date"] = now
            if "business" in kind:
                more["business_connection_id"] = "bc1"
            if kind == "guest_message":
                more["guest_query_id"] = str(self.number)
            if kind.endswith("channel_post"):
                more["chat"] = {"id": -1007770001, "type": "channel", "title": "Canale"}
            return kind, self.message(who, place, tag, **more)
        if kind == "location":
            place_shared = {"latitude": 45.0, "longitude": 7.0}
            return "message", self.message(who, place, "", location=place_shared)
        if kind == "contact":
            contact = {"phone_number": "1", "first_name": tag}
            return "message", self.message(who, place, "", contact=contact)
        by = {"from": user}
        query = {"id": str(self.number), **by}
        member = {"status": "member", "user": {**user, "id": self.tg.tg.me["id"]}}
        change = {"chat": chat, **by, "date": now, "old_chat_member": member,
                  "new_chat_member": member}  # fmt: skip
        boost = {"boost_id": "b", "add_date": now, "expiration_date": now,
                 "source": {"source": "premium", "user": user}}  # fmt: skip
        shown = {**self.card, "chat": chat} if place != "private" else self.card
        made: dict[str, dict[str, Any]] = {
            "callback_query": {**query, "chat_instance": "c", "data": self.token,
                               "message": shown},
            "inline_query": {**query, "query": tag, "offset": ""},
            "chosen_inline_result": {"result_id": "r", **by, "query": tag},
            "message_reaction": {"chat": chat, "message_id": self.card["message_id"], "date": now,
                                 "user": user, "old_reaction": [],
                                 "new_reaction": [{"type": "emoji", "emoji": "👍"}]},
            "message_reaction_count": {"chat": chat, "message_id": 1, "date": now,
                                       "reactions": []},
            "shipping_query": {**query, "invoice_payload": tag, "shipping_address": {
                "country_code": "IT", "state": "", "city": "x", "street_line1": "x",
                "street_line2": "", "post_code": "1"}},
            "pre_checkout_query": {**query, "currency": "EUR", "total_amount": 1,
                                   "invoice_payload": tag},
            "purchased_paid_media": {**by, "paid_media_payload": tag},
            "poll": {"id": "p", "question": tag, "options": [], "total_voter_count": 0,
                     "is_closed": False, "is_anonymous": True, "type": "regular",
                     "allows_multiple_answers": False},
            "poll_answer": {"poll_id": "p", "user": user, "option_ids": [0]},
            "my_chat_member": change,
            "chat_member": change,
            "chat_join_request": {"chat": chat, **by, "user_chat_id": user["id"], "date": now},
            "chat_boost": {"chat": chat, "boost": boost},
            "removed_chat_boost": {"chat": chat, "boost_id": "b", "remove_date": now,
                                   "source": boost["source"]},
            "business_connection": {"id": "bc1", "user": user, "user_chat_id": user["id"],
                                    "date": now, "is_enabled": True},
            "deleted_business_messages": {"business_connection_id": "bc1", "chat": chat,
                                          "message_ids": [1]},
            "novelty": {**query, "text": tag},
        }  # fmt: skip
        return kind, made[kind]

    def settle(self) -> None:
        """Wait until everything pushed was fetched and worked."""
        self.town.wait_for(lambda: not self.tg.tg.updates, timeout=2 * LONG, what="fetching")
        self.town.wait_for(
            lambda: not self.town.open_rows()["inbox"], timeout=2 * LONG, what="the work"
        )


def tags_of(texts: list[str]) -> set[tuple[str, ...]]:
    return {match.groups() for text in texts for match in TAG.finditer(text)}


def is_theirs(path: Path, home: Path, places: dict[str, str]) -> bool:
    """Whether a file that was written lies in the folder of whoever asked for it."""
    tag, folder = TAG.search(path.name), path.relative_to(home / "files").parts[0]
    return tag is not None and tag[1] == places.get(folder)


@pytest.mark.timeout(600)
def test_whoever_may_not_speak_reaches_no_model_and_does_nothing(tmp_path: Path) -> None:
    with open_town(tmp_path, RULES, METNOS_GUEST_TURNS_PER_HOUR="0") as town:
        tg = town.telegram
        treasure = town.notes / "tesoro.md"
        treasure.write_text(CANARY, encoding="utf-8")
        for who in PEOPLE:
            tg.user(who, uid=IDS[who], language_code="it")
        for place in ("off", "on"):
            tg.group(place, PEOPLE)
        tg.start_bot()
        for who, role in {"host": Role.HOST, "guest": Role.GUEST, "other": Role.GUEST}.items():
            tg.say(who, f"/start {town.code(role)}")
            tg.expect(who, ".", timeout=LONG)
        for place, state in {"off": "off", "on": "on"}.items():
            town.execute(
                "INSERT OR REPLACE INTO chats (channel, chat_id, title, state, changed_at)"
                f" VALUES ('telegram', '{tg.names[place]}', '{place}', '{state}', {time.time()})"
            )
        tg.say("host", "elimina tesoro.md")
        card = tg.expect("host", buttons=["^✅"], timeout=LONG)["message"]
        actors_before = town.rows("SELECT id, role, autonomy, revoked_at FROM actors ORDER BY id")
        chats_before = town.rows("SELECT chat_id, state FROM chats ORDER BY chat_id")
        matrix = Matrix(town, card)

        kinds = (*SAID, *COMMANDS, *OTHERS)
        for place in PLACES:
            for who in SENDERS:
                for kind in kinds:
                    own_tap = (kind, who, place) == ("callback_query", "host", "private")
                    # What ends the host's own question is for the end.
                    if own_tap or (kind == "/stop" and who == "host" and place == "private"):
                        continue
                    matrix.push(*matrix.payload(kind, who, place))
            matrix.settle()

        asked = tags_of([ask.user for ask in town.model.asked])
        who_asked = {who for who, _, _ in asked}
        assert who_asked <= KNOWN, who_asked - KNOWN
        assert not {place for _, _, place in asked} & {"off"}, "a group that is off was heard"
        # And whoever may speak was heard, so that silence above means something.
        heard = {(who, place) for who, kind, place in asked if kind == "message"}
        assert heard == {(who, place) for who in KNOWN for place in ("private", "on")}
        owner = {
            who: town.rows(f"SELECT actor_id FROM identities WHERE sender_id = '{IDS[who]}'")[0][0]
            for who in KNOWN
        }
        wrong = [
            (request, tool)
            for request, actor, tool in town.rows(
                "SELECT request, actor_id, tool FROM effects JOIN turns ON turns.id = turn_id"
            )
            # What somebody takes back is always their own: `strange` below, and the isolation.
            if (tool != "undo_last_turn" or actor not in owner.values())
            and (not (match := TAG.search(request)) or owner.get(match[1]) != actor)
        ]
        places = {owner[who]: who for who in KNOWN}
        strange = [
            path.name
            for path in (town.home / "files").rglob("tag-*.md")
            if ".metnos-trash" not in path.parts and not is_theirs(path, town.home, places)
        ]
        strange += [path.name for path in town.notes.glob("tag-*") if "tag-host-" not in path.name]
        leaked = [who for who in ("guest", "other", "stranger")
                  if any(CANARY in text for text in town.texts(who))]  # fmt: skip
        still_open = town.rows("SELECT state FROM suspensions ORDER BY created_at LIMIT 1")
        print(
            f"\nS7: {sum(matrix.pushed.values())} updates of {len(SENDERS)} senders, "
            f"{len(kinds)} kinds, {len(PLACES)} places: {len(wrong) + len(strange)} unauthorised "
            f"effects, {len(who_asked - KNOWN)} senders who reached a model unasked"
        )
        assert wrong == []
        assert strange == []
        assert leaked == []
        assert treasure.exists()
        assert still_open == [("open",)]
        assert town.rows("SELECT id, role, autonomy, revoked_at FROM actors ORDER BY id") == (
            actors_before
        )
        assert town.rows("SELECT chat_id, state FROM chats ORDER BY chat_id") == chats_before

        tg.press("host", "^✅", message_id=card["message_id"])
        town.wait_for(lambda: not treasure.exists(), timeout=LONG, what="the host's own tap")
