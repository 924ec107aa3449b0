"""Which file a message of Telegram brings, and what it would be called. Pure."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from telegram import Message, PhotoSize

FILE_KINDS = (
    "document",
    "photo",
    "video",
    "animation",
    "audio",
    "voice",
    "video_note",
    "sticker",
)
# What somebody says rather than sends.
SPOKEN = frozenset({"voice", "video_note"})

# Bots can fetch no more from Telegram's servers.
MOST_BYTES = 20 << 20

_TYPES = {
    "photo": "image/jpeg",
    "voice": "audio/ogg",
    "video": "video/mp4",
    "animation": "video/mp4",
    "video_note": "video/mp4",
    "audio": "audio/mpeg",
    "sticker": "image/webp",
}
_ENDINGS = {"audio/ogg": ".ogg", "image/jpeg": ".jpg", "audio/mpeg": ".mp3", "audio/mp4": ".m4a"}


@dataclass(frozen=True, slots=True)
class Media:
    """A file that can be fetched. `name` is the sender's word for it, "" when there is none;
    `size` in bytes as Telegram states it, None when it does not. `is_quoted`: it was forwarded, or
    stands in a message that is replied to."""

    kind: str
    file_id: str
    unique_id: str
    name: str
    media_type: str
    size: int | None = None
    is_quoted: bool = False

    @property
    def is_spoken(self) -> bool:
        return self.kind in SPOKEN

    @property
    def is_too_big(self) -> bool:
        return self.size is not None and self.size > MOST_BYTES

    @property
    def ending(self) -> str:
        """What a file of this type ends with, dot included; "" when nobody knows."""
        return _ENDINGS.get(self.media_type) or mimetypes.guess_extension(self.media_type) or ""


def has_file(message: Mapping[str, Any]) -> bool:
    """Whether a message as Telegram wrote it brings a file."""
    return any(kind in message for kind in FILE_KINDS)


def media_of(message: Message) -> Media | None:
    """The file of a message. Of a photo's sizes the largest."""
    # An animation stands there as a document too.
    for kind in ("animation", *FILE_KINDS):
        found: Any = getattr(message, kind, None)
        if not found:
            continue
        if kind == "photo":
            found = max(found, key=_area)
        media_type = getattr(found, "mime_type", None) or _TYPES.get(kind, "")
        if kind == "sticker" and (found.is_animated or found.is_video):
            media_type = "video/webm" if found.is_video else "application/x-tgsticker"
        return Media(
            kind=kind,
            file_id=found.file_id,
            unique_id=found.file_unique_id,
            name=str(getattr(found, "file_name", None) or ""),
            media_type=str(media_type or "application/octet-stream"),
            size=found.file_size,
        )
    return None


def _area(size: PhotoSize) -> int:
    return size.width * size.height
