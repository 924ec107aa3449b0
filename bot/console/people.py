"""How pages name people and places."""

from __future__ import annotations

from collections.abc import Mapping

from core.messages import ChatAddress
from core.store import actors
from core.store.database import Transaction


class People:
    """Everybody who speaks here or did, by the id; who is not known is a dash."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    @classmethod
    async def read(cls, tx: Transaction) -> People:
        return cls(await actors.names(tx))

    def name(self, actor_id: str) -> str:
        return self._names.get(actor_id, "—")

    def choices(self) -> list[tuple[str, str]]:
        return list(self._names.items())


def place_of(conversation: str) -> str:
    """What kind of place a conversation is: `terminal`, `group` or `private`; the ids of chats
    say nothing to anybody."""
    try:
        address = ChatAddress.from_key(conversation)
    except ValueError:
        return "private"
    if address.channel == actors.LOCAL_CHANNEL:
        return "terminal"
    # Telegram's groups have negative numbers.
    return "group" if address.chat_id.startswith("-") else "private"
