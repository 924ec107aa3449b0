"""The logs that outlive the database: one JSON line per turn segment, one per verdict.

`turns/YYYY-MM-DD.jsonl` and `policy/YYYY-MM.jsonl`, mode 0600. A line is one write, so a crash
can tear at most the last one, which readers skip.
"""

from __future__ import annotations

import errno
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from core.errors import ErrorCode, StoreError
from core.store import turns
from core.store.database import Database
from core.store.encoding import dump_json

# How far beside the ends of its segments the lines of a turn are looked for, and how near is near
# enough to begin reading.
_SLACK_S = 120.0
_NEAR = 64 * 1024
_ENDED = re.compile(rb'"ts_end":\s*(\d+(?:\.\d+)?)')


class TurnLog:
    """The folder of turn lines; `day` is the local date of the actor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = threading.Lock()

    def path_of(self, day: date) -> Path:
        return self._folder / f"{day.isoformat()}.jsonl"

    def append(self, line: Mapping[str, Any], *, day: date) -> None:
        """Add a line (written twice when called twice). Raises `StoreError`: disk full, rights."""
        with self._one_at_a_time:
            append_line(self.path_of(day), line)

    def rewrite(self, path: Path, change: Callable[[bytes], bytes]) -> bool:
        """Put what `change` makes of each line (with its line break, b"" drops it) in the place of
        a file; False when nothing is changed, and then nothing is written.

        The file is the old one or the new one, whole, at every moment, and lines that are added
        meanwhile are in both. Call it in a thread of the process that appends. Raises
        `StoreError`.
        """
        part = path.with_name(f"{path.name}.part")
        try:
            with path.open("rb") as file:
                before = file.readlines()
                if before and not before[-1].endswith(b"\n"):  # perhaps being written just now
                    file.seek(-len(before.pop()), os.SEEK_CUR)
                made = [change(line) for line in before]
                with self._one_at_a_time:
                    rest = file.readlines()
                    made += [change(line) for line in rest]
                    if made == before + rest:
                        return False
                    part.unlink(missing_ok=True)
                    _write_whole(part, made)
                    part.replace(path)
            _sync_folder(path.parent)
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise StoreError(f"{path.name} cannot be rewritten ({exc.strerror})") from exc
        return True

    def contains(self, turn_id: str, segment: int, day: date) -> bool:
        """Whether the line of this segment of a turn is in the file of that day."""
        wanted = turn_id.encode()
        return any(
            line.get("turn_id") == turn_id and line.get("segment", 1) == segment
            for line in read_lines(self.path_of(day), containing=wanted)
        )

    def lines_of(
        self, turn_id: str, day: date, *, since: datetime, until: datetime
    ) -> list[dict[str, Any]]:
        """The lines of a turn in the file of that day, in order; `since` and `until` say when its
        segments ended, so that only the part of the file around them is read. If nothing is there
        (a line that was written late), the whole file is."""
        wanted = turn_id.encode()
        path = self.path_of(day)
        begin = _place_of(path, since.timestamp() - _SLACK_S)
        last = until.timestamp() + _SLACK_S
        found = [
            line
            for line in read_lines(path, containing=wanted, begin=begin, last=last)
            if line.get("turn_id") == turn_id
        ]
        return found or [
            line for line in read_lines(path, containing=wanted) if line.get("turn_id") == turn_id
        ]

    def files(self) -> list[Path]:
        """The log files there are, oldest first."""
        return sorted(self._folder.glob("????-??-??.jsonl"))


class PolicyLog:
    """The folder of verdicts, a file a month (UTC). Lines name arguments, never their values."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, line: Mapping[str, Any], *, day: date | None = None) -> None:
        """Add a verdict; without a `day` its `ts` (seconds since the epoch) says the month."""
        month = day or datetime.fromtimestamp(float(line.get("ts", 0)), UTC).date()
        append_line(self._folder / f"{month:%Y-%m}.jsonl", line)


async def append_missing(database: Database, log: TurnLog) -> int:
    """Write the lines of ended turns that are not yet known to be in the log; how many.

    Run after each closing and at the start. A line that is there already, because the crash came
    between file and database, is only marked.
    """
    async with database.read() as tx:
        waiting = await turns.unlogged(tx)
    written = 0
    for turn in waiting:
        day = turn.log_day or turn.started_at.date()
        line = turn.log_line
        # Of the line itself: the turn may have gone on since, with its next segment.
        if not log.contains(turn.id, line.get("segment", turn.segment), day):
            log.append(line, day=day)
            written += 1
    if waiting:
        async with database.write() as tx:
            for turn in waiting:
                await turns.mark_logged(tx, turn.id)
    return written


def append_line(path: Path, line: Mapping[str, Any]) -> None:
    """Add one JSON line to a file of mode 0600, in one write. Raises `StoreError`."""
    data = dump_json(line).encode() + b"\n"
    try:
        fd = _open(path)
        try:
            size = os.fstat(fd).st_size
            if size and os.pread(fd, 1, size - 1) != b"\n":
                data = b"\n" + data  # a torn line stays alone
            written = os.write(fd, data)
            if written != len(data):
                if os.fstat(fd).st_size == size + written:
                    os.ftruncate(fd, size)
                raise OSError(errno.ENOSPC, "No space left on device")
        finally:
            os.close(fd)
    except OSError as exc:
        error = StoreError(f"{path.name} cannot be written ({exc.strerror})")
        error.code = ErrorCode.DISK_FULL if exc.errno == errno.ENOSPC else error.code
        raise error from exc


def read_lines(
    path: Path, *, containing: bytes = b"", begin: int = 0, last: float | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of a log file in order; a torn or foreign line is skipped, no file is no line.

    `containing` passes over lines without these bytes, unparsed. From the byte `begin` on, where a
    line begins; with `last` only to the first line of a segment that ended after that moment.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    except OSError as exc:
        raise StoreError(f"{path.name} cannot be read ({exc.strerror})") from exc
    with file:
        file.seek(begin)
        for raw in file:
            if last is not None and (_ended(raw) or 0) > last:
                return
            if not raw.endswith(b"\n") or containing not in raw:
                continue
            try:
                value = json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                yield value


def _write_whole(path: Path, lines: Iterable[bytes]) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _place_of(path: Path, moment: float) -> int:
    """Where in the file of a day to begin for segments that ended at `moment` or later: lines
    stand in the order of their ends. Reads a few lines, whatever the size."""
    try:
        with path.open("rb") as file:
            low, high = 0, os.fstat(file.fileno()).st_size
            while high - low > _NEAR:
                middle = (low + high) // 2
                file.seek(middle)
                file.readline()
                place = file.tell()
                ended = None if place >= high else _ended(file.readline())
                if ended is not None and ended < moment:
                    low = place
                else:
                    high = middle
            return low
    except OSError:
        return 0


def _ended(raw: bytes) -> float | None:
    """When the segment of a line ended, read without parsing it. Within a text of somebody's the
    quotes of such a name are escaped, so it is not taken for one."""
    found = _ENDED.search(raw)
    return None if found is None else float(found[1])


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, flags, 0o600)
