"""What `metnos doctor` asks of others: Telegram about the token, the model for one tool call."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from bot.cli.checks import Doctor, Finding, State, engine_holder
from bot.cli.lines import own_command
from bot.cli.model import what_is_missing

if TYPE_CHECKING:
    from bot.telegram.checks import TokenCheck
    from core.llm.client import ChatReply
    from core.llm.tiers import Tiers

# A bot that polls notes it at least every half minute, and once a minute when nobody writes.
_SILENT_AFTER = dt.timedelta(minutes=3)
_TOOL = "get_now"


async def check_telegram(doctor: Doctor) -> AsyncIterator[Finding]:
    """The token by getMe, what keeps updates away, how long ago the bot asked, who the host is."""
    from bot.telegram.checks import TokenState, check_token

    settings = doctor.settings
    if settings.telegram_bot_token is None:
        yield doctor.info("telegram", "token_none", own_command("setup"))
        return
    token = settings.telegram_bot_token.get_secret_value().strip()
    found = await check_token(token, settings, webhook=True)
    match found.state:
        case TokenState.GOOD:
            yield doctor.good("telegram", "token_good", name=found.username)
        case TokenState.UNREACHABLE:
            url = settings.telegram_base_url.removesuffix("/bot")
            yield doctor.fault(
                "telegram", "telegram_unreachable", f"curl -sS {url}", detail=found.detail
            )
        case _:
            yield doctor.fault("telegram", f"token_{found.state.value}", own_command("setup"))
    if (finding := _webhook(doctor, found)) is not None:
        yield finding
    if (doctor.settings.private_dir / "metnos.db").is_file():
        async for finding in _check_traffic(doctor):
            yield finding


def _webhook(doctor: Doctor, found: TokenCheck) -> Finding | None:
    """What is to be said of a webhook that is set, or should be."""
    settings = doctor.settings
    if settings.metnos_webhook_url is not None and settings.metnos_webhook_secret is None:
        return doctor.fault("telegram", "webhook_no_secret", "openssl rand -hex 32")
    if found.webhook is None:
        return None
    if not found.is_ours:
        return doctor.fault("telegram", "webhook", own_command("run"), host=found.webhook)
    if found.trouble:
        mend = f"curl -sS -X POST {settings.metnos_webhook_url}"
        return doctor.fault("telegram", "webhook_trouble", mend, why=found.trouble)
    return doctor.good("telegram", "webhook_good", host=found.webhook)


async def check_live(doctor: Doctor) -> AsyncIterator[Finding]:
    """Whether the bot runs and has heard Telegram lately. Asks nobody."""
    running = engine_holder(doctor.home)
    if running is None or running[1] != "run":
        yield doctor.fault("telegram", "not_running", own_command("run"))
    elif (doctor.settings.private_dir / "metnos.db").is_file():
        async for finding in _check_traffic(doctor):
            if finding.state is not State.INFO:
                yield finding


async def _check_traffic(doctor: Doctor) -> AsyncIterator[Finding]:
    from bot.telegram.intake import CONFLICT, LAST_POLL
    from core.clock import SystemClock
    from core.errors import StoreError
    from core.store import actors, kv
    from core.store.stores import open_stores

    clock = SystemClock()
    try:
        stores = await open_stores(doctor.settings, clock)
    except StoreError:
        return  # the database has its own finding
    try:
        async with stores.main.read() as tx:
            polled, conflict = await kv.get(tx, LAST_POLL), await kv.get(tx, CONFLICT)
            host = await actors.find_host(tx)
            known = [] if host is None else await actors.identities_of(tx, host.id)
    finally:
        await stores.close()
    running = engine_holder(doctor.home)
    if running is not None and running[1] == "run":
        if conflict is not None:
            since, _, bot = conflict.partition(" ")
            revoke = "https://t.me/BotFather"
            yield doctor.fault("telegram", "conflict", revoke, name=bot, time=_ago(doctor, since))
        elif polled and clock.now() - dt.datetime.fromisoformat(polled) > _SILENT_AFTER:
            mend = f"kill {running[0]}"
            yield doctor.fault("telegram", "silent", mend, time=_ago(doctor, polled))
        elif polled:
            yield doctor.good("telegram", "polled", time=_ago(doctor, polled))
    if all(channel != "telegram" for channel, _ in known):
        yield doctor.info("telegram", "no_host", own_command("pair --host"))


def _ago(doctor: Doctor, moment: str) -> str:
    when = dt.datetime.fromisoformat(moment)
    return doctor.console.texts.datetime(when, doctor.console.lang, doctor.settings.metnos_tz)


async def check_model(doctor: Doctor) -> Finding:
    """One real tool call of the model that plans, and how long it took."""
    from core.errors import ModelError
    from core.llm.local_model import model_path
    from core.llm.local_server import LocalServer
    from core.llm.tiers import Tiers, needs_bundled

    settings, server = doctor.settings, None
    if needs_bundled(settings):
        if (command := what_is_missing(settings)) is not None:
            return doctor.fault("model", "model_none", command)
        # A log of its own: that of a running bot's server is not overwritten.
        log_file = doctor.home / "model-doctor.log"
        server = LocalServer(model_path(doctor.home), log_file=log_file)
    tiers = Tiers.from_settings(settings, bundled=server)
    try:
        if server is not None:
            await server.start()
        return await _call_a_tool(doctor, tiers)
    except ModelError as exc:
        mend = own_command("model status")
        return doctor.fault("model", "model_failed", mend, why=doctor.console.sentence(exc))
    finally:
        await tiers.close()
        if server is not None:
            await server.stop()


async def _call_a_tool(doctor: Doctor, tiers: Tiers) -> Finding:
    from core.llm.client import ChatRequest, Message, ToolSpec

    tool = ToolSpec(
        _TOOL,
        "Tells the current time in a place.",
        {
            "type": "object",
            "properties": {"place": {"type": "string", "description": "a city"}},
            "required": ["place"],
        },
    )
    messages = (
        Message("system", "Answer by calling the tool get_now."),
        Message("user", "What time is it in Tokyo?"),
    )
    started = time.monotonic()
    reply = await tiers.for_role("plan").complete(
        ChatRequest(messages, tools=(tool,), max_tokens=120)
    )
    seconds = round(time.monotonic() - started, 1)
    name = reply.model or tiers.settings_of("plan").model or "?"
    if _calls(reply):
        return doctor.good("model", "model_good", name=name, seconds=seconds)
    traits = await tiers.traits_of("plan")
    if traits.engine == "metis":  # plans under a schema and needs no tool calls of the server
        return doctor.good("model", "model_schema", name=name, seconds=seconds)
    return doctor.fault("model", "model_no_tools", own_command("model status"), name=name)


def _calls(reply: ChatReply) -> bool:
    return any(call.name == _TOOL and call.arguments is not None for call in reply.tool_calls)
