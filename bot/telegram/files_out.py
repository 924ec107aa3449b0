"""Files that go out: what a reply holds too much of, and what a person asked for.

One send is one request: a document, a small picture, or an album of either. What cannot be sent
is said in words in its place, so that nothing that was promised is silently missing.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from telegram import Bot, InputFile, InputMediaDocument, InputMediaPhoto, LinkPreviewOptions
from telegram.error import TelegramError

from bot.cli.lines import short_path, visible
from bot.telegram.faults import FaultKind, classify
from bot.telegram.formatting import Document
from bot.telegram.keyboards import Markup
from bot.telegram.parts import clean
from core.i18n import Texts
from core.messages import Attachment, ChatAddress

log = logging.getLogger(__name__)

# Of one file, and of all files of one request.
MAX_BYTES = 50 * 2**20
_SAID_BYTES = 50_000_000
# A picture is made smaller by Telegram: good to look at, bad for what is to be read closely.
MAX_PHOTO_BYTES = 2 * 2**20
MAX_ALBUM = 10
_PHOTOS = frozenset({"image/jpeg", "image/png", "image/webp"})
# Telegram answers when it has the whole file.
_READ_TIMEOUT_S = 120.0

File = Document | Attachment


def parcels(files: Sequence[Attachment]) -> list[list[File]]:
    """The files as they go out together: albums of pictures, albums of documents, single ones.

    Decided by what is noted of each, so that a send goes on at the parcel where it stopped.
    """
    found: list[list[File]] = []
    for photo in (True, False):
        held, size = list[File](), 0
        for file in (f for f in files if is_photo(f) is photo):
            if held and (len(held) == MAX_ALBUM or size + file.size > MAX_BYTES):
                found.append(held)
                held, size = [], 0
            held, size = [*held, file], size + file.size
        if held:
            found.append(held)
    return found


def is_photo(file: File) -> bool:
    """Whether the file is shown as a picture."""
    return (
        isinstance(file, Attachment)
        and file.media_type in _PHOTOS
        and 0 < file.size <= MAX_PHOTO_BYTES
    )


class FilesOut:
    """Sends files of one bot."""

    def __init__(self, bot: Bot, texts: Texts) -> None:
        self._bot, self._texts = bot, texts

    async def send(
        self,
        address: ChatAddress,
        files: Sequence[File],
        lang: str,
        keyboard: Markup | None = None,
        *,
        note: str = "",
    ) -> int:
        """Send one parcel; the id of its last message. `note` stands under the first file.

        What is gone, changed, too big or refused is said in words; raises `TelegramError` for all
        that may pass or that nobody knows.
        """
        problems, message_id = list[str](), 0
        with ExitStack() as held:
            ready: list[tuple[File, InputFile]] = []
            for file in files:
                try:
                    ready.append((file, _input_file(file, held)))
                except _Unsendable as exc:
                    problems.append(self._problem(file, exc.key, lang))
            try:
                message_id = await self._send(address, ready, keyboard, note)
            except TelegramError as exc:
                if classify(exc).kind is not FaultKind.REFUSED:
                    raise
                log.warning("files refused", extra={"detail": exc.message[:200]})
                again = [file for file, _ in ready]
                message_id, keys = await self._one_by_one(address, again, keyboard, note)
                problems += [self._problem(file, key, lang) for file, key in keys]
        if problems:
            message_id = await self._say(address, "\n".join(problems), keyboard)
        return message_id

    async def _one_by_one(
        self, address: ChatAddress, files: Sequence[File], keyboard: Markup | None, note: str
    ) -> tuple[int, list[tuple[File, str]]]:
        """Each file as a document of its own; the last message, and what is refused even so."""
        message_id, refused = 0, list[tuple[File, str]]()
        for file in files:
            try:
                with ExitStack() as held:
                    alone = [(file, _input_file(file, held))]
                    message_id = await self._send(address, alone, keyboard, note, plain=True)
            except _Unsendable as exc:
                refused.append((file, exc.key))
            except TelegramError as exc:
                if classify(exc).kind is not FaultKind.REFUSED:
                    raise
                refused.append((file, "refused"))
        return message_id, refused

    async def _send(
        self,
        address: ChatAddress,
        files: Sequence[tuple[File, InputFile]],
        keyboard: Markup | None,
        note: str,
        *,
        plain: bool = False,
    ) -> int:
        """One request; 0 when there is no file. `plain`: a picture goes as a document."""
        if not files:
            return 0
        chat_id, photo = int(address.chat_id), is_photo(files[0][0]) and not plain
        where: dict[str, Any] = {
            "message_thread_id": None if address.thread_id is None else int(address.thread_id),
            "read_timeout": _READ_TIMEOUT_S,
        }
        caption = note or None
        if len(files) > 1:
            kind = InputMediaPhoto if photo else InputMediaDocument
            media = [
                kind(data, caption=caption if n == 0 else None)
                for n, (_, data) in enumerate(files)
            ]
            sent = await self._bot.send_media_group(chat_id, media, **where)
            return sent[-1].message_id
        _, data = files[0]
        where |= {"caption": caption, "reply_markup": keyboard}
        if photo:
            return (await self._bot.send_photo(chat_id, data, **where)).message_id
        return (await self._bot.send_document(chat_id, data, **where)).message_id

    async def _say(self, address: ChatAddress, text: str, keyboard: Markup | None) -> int:
        message = await self._bot.send_message(
            int(address.chat_id),
            text,
            message_thread_id=None if address.thread_id is None else int(address.thread_id),
            link_preview_options=LinkPreviewOptions(is_disabled=True),
            reply_markup=keyboard,
        )
        return message.message_id

    def _problem(self, file: File, key: str, lang: str) -> str:
        size, path = (file.size, file.path) if isinstance(file, Attachment) else (0, file.name)
        return self._texts.say(
            f"telegram.file.{key}",
            lang,
            name=_name(file),
            size=self._texts.bytes(size, lang),
            most=self._texts.bytes(_SAID_BYTES, lang),
            path=short_path(visible(path)),
        )


class _Unsendable(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _input_file(file: File, held: ExitStack) -> InputFile:
    """The file as it is sent, opened until `held` ends. Raises `_Unsendable`."""
    if isinstance(file, Document):
        return InputFile(file.data, filename=_name(file), attach=True)
    if file.size > MAX_BYTES:
        raise _Unsendable("too_big")
    data = held.enter_context(_opened(file.path))
    size = os.fstat(data.fileno()).st_size
    if size > MAX_BYTES:
        raise _Unsendable("too_big")
    if size == 0:
        raise _Unsendable("empty")
    return InputFile(data, filename=_name(file), attach=True, read_file_handle=False)


def _opened(path: str) -> IO[bytes]:
    """A regular file under its own and only name, as it was when it was decided on: a link that
    stands there now, or on the way, is not followed. Raises `_Unsendable`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as exc:
        raise _Unsendable("gone") from exc
    with ExitStack() as closing:
        closing.callback(os.close, handle)
        about = os.fstat(handle)
        # Where the handle really leads, whatever the folders on the way have become.
        led = str(Path(f"/proc/self/fd/{handle}").readlink())
        if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1 or led != path:
            raise _Unsendable("gone")
        closing.pop_all()
    return os.fdopen(handle, "rb")


def _name(file: File) -> str:
    """The name without what would end a header's line or hide the name's true ending."""
    return clean(file.name).replace("\n", " ").replace('"', "'")[:200] or "file"
