"""Which encoding a file is written in, or that it is no text at all."""

from __future__ import annotations

import codecs
import os

from executors._sdk.result import Failure

SAMPLE = 1 << 16

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Formats that may pass for text at first sight, or whose name is a better answer than "no text".
_MAGIC = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP"),
    (b"\x1f\x8b", "GZIP"),
    (b"\x89PNG", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"RIFF", "RIFF"),
    (b"7z\xbc\xaf", "7Z"),
    (b"Rar!", "RAR"),
    (b"BZh", "BZIP2"),
    (b"\xfd7zXZ", "XZ"),
    (b"\x7fELF", "ELF"),
    (b"OggS", "OGG"),
    (b"ID3", "MP3"),
    (b"SQLite format 3\0", "SQLite"),
    (b"\xd0\xcf\x11\xe0", "Office"),
)
_WESTERN = frozenset("àáâãäåæçèéêëìíîïñòóôõöøùúûüýßœšžÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝŒŠŽ")
_PUNCTUATION = frozenset("€‘’“”–—…«»°·•©®™§£¢¡¿ªº±²³´µ×½¼¾†\xa0\xad")
_CONTINUATION = bytes(range(0x80, 0xC0))
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))


class Encoding:
    """How the bytes of a file are text: codec, length of the mark at the start, unit of a line
    end. `name` is what people and models are told."""

    __slots__ = ("codec", "mark", "name", "newline")

    def __init__(self, codec: str, *, mark: int = 0, name: str = "") -> None:
        self.codec = codec
        self.mark = mark
        self.name = name or codec
        self.newline = "\n".encode(codec)


def detect(fd: int, size: int) -> Encoding:
    """The encoding of an open file, from its mark, else UTF-8 when it is that, else a guess.

    Looks at the first and last 64 KiB. Raises `Failure` not_text for what is no text, with
    `params["kind"]` when the format is known.
    """
    head = os.pread(fd, SAMPLE, 0)
    if (known := marked(head)) is not None:
        return known
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            raise Failure("not_text", f"this is a {kind} file, not text", kind=kind)
    tail = os.pread(fd, SAMPLE, max(len(head), size - SAMPLE)) if size > len(head) else b""
    for piece in (head, tail):
        controls = len(piece) - len(piece.translate(None, _CONTROLS))
        if b"\0" in piece or controls * 10 > len(piece):
            raise Failure("not_text", "this file holds no text")
    if _is_utf8(head, whole=not tail) and _is_utf8(
        from_whole_character(tail, "utf-8"), whole=True
    ):
        return Encoding("utf-8")
    return guess(tail if _is_utf8(head, whole=not tail) else head)


def lossless(data: bytes) -> str:
    """All of a text that is to be written again: UTF-8, else as old Western machines wrote. No
    letter is given up, which `replace` would do for good."""
    known = marked(data)
    for codec, at in ((known.codec, known.mark) if known else ("utf-8", 0), ("cp1252", 0)):
        try:
            return data[at:].decode(codec)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def marked(head: bytes) -> Encoding | None:
    """The encoding that the mark at the start of a file names, if there is one."""
    for mark, codec in _BOMS:
        if head.startswith(mark):
            return Encoding(codec, mark=len(mark))
    return None


def _is_utf8(piece: bytes, *, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(piece, final=whole)
    except UnicodeDecodeError:
        return False
    return True


def guess(piece: bytes) -> Encoding:
    """The likely encoding of text that is not UTF-8.

    Western European first: statistics need more than the few accents of a short Italian note.
    """
    try:
        foreign = {char for char in piece.decode("cp1252") if char > "\x7f"}
    except UnicodeDecodeError:
        foreign = {"?"}
    if foreign <= _WESTERN | _PUNCTUATION:
        latin = not any(0x80 <= byte <= 0x9F for byte in piece)
        return Encoding("cp1252", name="iso-8859-1" if latin else "windows-1252")
    from charset_normalizer import from_bytes

    first = next((at for at, byte in enumerate(piece) if byte > 0x7F), 0)
    best = from_bytes(piece[max(0, first - 2048) : first + 8192]).best()
    # What is left of the UTF-16 family has no mark and no zero byte: a misreading.
    if best is None or best.encoding.startswith(("utf_16", "utf_32", "utf_7")):
        raise Failure("not_text", "this file holds no text in a known encoding")
    return Encoding(best.encoding, name=best.encoding.replace("_", "-"))


def from_whole_character(data: bytes, codec: str) -> bytes:
    """Bytes cut out of a text, without the rest of a character that began before them."""
    if codec == "utf-8":
        return data[:3].lstrip(_CONTINUATION) + data[3:]
    if codec.startswith("utf-16") and len(data) >= 2:
        high = data[1] if codec.endswith("le") else data[0]
        return data[2:] if 0xDC <= high <= 0xDF else data
    return data
