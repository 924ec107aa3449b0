"""Questions about a bot token for the command line: whose it is, and what keeps updates away."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

from telegram.error import InvalidToken, TelegramError

from bot.telegram.client import bot_id_of, build_bot
from core.config import Settings


class TokenState(StrEnum):
    GOOD = "good"
    MALFORMED = "malformed"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class TokenCheck:
    """What Telegram says of a token. `webhook`: the host of a webhook that is set, which keeps
    updates from being fetched; None when there is none or it was not asked. `is_ours`: it is the
    one of the settings; `trouble`: why Telegram could not bring what waits there."""

    state: TokenState
    username: str = ""
    webhook: str | None = None
    pending: int = 0
    detail: str = ""
    is_ours: bool = False
    trouble: str = ""


async def check_token(
    token: str, settings: Settings, *, timeout_s: float = 10.0, webhook: bool = False
) -> TokenCheck:
    """Ask Telegram whose token this is, and with `webhook` what is set for it.

    Never raises for what Telegram or the network does; the token stands in no field.
    """
    if bot_id_of(token) is None:
        return TokenCheck(TokenState.MALFORMED)
    bot = build_bot(token, settings.telegram_base_url, settings.telegram_base_file_url)
    try:
        async with asyncio.timeout(timeout_s):
            me = await bot.get_me()
            info = await bot.get_webhook_info() if webhook else None
    except InvalidToken:
        return TokenCheck(TokenState.REFUSED)
    except (TelegramError, TimeoutError) as exc:
        return TokenCheck(TokenState.UNREACHABLE, detail=type(exc).__name__)
    finally:
        await bot.close_connections()
    url = info.url if info is not None else ""
    return TokenCheck(
        TokenState.GOOD,
        username=me.username or "",
        webhook=url.split("/")[2] if url.count("/") >= 2 else None,
        pending=0 if info is None else info.pending_update_count,
        is_ours=bool(url) and url == settings.metnos_webhook_url,
        trouble=(info.last_error_message or "") if info and info.pending_update_count else "",
    )
