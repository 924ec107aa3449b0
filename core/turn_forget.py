"""`/forget`: a person has what they said here forgotten, after a word that says what goes and what
stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core.i18n import Texts
from core.messages import Actor, Block, Inbound
from core.store import turns
from core.store.forgetting import Forgetting
from core.store.stores import Stores
from core.turn_actions import Act, Handler, Press, Said
from core.turn_offers import Offer

COMMAND = "/forget"
FORGETS, LEAVES = "forget.yes", "forget.no"


@dataclass(frozen=True, slots=True)
class Forget:
    stores: Stores
    texts: Texts
    forgetting: Forgetting

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {FORGETS: self.forget, LEAVES: self.leave}

    async def say(self, inbound: Inbound, actor: Actor, lang: str) -> Said:
        """Ask whether they are sure. Everybody may, for themselves."""
        say = self.texts.say
        lines = [say(f"forget.{word}", lang) for word in ("ask", "goes", "stays", "after")]
        async with self.stores.main.read() as tx:
            count = len(await turns.open_of_actor(tx, actor.id))
        if count:
            lines.append(say("forget.open", lang, count=count))
        sure = (Offer(FORGETS, "forget.yes"), Offer(LEAVES, "forget.no"))
        return Said((Block("text", "\n".join(lines)),), (sure,))

    async def forget(self, press: Press) -> Act:
        """Done before it is said to be; pressed again after a crash it does what is left."""
        whole = await self.forgetting.forget(press.actor.id, card=press.action.shown_key)
        return Act(settles="forget.done" if whole else "forget.done_but_open")

    async def leave(self, press: Press) -> Act:
        return Act(settles="forget.left")
