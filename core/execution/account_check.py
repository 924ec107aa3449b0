"""Whether an account, or a service that the owner chose, works: the programs that need it are run
in the cage so that nothing changes.

Of mail that is one message read, and a login at the server that sends, to which nothing is given.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.accounts import Account, AccountKind
from core.catalog.loader import Catalog
from core.config import Settings
from core.errors import ErrorCode, ErrorInfo, MetnosError, to_error_info
from core.execution import accounts, secret_args
from core.execution.accounts import Opened
from core.execution.cage.process import ProcessCage
from core.execution.context import TurnContext, private_hosts_for
from core.execution.document import document_of
from core.execution.paths import scope_for
from core.messages import Actor, ChatAddress
from core.observation import Observation
from core.store.stores import Stores
from core.turn_state import TurnState

# The service answered, only that it knows no such place.
_ANSWERED = frozenset({ErrorCode.UNKNOWN_PLACE, ErrorCode.NOT_FOUND})
LONGEST_S = 60.0
"""For one program: longer nobody waits who only wants to know."""


@dataclass(frozen=True, slots=True)
class Probe:
    tool: str
    args: Mapping[str, Any]


PROBES: Mapping[AccountKind, tuple[Probe, ...]] = {
    AccountKind.MAIL: (
        Probe("read_messages", {"max_results": 1}),
        Probe("send_messages", {"to": []}),
    ),
    AccountKind.CALENDAR: (Probe("read_events", {"max_results": 1}),),
    AccountKind.CONTACTS: (Probe("find_contacts", {"query": "a", "max_results": 1}),),
    AccountKind.PLACES: (Probe("find_places", {"queries": ["museum"], "near": "Roma"}),),
}


# By the name of the service in the settings. What is looked for is nobody's.
SERVICES: Mapping[str, Probe] = {
    "photon": Probe("find_places", {"queries": ["museum"], "near": "Roma"}),
    "weather": Probe("get_weather", {"place": "Roma", "days": 1}),
    "search": Probe("find_urls", {"query": "museum", "max_results": 1}),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of an account: `error` says why it does not work, `tool` which program found out.
    `tried` is false when there is no program here that could try."""

    account: Account
    tried: bool = True
    error: ErrorInfo | None = None
    tool: str = ""

    @property
    def ok(self) -> bool:
        return self.error is None


class AccountCheck:
    """Tries accounts. Keeps nothing; called twice it asks the servers twice."""

    def __init__(self, cage: ProcessCage, stores: Stores, settings: Settings) -> None:
        self._cage, self._stores, self._settings = cage, stores, settings

    async def check(
        self, account: Account, actor: Actor, catalog: Catalog, *, lang: str, now: dt.datetime
    ) -> Checked:
        """Try an account with every program that can, to the first that fails. Never raises for
        what is wrong with the account; no secret stands in what comes back."""
        context = self._context(actor, catalog, lang, now)
        tried = False
        for probe in PROBES[account.kind]:
            executor = catalog.executors.get(probe.tool)
            if executor is None or account.kind not in executor.manifest.used_accounts:
                continue
            tried = True
            error = await self._try(account, context, probe)
            if error is not None:
                server = _server(account, probe)
                named = replace(error, params={"host": server, **error.params})
                if named.params["host"] == server.rpartition(":")[0].strip("[]"):
                    named = replace(named, params={**named.params, "host": server})
                return Checked(account, error=named, tool=probe.tool)
        return Checked(account, tried=tried)

    async def check_service(
        self, name: str, actor: Actor, catalog: Catalog, *, lang: str, now: dt.datetime
    ) -> ErrorInfo | None:
        """Ask a service of the settings one harmless question, with no account of anybody: why it
        does not answer, None when it does or when no program here asks it."""
        probe = SERVICES[name]
        if probe.tool not in catalog.executors:
            return None
        context = self._context(actor, catalog, lang, now)
        error = await self._run(Opened(), context, probe.tool, probe.args)
        return None if error is not None and error.code in _ANSWERED else error

    async def _try(self, account: Account, context: TurnContext, probe: Probe) -> ErrorInfo | None:
        executor = context.catalog.executors[probe.tool]
        manifest = executor.manifest
        named = {accounts.ARGUMENT: account.name}
        known = manifest.args.get("properties", {})
        args = {k: v for k, v in {**probe.args, **named}.items() if k in known}
        try:
            mine = await accounts.opened(self._stores, context, manifest, named)
        except MetnosError as exc:
            return to_error_info(exc)
        return await self._run(mine, context, probe.tool, args)

    async def _run(
        self, mine: Opened, context: TurnContext, tool: str, args: Mapping[str, Any]
    ) -> ErrorInfo | None:
        executor = context.catalog.executors[tool]
        manifest = executor.manifest
        document = document_of(context, TurnState(context.turn_id, ""), manifest, args, [])
        try:
            seen = await self._cage.run(
                executor,
                context.catalog.sdk,
                mine.into(document),
                timeout_s=min(manifest.timeout_s, LONGEST_S),
                limits=manifest.limits,
            )
        except MetnosError as exc:
            return to_error_info(exc)
        return _fault(secret_args.masked(seen, mine.secrets))

    def _context(self, actor: Actor, catalog: Catalog, lang: str, now: dt.datetime) -> TurnContext:
        settings = self._settings
        return TurnContext(
            turn_id="0" * 32,
            actor=actor,
            address=ChatAddress("terminal", "check"),
            lang=lang,
            tz=actor.tz or settings.metnos_tz,
            now=now,
            request="",
            catalog=replace(catalog, dormant={}),
            scope=scope_for(actor, settings),
            private_hosts=private_hosts_for(actor, settings, None),
            services=settings.services,
        )


def _server(account: Account, probe: Probe) -> str:
    """`host:port` of the server that a program speaks to last."""
    hosts = account.hosts or ("",)
    return hosts[-1] if probe.tool == "send_messages" else hosts[0]


def _fault(seen: Observation) -> ErrorInfo | None:
    """Also an account that is only told of as missing from an answer does not work."""
    if seen.error is not None:
        return seen.error
    return None if seen.ok else ErrorInfo(ErrorCode.INTERNAL)
