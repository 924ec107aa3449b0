"""Text out of files of any size: the lines that are asked for, and never more than asked for.

Lines are found by reading blocks, from the start or from the end, so the tail of a file of
gigabytes costs a few blocks. Bytes are the measure of every limit. Knows no paths.
"""

from __future__ import annotations

import codecs
import os

from executors._sdk.encodings import from_whole_character, guess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from executors._sdk.encodings import Encoding

BLOCK = 1 << 18
# How far past its budget a line is followed to tell how long it is.
FOLLOW = 1 << 26
# Lines are counted in files up to this size.
COUNTED = 1 << 24


class Span:
    """A piece of a file, in bytes. `end` is exact when `complete`, else only a lower bound of how
    long the piece is. `keep`: which end to keep when it is too long, "head" or "tail"."""

    __slots__ = ("complete", "end", "keep", "start")

    def __init__(self, start: int, end: int, *, keep: str = "head", complete: bool = True) -> None:
        self.start = start
        self.end = end
        self.keep = keep
        self.complete = complete


def whole(size: int, encoding: Encoding) -> Span:
    return Span(encoding.mark, size)


def head(fd: int, size: int, encoding: Encoding, lines: int, *, budget: int) -> Span:
    """The first `lines` lines, with their line ends."""
    end, left = _after_lines(fd, size, encoding, encoding.mark, lines, limit=budget + FOLLOW)
    return Span(encoding.mark, end, complete=left == 0 or end >= size)


def tail(fd: int, size: int, encoding: Encoding, lines: int, *, budget: int) -> Span:
    """The last `lines` lines, with their line ends; a line end at the very end starts no line."""
    unit = len(encoding.newline)
    floor = _aligned(max(encoding.mark, size - budget - FOLLOW), encoding)
    # The last line's own end is not the end of a line before it.
    at = size - unit if _ends_line(fd, size, encoding) else size
    wanted = lines
    while at > floor:
        start = max(floor, _aligned(at - BLOCK, encoding))
        block = os.pread(fd, at - start, start)
        if unit > 1 or block.count(b"\n") >= wanted:
            ends = list(_line_ends(block, encoding.newline))
            if len(ends) >= wanted:
                return Span(start + ends[-wanted], size, keep="tail")
            wanted -= len(ends)
        else:
            wanted -= block.count(b"\n")
        at = start
    return Span(floor, size, keep="tail", complete=floor == encoding.mark)


def lines_between(
    fd: int, size: int, encoding: Encoding, first: int, last: int | None, *, budget: int
) -> Span:
    """Lines `first` to `last`, both included and counted from 1; to the end without `last`.

    A start past the end gives an empty piece at the end.
    """
    start, left = _after_lines(fd, size, encoding, encoding.mark, first - 1)
    if left:
        return Span(size, size)
    if last is None:
        return Span(start, size)
    limit = budget + FOLLOW
    end, left = _after_lines(fd, size, encoding, start, last - first + 1, limit=limit)
    return Span(start, end, complete=left == 0 or end >= size)


def _after_lines(
    fd: int, size: int, encoding: Encoding, start: int, lines: int, *, limit: int | None = None
) -> tuple[int, int]:
    """Where `lines` lines from `start` end, and how many of them were not there.

    An unfinished last line counts. Gives up `limit` bytes after `start`.
    """
    at = start
    stop = size if limit is None else min(size, start + limit)
    left = lines
    began = start
    while left and at < stop:
        block = os.pread(fd, min(BLOCK, stop - at), at)
        if not block:
            break
        if len(encoding.newline) == 1 and (count := block.count(b"\n")) < left:
            left -= count
            if count:
                began = at + block.rfind(b"\n") + 1
        else:
            for end in _line_ends(block, encoding.newline):
                left -= 1
                began = at + end
                if left == 0:
                    return began, 0
        at += len(block)
    if left and at >= size and began < size:
        return size, left - 1
    return at, left


def _line_ends(block: bytes, newline: bytes) -> Iterator[int]:
    """The positions just after each line end of a block that starts at a whole unit."""
    unit = len(newline)
    at = block.find(newline)
    while at >= 0:
        if at % unit == 0:
            yield at + unit
            at = block.find(newline, at + unit)
        else:
            at = block.find(newline, at + 1)


def _aligned(at: int, encoding: Encoding) -> int:
    """The first position from `at` on where a unit starts."""
    return at + (encoding.mark - at) % len(encoding.newline)


def _ends_line(fd: int, size: int, encoding: Encoding) -> bool:
    unit = len(encoding.newline)
    return size >= encoding.mark + unit and os.pread(fd, unit, size - unit) == encoding.newline


def count_lines(fd: int, size: int, encoding: Encoding) -> int | None:
    """How many lines the file has, an unfinished last one too; None for a file over 16 MiB."""
    if size > COUNTED:
        return None
    count, at = 0, encoding.mark
    while block := os.pread(fd, BLOCK, at):
        if len(encoding.newline) == 1:
            count += block.count(b"\n")
        else:
            count += sum(1 for _ in _line_ends(block, encoding.newline))
        at += len(block)
    return count + (at > encoding.mark and not _ends_line(fd, at, encoding))


def read(fd: int, span: Span, encoding: Encoding, *, budget: int) -> tuple[str, int, Encoding]:
    """The text of a piece, at most `budget` bytes of it: text, bytes used, encoding it needed.

    What is too long is cut at a whole character, at the end that `span.keep` does not name. When
    the middle of a file is not what its ends promised, the encoding is guessed anew.
    """
    start, end = span.start, span.end
    if end - start > budget:
        unit = len(encoding.newline)
        budget -= budget % unit
        start, end = (end - budget, end) if span.keep == "tail" else (start, start + budget)
    data = _pread_all(fd, end - start, start)
    if start > span.start:
        data = from_whole_character(data, encoding.codec)
    cut = span.keep == "head" and (end < span.end or not span.complete)
    try:
        text, used = _decode(data, encoding.codec, "strict", cut=cut)
    except UnicodeDecodeError:
        if encoding.codec == "utf-8":
            encoding = guess(data)
        text, used = _decode(data, encoding.codec, "replace", cut=cut)
    return text, used, encoding


def _decode(data: bytes, codec: str, errors: str, *, cut: bool) -> tuple[str, int]:
    decoder = codecs.getincrementaldecoder(codec)(errors)
    text = decoder.decode(data, final=not cut)
    pending = decoder.getstate()[0]
    return text, len(data) - len(pending)


def _pread_all(fd: int, length: int, at: int) -> bytes:
    pieces = []
    while length > 0 and (piece := os.pread(fd, min(length, BLOCK * 4), at)):
        pieces.append(piece)
        at += len(piece)
        length -= len(piece)
    return b"".join(pieces)
