"""What a turn begins with: its language, and the context that its calls are judged in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from core.catalog.loader import CatalogLoader
from core.config import Settings
from core.errors import ErrorCode, ErrorInfo
from core.execution.context import Exchange, TurnContext, private_hosts_for
from core.execution.paths import scope_for
from core.i18n import Texts
from core.language import choose_lang
from core.messages import Actor, ChatAddress, Inbound, InboundKind
from core.store.grants import Granted

MOST_REMEMBERED = 300
MAX_REQUEST = 20_000


class TurnSetup:
    """Makes contexts; reads settings and catalogue as they are at that moment."""

    def __init__(self, settings: Settings, texts: Texts, loader: CatalogLoader) -> None:
        self._settings, self._texts, self._loader = settings, texts, loader

    def lang(self, actor: Actor, inbound: Inbound, request: str) -> str:
        asked = inbound.data.get("lang")
        return choose_lang(
            # Said for this one request (`chat --lang`), it goes before what is always wanted.
            asked if isinstance(asked, str) else actor.lang,
            inbound.lang,
            known=self._texts.langs,
            text=request,
            default=self._settings.metnos_lang,
        )

    def zone(self, actor: Actor) -> str:
        return actor.tz or self._settings.metnos_tz

    def phrase(self, context: TurnContext, tool: str) -> str:
        """What a step is doing, in the person's words."""
        executor = context.catalog.executors.get(tool)
        if executor is None:
            return self._texts.say("progress.working", context.lang)
        return executor.manifest.phrase[context.lang]

    def context(
        self,
        turn_id: str,
        actor: Actor,
        address: ChatAddress,
        lang: str,
        now: dt.datetime,
        request: str,
        *,
        talk: Sequence[tuple[str, str, bool]] = (),
        quoted: str | None = None,
        granted: Granted | None = None,
        interactive: bool = True,
        scheduled: bool = False,
    ) -> TurnContext:
        """`talk`: what was asked and answered before in this conversation, oldest first, and
        whether words from outside may stand in the answer."""
        return TurnContext(
            turn_id=turn_id,
            actor=actor,
            address=address,
            lang=lang,
            tz=self.zone(actor),
            now=now,
            request=request,
            catalog=self._loader.current(),
            scope=scope_for(actor, self._settings, granted),
            private_hosts=private_hosts_for(actor, self._settings, granted),
            conversation=tuple(
                Exchange(said[:MOST_REMEMBERED], answer[:MOST_REMEMBERED], external)
                for said, answer, external in talk
            ),
            quoted=quoted,
            services=self._settings.services,
            interactive=interactive,
            scheduled=scheduled,
        )


def refusal_of(inbound: Inbound, request: str, context: TurnContext) -> ErrorInfo | None:
    """Why this inbound is nothing to work on."""
    if inbound.kind not in {InboundKind.TEXT, InboundKind.SCHEDULED} or not request:
        return ErrorInfo(ErrorCode.UNSUPPORTED)
    if len(request) > MAX_REQUEST:
        return ErrorInfo(ErrorCode.REQUEST_TOO_LONG, {"limit": MAX_REQUEST})
    return None if context.catalog.executors else ErrorInfo(ErrorCode.CATALOG_EMPTY)
