"""The stand-in engine's questions: kept in the store, answered once, over restarts too."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from core.clock import Clock
from core.messages import (
    Block,
    Button,
    FinalKind,
    Inbound,
    InboundKind,
    QuestionSettled,
    Reply,
    TurnClosed,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from core.store import kv, outbox, questions
from core.store.database import Database

WORDS = {
    "it": {
        "approve": "✋ Elimino 34 file da Download?",
        "text": "Come lo chiamo?",
        "secret": "Qual è la parola segreta?",
        "place": "Per trovarla mi serve dove sei.",
        "yes": "✅ Sì, questa volta",
        "no": "✋ No",
        "share": "📍 Invia la mia posizione",
        "type": "✏️ Scrivo un indirizzo",
        "cancel": "✖️ Lascia stare",
        "settled": "✅ Deciso: {said}",
        "expired": "⌛ Scaduta senza risposta.",
        "over": "Questo bottone non vale più.",
        "foreign": "Questo lo può decidere solo chi l'ha chiesto.",
    },
    "en": {
        "approve": "✋ Delete 34 files from Downloads?",
        "text": "What shall I call it?",
        "secret": "What is the secret word?",
        "place": "To find it I need to know where you are.",
        "yes": "✅ Yes, this time",
        "no": "✋ No",
        "share": "📍 Send my location",
        "type": "✏️ Type an address",
        "cancel": "✖️ Leave it",
        "settled": "✅ Decided: {said}",
        "expired": "⌛ Nobody answered in time.",
        "over": "This button is no longer valid.",
        "foreign": "Only who asked for it may decide this.",
    },
}


@dataclass(frozen=True)
class Open:
    key: str
    turn_id: str
    kind: str
    sender: str


class FakeDialogs:
    def __init__(self, store: Database, clock: Clock) -> None:
        self.store, self.clock = store, clock

    async def hear(self, inbound: Inbound) -> list[TurnEvent] | None:
        """The events of a question or of an answer; None: this is neither."""
        words = WORDS[inbound.lang or "it"]
        standing = await self._get(f"fake:open:{inbound.address.key}")
        question = Open(**standing) if standing else None
        if inbound.kind is InboundKind.CHOICE:
            token = await self._get(f"fake:token:{inbound.data['token']}")
            if not token:
                return self._refused(inbound, words["over"])
            if token["sender"] != inbound.sender_id:
                return self._refused(inbound, words["foreign"])
            if question is None or question.key != token["key"]:
                return self._refused(inbound, words["over"])
            return await self._answered(inbound, question, token["choice"])
        if inbound.kind is InboundKind.LOCATION:
            data = inbound.data
            said = f"{data['lat']} {data['lon']} ±{data['accuracy']} live={data['live']}"
            if question is None:
                return await self._closed(inbound, uuid.uuid4().hex, f"dove: {said}")
            return await self._answered(inbound, question, said)
        word, _, rest = inbound.text.partition(" ")
        if word == "ask":
            return await self._ask(inbound, rest, words)
        if word == "expire" and question is not None:
            async with self.store.write() as tx:
                await questions.settle(tx, question.key, words["expired"], "it", self.clock.now())
                await kv.delete(tx, f"fake:open:{inbound.address.key}")
            return await self._closed(inbound, uuid.uuid4().hex, "fatto")
        if word != "echo" and question is not None and question.kind in {"text", "secret"}:
            said = "***" if question.kind == "secret" else inbound.text
            return await self._answered(inbound, question, f"{said} {inbound.data}")
        return None

    async def _ask(self, inbound: Inbound, kind: str, words: dict[str, str]) -> list[TurnEvent]:
        turn_id = uuid.uuid5(uuid.NAMESPACE_URL, inbound.id).hex
        key, lang, now = f"{turn_id}:ask", inbound.lang or "it", self.clock.now()
        tokens = {choice: uuid.uuid4().hex for choice in ("yes", "no", "type", "cancel")}

        def button(choice: str) -> Button:
            return Button(words[choice], tokens[choice])

        text = words["approve"] if kind in {"approve", "long"} else words[kind]
        if kind == "long":
            text = "\n".join(f"file {n} {'x' * 60}" for n in range(100)) + "\n\n" + text
        reply = Reply((Block("text", text),), lang, turn_id, FinalKind.AWAITING)
        match kind:
            case "approve" | "long":
                rows: tuple[tuple[Button, ...], ...] = ((button("yes"), button("no")),)
                reply = Reply(
                    reply.blocks, lang, turn_id, reply.final_kind, buttons=rows, expects="tap"
                )
            case "place":
                rows = ((Button(words["share"], kind="location"),),)
                rows += ((button("type"),), (button("cancel"),))
                reply = Reply(
                    reply.blocks, lang, turn_id, reply.final_kind, False, rows, "location"
                )
            case _:
                secret = kind == "secret"
                reply = Reply(
                    reply.blocks, lang, turn_id, reply.final_kind, expects="text", secret=secret
                )
        question = {"key": key, "turn_id": turn_id, "kind": kind, "sender": inbound.sender_id}
        async with self.store.write() as tx:
            for choice, token in tokens.items():
                body = json.dumps({**question, "choice": words[choice]})
                await kv.put(tx, f"fake:token:{token}", body)
            await kv.put(tx, f"fake:open:{inbound.address.key}", json.dumps(question))
            asked = {**reply.to_json(), "answers": inbound.message_ref}
            await outbox.enqueue(tx, key, inbound.address, asked, now)
        return [TurnStarted(turn_id, lang), TurnSuspended(turn_id, reply, key)]

    async def _answered(self, inbound: Inbound, question: Open, said: str) -> list[TurnEvent]:
        words = WORDS[inbound.lang or "it"]
        async with self.store.write() as tx:
            await kv.delete(tx, f"fake:open:{inbound.address.key}")
            text = words["settled"].format(said=said.split(" {")[0])
            if question.kind != "long":  # that one is left to the channel
                await questions.settle(tx, question.key, text, "it", self.clock.now())
        settled = QuestionSettled(question.turn_id, text, question.key)
        return [settled, *await self._closed(inbound, question.turn_id, f"hai detto {said}")]

    async def _closed(self, inbound: Inbound, turn_id: str, text: str) -> list[TurnEvent]:
        lang, key = inbound.lang or "it", f"{turn_id}:final"
        reply = Reply((Block("text", text),), lang, turn_id)
        async with self.store.write() as tx:
            await outbox.enqueue(tx, key, inbound.address, reply.to_json(), self.clock.now())
        return [
            TurnStarted(turn_id, lang),
            TurnClosed(turn_id, FinalKind.ANSWER, reply, None, key),
        ]

    def _refused(self, inbound: Inbound, text: str) -> list[TurnEvent]:
        reply = Reply((Block("text", text),), inbound.lang or "it")
        return [TurnClosed("", FinalKind.ERROR, reply)]

    async def _get(self, key: str) -> dict[str, Any]:
        async with self.store.read() as tx:
            found = await kv.get(tx, key)
        return json.loads(found) if found else {}
