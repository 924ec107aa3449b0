"""What a turn begins with: its language, and the context that its calls are judged in."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from core.accounts import AccountKind
from core.allowance import Allowance, limits_for
from core.catalog.foreign import with_foreign
from core.catalog.loaded import LoadedExecutor
from core.catalog.loader import CatalogLoader
from core.config import Settings
from core.errors import ErrorCode, ErrorInfo
from core.execution.context import Exchange, TurnContext, private_hosts_for
from core.execution.guests import catalog_for
from core.execution.incoming import inbox_folder, inbox_of
from core.execution.paths import scope_for
from core.i18n import Texts
from core.language import choose_lang
from core.llm.tiers import Tiers
from core.messages import Actor, ChatAddress, Inbound, InboundKind, Role
from core.store import accounts, grants, mcp, turns, usage
from core.store.database import Transaction
from core.store.grants import Granted
from core.store.secret_key import key_path

MOST_REMEMBERED = 300
MAX_REQUEST = 20_000
_WORDED = frozenset({InboundKind.TEXT, InboundKind.FILE, InboundKind.VOICE, InboundKind.SCHEDULED})


HOUR = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Rights:
    """What an actor may do at one moment: what is granted to them, what is left to use, the kinds
    of account that they have, and the tools of servers that the host approved."""

    granted: Granted = field(default_factory=Granted)
    allowance: Allowance = field(default_factory=Allowance)
    accounts: frozenset[AccountKind] = frozenset()
    foreign: tuple[LoadedExecutor, ...] = ()


class TurnSetup:
    """Makes contexts; reads settings and catalogue as they are at that moment."""

    def __init__(
        self, settings: Settings, texts: Texts, loader: CatalogLoader, tiers: Tiers
    ) -> None:
        self._settings, self._texts, self._loader = settings, texts, loader
        self._tiers = tiers

    @property
    def settings(self) -> Settings:
        return self._settings

    async def rights(self, tx: Transaction, actor: Actor, now: dt.datetime) -> Rights:
        """What this actor may do now. Read it anew for every stretch of a turn."""
        limits = limits_for(actor, self._settings)
        used, again_at = usage.DayUsage(), None
        if limits.tokens_per_day is not None or limits.money_per_day is not None:
            today = now.astimezone(ZoneInfo(self.zone(actor))).date()
            used = await usage.of_day(tx, actor.id, today)
        if limits.turns_per_hour is not None:
            most = limits.turns_per_hour
            first = await turns.begun_at(tx, actor.id, now - HOUR, back=most)
            again_at = None if first is None else first + HOUR
        prices = self._tiers.settings_of("plan")
        allowance = Allowance(
            limits,
            used.tokens_in + used.tokens_out,
            used.money,
            (prices.input_price, prices.output_price),
            again_at,
            may_extend=actor.role is Role.HOST,
        )
        return Rights(
            await grants.granted_to(tx, actor.id, now),
            allowance,
            await accounts.kinds_of(tx, actor.id),
            await mcp.active(tx) if actor.role is Role.HOST else (),
        )

    def too_often(self, context: TurnContext) -> ErrorInfo | None:
        """Why no further turn of this person may begin now: their hour is full."""
        allowance = context.allowance
        if allowance.again_at is None:
            return None
        at = self._texts.time(allowance.again_at, context.lang, context.tz)
        limit = allowance.limits.turns_per_hour
        return ErrorInfo(ErrorCode.QUOTA_TURNS, {"count": limit, "time": at})

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

    @property
    def key_file(self) -> str:
        """Where the key lies that opens what people entrust."""
        return str(key_path(self._settings.private_dir))

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
        files: Sequence[str] = (),
        files_before: Sequence[str] = (),
        rights: Rights | None = None,
        interactive: bool = True,
        scheduled: bool = False,
        alone: ChatAddress | None = None,
        message_ref: str | None = None,
    ) -> TurnContext:
        """`talk`: what was asked and answered before in this conversation, oldest first, and
        whether words from outside may stand in the answer."""
        rights = rights or Rights()
        granted = rights.granted
        scope = scope_for(actor, self._settings, granted)
        catalog = with_foreign(self._loader.current(), rights.foreign)
        return TurnContext(
            turn_id=turn_id,
            actor=actor,
            address=address,
            lang=lang,
            tz=self.zone(actor),
            now=now,
            request=request,
            catalog=catalog_for(actor, catalog, granted.rights, rights.accounts),
            scope=scope,
            private_hosts=private_hosts_for(actor, self._settings, granted),
            conversation=tuple(
                Exchange(said[:MOST_REMEMBERED], answer[:MOST_REMEMBERED], external)
                for said, answer, external in talk
            ),
            quoted=quoted,
            files=tuple(files),
            files_before=tuple(files_before),
            inbox=str(inbox_of(scope, inbox_folder(self._settings, self._texts))),
            services=self._settings.services,
            interactive=interactive,
            scheduled=scheduled,
            allowance=rights.allowance,
            alone=alone,
            message_ref=message_ref,
        )


def refusal_of(inbound: Inbound, request: str, context: TurnContext) -> ErrorInfo | None:
    """Why this inbound is nothing to work on."""
    if inbound.kind not in _WORDED or not request:
        return ErrorInfo(ErrorCode.UNSUPPORTED)
    if len(request) > MAX_REQUEST:
        return ErrorInfo(ErrorCode.REQUEST_TOO_LONG, {"limit": MAX_REQUEST})
    return None if context.catalog.executors else ErrorInfo(ErrorCode.CATALOG_EMPTY)
