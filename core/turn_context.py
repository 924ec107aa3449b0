"""What a turn knows before it begins: its language, what is in reach, the exchanges before it.

Knows no channel.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from core.catalog.loader import CatalogLoader
from core.config import Settings
from core.execution.context import Exchange, TurnContext, private_hosts_for
from core.execution.paths import scope_for
from core.i18n import Texts
from core.language import choose_lang
from core.messages import Actor, ChatAddress, Inbound
from core.store import turns
from core.store.grants import Granted

CONVERSATION_AGE = dt.timedelta(hours=2)
MOST_REMEMBERED = 300


@dataclass(frozen=True, slots=True)
class Contexts:
    """Makes the contexts of turns."""

    settings: Settings
    texts: Texts
    loader: CatalogLoader

    def lang(self, actor: Actor, inbound: Inbound, request: str) -> str:
        """The language of the answer."""
        asked = inbound.data.get("lang")
        return choose_lang(
            # Said for this one request (`chat --lang`), it goes before what is always wanted.
            asked if isinstance(asked, str) else actor.lang,
            inbound.lang,
            known=self.texts.langs,
            text=request,
            default=self.settings.metnos_lang,
        )

    def make(
        self,
        turn_id: str,
        actor: Actor,
        address: ChatAddress,
        lang: str,
        now: dt.datetime,
        request: str,
        *,
        talk: Iterable[turns.Exchange] = (),
        quoted: str | None = None,
        granted: Granted | None = None,
    ) -> TurnContext:
        """The context of one turn, with the catalogue as it is now.

        Of `talk`, what ended longer than two hours ago is left out, and the rest cut short.
        """
        return TurnContext(
            turn_id=turn_id,
            actor=actor,
            address=address,
            lang=lang,
            tz=actor.tz or self.settings.metnos_tz,
            now=now,
            request=request,
            catalog=self.loader.current(),
            scope=scope_for(actor, self.settings, granted),
            private_hosts=private_hosts_for(actor, self.settings, granted),
            conversation=tuple(
                Exchange(e.request[:MOST_REMEMBERED], e.answer[:MOST_REMEMBERED])
                for e in talk
                if now - e.ended_at <= CONVERSATION_AGE
            ),
            quoted=quoted,
        )
