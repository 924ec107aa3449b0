"""Fetching what a message brings: files into the person's workspace, recordings into words.

What was fetched is noted in the row before its turn begins, so that a crash fetches nothing twice
and asks no server again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from telegram.error import BadRequest, RetryAfter, TelegramError

from bot.telegram.client import PollingBot
from bot.telegram.faults import backoff_s, classify
from bot.telegram.inbound import Said
from bot.telegram.media import MOST_BYTES, Media
from bot.telegram.presenter import Presenter
from core.clock import Clock
from core.errors import CallRefused, ErrorCode, ModelError, ModelRefused, ModelReplyInvalid
from core.execution.incoming import Incoming
from core.i18n import Texts
from core.llm.transcribe import Transcriber
from core.messages import Actor, Block, Inbound, InboundKind, Reply, Role, TurnStarted
from core.store import inbox, outbox
from core.store.credentials import Vault
from core.store.database import Database
from core.store.inbox import StoredInbox

T = TypeVar("T")

log = logging.getLogger(__name__)

RECEIVED = "received"
_TRIES = 3
_MOST_HEARD = 3000


@dataclass(slots=True)
class _Found:
    """What has been fetched so far; `notes` are for the person."""

    files: list[dict[str, Any]]
    spoken: list[str]
    overheard: list[str]
    notes: list[Block]
    missing: int = 0


class Receiving:
    """Fetches for one bot. `tz` is the house's zone, for names that nobody gave."""

    def __init__(
        self,
        *,
        bot: PollingBot,
        store: Database,
        vault: Vault,
        texts: Texts,
        clock: Clock,
        incoming: Incoming,
        transcriber: Transcriber,
        presenter: Presenter,
        wake_outbox: Callable[[], None],
        tz: str,
    ) -> None:
        self._bot, self._store, self._vault = bot, store, vault
        self._texts, self._clock, self._tz = texts, clock, tz
        self._incoming, self._transcriber = incoming, transcriber
        self._presenter, self._wake_outbox = presenter, wake_outbox

    async def receive(
        self, row: StoredInbox, said: Said, actor: Actor, lang: str
    ) -> Inbound | None:
        """The request with all that it brings; None when it cannot be worked without what could
        not be had. What there is to say of that stands in the outbox then.

        Called again for the same row it fetches nothing. Raises `StoreError`.
        """
        if not said.media:
            return said.inbound
        noted = row.body.get(RECEIVED)
        if not isinstance(noted, Mapping):
            await self._presenter.show(said.origin.address, TurnStarted("", lang))
            found = _Found([], [], [], [])
            for media in said.media:
                await self._fetch(media, said, actor, lang, found)
            noted = {
                "files": found.files,
                "spoken": found.spoken,
                "overheard": found.overheard,
                "missing": found.missing,
            }
            async with self._store.write() as tx:
                await inbox.keep(tx, row, {**row.body, RECEIVED: noted}, vault=self._vault)
                if found.notes:
                    reply = Reply(tuple(found.notes), lang)
                    key, address = f"inbox:{row.id}:received", said.origin.address
                    await outbox.enqueue(tx, key, address, reply.to_json(), self._clock.now())
            self._wake_outbox()
        inbound = _with(said, noted)
        if inbound is None:
            await self._presenter.discard(said.origin.address)
        return inbound

    async def _fetch(
        self, media: Media, said: Said, actor: Actor, lang: str, found: _Found
    ) -> None:
        if media.is_spoken:
            await self._listen(media, said, actor, lang, found)
        else:
            await self._save(media, said, actor, lang, found)

    async def _save(
        self, media: Media, said: Said, actor: Actor, lang: str, found: _Found
    ) -> None:
        name = media.name or self._name(media, said.inbound.received_at, actor, lang)
        if media.is_too_big:
            self._refuse(found, self._too_big(name, media, actor, lang))
            return
        try:
            saved = await self._tries(
                lambda: self._incoming.save(
                    actor, name, self._bot.stream_file(media.file_id), most_bytes=MOST_BYTES
                )
            )
        except CallRefused as exc:
            log.warning("file not saved", extra={"code": exc.code.value})
            if exc.code is ErrorCode.TOO_LARGE:
                unstated = replace(media, size=None)  # it is more than was said
                self._refuse(found, self._too_big(name, unstated, actor, lang))
                return
            full = exc.code is ErrorCode.DISK_FULL
            key = "telegram.fetch.disk_full" if full else "telegram.fetch.not_saved"
            self._refuse(found, self._texts.say(key, lang, name=name))
        except TelegramError as exc:
            log.warning("file not fetched", extra={"error": type(exc).__name__})
            too_big = isinstance(exc, BadRequest) and "too big" in exc.message.lower()
            text = self._texts.say("telegram.fetch.not_fetched", lang, name=name)
            self._refuse(found, self._too_big(name, media, actor, lang) if too_big else text)
        else:
            file = {
                "path": saved.path,
                "name": saved.name,
                "media_type": media.media_type,
                "bytes": saved.bytes,
            }
            if file not in found.files:
                found.files.append(file)

    async def _listen(
        self, media: Media, said: Said, actor: Actor, lang: str, found: _Found
    ) -> None:
        say = self._texts.say
        if not self._transcriber.is_set:
            key = "telegram.voice.off_host" if actor.role is Role.HOST else "telegram.voice.off"
            self._refuse(found, say(key, lang))
            return
        if media.is_too_big:
            name = say("telegram.fetch.word.voice", lang)
            self._refuse(found, self._too_big(name, media, actor, lang))
            return
        try:
            recording = await self._tries(lambda: _whole(self._bot.stream_file(media.file_id)))
            text = await self._transcriber.transcribe(
                recording,
                name=f"recording{media.ending}",
                media_type=media.media_type,
                lang=lang,
            )
        except ModelReplyInvalid as exc:
            key = "telegram.voice.nothing" if exc.detail == "empty" else "telegram.voice.failed"
            self._refuse(found, say(key, lang))
        except ModelError as exc:
            log.warning("recording not understood", extra={"error": exc.detail})
            refused = isinstance(exc, ModelRefused)
            self._refuse(
                found, say("telegram.voice.refused" if refused else "telegram.voice.failed", lang)
            )
        except (CallRefused, TelegramError) as exc:
            log.warning("recording not fetched", extra={"error": type(exc).__name__})
            self._refuse(found, say("telegram.voice.not_fetched", lang))
        else:
            (found.overheard if media.is_quoted else found.spoken).append(text)
            shown = text if len(text) <= _MOST_HEARD else f"{text[: _MOST_HEARD - 1]}…"
            found.notes.append(Block("small", say("telegram.voice.heard", lang, text=shown)))

    @staticmethod
    def _refuse(found: _Found, text: str) -> None:
        found.missing += 1
        block = Block("text", text)
        if block not in found.notes:
            found.notes.append(block)

    def _too_big(self, name: str, media: Media, actor: Actor, lang: str) -> str:
        way = "voice" if media.is_spoken else actor.role.value  # guests have no folders to name
        say, advice = self._texts.say, f"telegram.fetch.instead.{way}"
        return f"{self._how_big(name, media, lang)} {say(advice, lang)}"

    def _how_big(self, name: str, media: Media, lang: str) -> str:
        limit = self._texts.bytes(MOST_BYTES, lang)
        if media.size is None:
            return self._texts.say("telegram.fetch.too_big_unstated", lang, name=name, limit=limit)
        size = self._texts.bytes(media.size, lang)
        return self._texts.say("telegram.fetch.too_big", lang, name=name, size=size, limit=limit)

    def _name(self, media: Media, at: datetime, actor: Actor, lang: str) -> str:
        """What a file without a name is called: what it is, and when it was sent."""
        word = self._texts.say(f"telegram.fetch.word.{media.kind}", lang)
        local = at.astimezone(ZoneInfo(actor.tz or self._tz))
        return f"{word} {local:%Y-%m-%d %H.%M.%S}{media.ending}"

    async def _tries(self, fetch: Callable[[], Awaitable[T]]) -> T:
        """Fetch, again after a fault of the network. Raises what the last try raised."""
        for failed in range(1, _TRIES):
            try:
                return await fetch()
            except BadRequest:
                raise
            except RetryAfter as exc:
                await asyncio.sleep(classify(exc).after_s)
            except TelegramError:
                await asyncio.sleep(backoff_s(failed, most_s=5))
        return await fetch()


async def _whole(chunks: AsyncIterator[bytes]) -> bytes:
    data = bytearray()
    async for chunk in chunks:
        data += chunk
        if len(data) > MOST_BYTES:
            raise CallRefused(ErrorCode.TOO_LARGE, "more bytes than were announced")
    return bytes(data)


def _with(said: Said, noted: Mapping[str, Any]) -> Inbound | None:
    """The request as it is worked, from what was fetched."""
    inbound = said.inbound
    files, spoken = list(noted["files"]), list(noted["spoken"])
    text = "\n".join(filter(None, [inbound.text, *spoken]))
    quoted = "\n\n".join(filter(None, [inbound.quoted or "", *noted["overheard"]]))
    if noted["missing"] and not (files or spoken or quoted):
        return None
    kind = InboundKind.FILE if files else InboundKind.VOICE if spoken else inbound.kind
    data: dict[str, Any] = {**inbound.data, **({"files": files} if files else {})}
    if said.late:
        data["late"] = True
    return replace(inbound, kind=kind, text=text, quoted=quoted or None, data=data)
