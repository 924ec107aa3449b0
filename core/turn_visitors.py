"""Somebody asks to be let in: the card in the host's own chat, and what its buttons do.

The card shows the number that counts and the name that the stranger goes by, as data; nothing
they wrote. Only the host's press counts, once, while the request stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.clock import Clock
from core.i18n import Texts
from core.messages import Actor, Block, ChatAddress, Reply, Role
from core.store import actors, outbox, visitors
from core.store.database import Transaction
from core.store.stores import Stores
from core.store.visitors import ASK_EVERY, Visitor, VisitorState
from core.turn_actions import Act, Handler, Press
from core.turn_offers import Offer, draw

ADMIT, REFUSE, BLOCK = "admit", "refuse", "block"

_STATES = {
    ADMIT: VisitorState.ADMITTED,
    REFUSE: VisitorState.REFUSED,
    BLOCK: VisitorState.BLOCKED,
}


async def ask_host(
    tx: Transaction, visitor: Visitor, texts: Texts, clock: Clock, *, lang: str, tz: str
) -> bool:
    """Queue the card in the host's chat on the visitor's channel; False: the host has none there.

    `lang` and `tz` are for a host who has chosen none. Put it in the transaction that notes the
    visitor.
    """
    host = await actors.find_host(tx)
    chat = None if host is None else await _private_chat(tx, host, visitor.channel)
    if host is None or chat is None:
        return False
    now, lang = clock.now(), host.lang or lang
    until = texts.datetime(now + ASK_EVERY, lang, host.tz or tz)
    about = {"channel": visitor.channel, "sender": visitor.sender_id}
    admit, refuse, block = (Offer(name, f"door.{name}", about) for name in _STATES)
    drawn = draw([[admit], [refuse, block]], texts, lang)
    blocks = (
        Block("text", texts.say("door.asks", lang)),
        # As code, so that a name that looks like a link is none.
        Block("code", visitor.name or "?"),
        Block("text", texts.say("door.number", lang, number=visitor.sender_id, until=until)),
    )
    key = f"door:{visitor.channel}:{visitor.sender_id}:{int(now.timestamp())}"
    body = Reply(blocks, lang, buttons=drawn.buttons).to_json()
    await outbox.enqueue(tx, key, chat, body, now)
    await drawn.store(
        tx,
        turn_id="",
        actor_id=host.id,
        conversation=chat.key,
        shown_key=key,
        now=now,
        ttl=ASK_EVERY,
    )
    return True


@dataclass(frozen=True, slots=True)
class AtTheDoor:
    """What the host's word does."""

    stores: Stores
    clock: Clock
    texts: Texts

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return dict.fromkeys(_STATES, self.press)

    async def press(self, press: Press) -> Act:
        """Let a stranger in as a guest, turn them away or block them; nothing when they do not
        wait any more, or are known by now."""
        if press.actor.role is not Role.HOST:
            return Act()
        params, now = press.action.params, self.clock.now()
        channel, sender = str(params.get("channel")), str(params.get("sender"))
        name = press.action.name
        async with self.stores.main.read() as tx:
            found = await visitors.find(tx, channel, sender)
            known = await actors.find_actor(tx, channel, sender)
        about = {"number": sender}
        if found is None or found.state is not VisitorState.WAITING or known is not None:
            return Act(settles="door.over", params=about)

        async def decide(tx: Transaction) -> None:
            visitor = await visitors.decide(tx, channel, sender, _STATES[name], now)
            if visitor is None or name != ADMIT:
                return
            guest = await actors.add(tx, Role.GUEST, "", self.clock)
            await actors.link(tx, channel, sender, guest.id)
            # A private chat has the number of its person.
            here, lang = ChatAddress(channel, sender), visitor.lang or press.lang
            words = Reply((Block("text", self.texts.say("door.welcome", lang)),), lang)
            key = f"door:{guest.id}:welcome"
            await outbox.enqueue(tx, key, here, words.to_json(), now)

        return Act(settles=f"door.{name}.pressed", params=about, writes=decide)


async def _private_chat(tx: Transaction, actor: Actor, channel: str) -> ChatAddress | None:
    found = [
        sender for known, sender in await actors.identities_of(tx, actor.id) if known == channel
    ]
    return ChatAddress(channel, found[0]) if found else None
