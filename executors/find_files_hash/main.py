"""Files with equal content, whatever they are called: beneath a folder, or across several."""

from __future__ import annotations

import os
from hashlib import blake2b

from executors._sdk.digest import digest_of
from executors._sdk.files import moment, opened
from executors._sdk.globs import Patterns
from executors._sdk.result import Failure, done, item
from executors._sdk.walking import Found, Pace, Walk, searched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.files import Place

MAX_RESULTS = 5000
# Well inside the manifest's timeout: what was compared by then is better than nothing.
TIME_BUDGET_S = 240.0
# Files that differ nearly always differ here.
_START = 1 << 16


def run(call: Call) -> dict[str, Any]:
    """One entry per copy: its `path`, and `same_as`, the file that it equals byte for byte.

    Of files with one content the oldest counts as the original and is no entry, so that what is
    done to all entries leaves one of each. With `other_paths` copies are only what lies in these
    and equals a file of `base_path`. Empty files, links and the trash are passed over.
    """
    pace = Pace(call, budget_s=TIME_BUDGET_S)
    bases = searched(call, call.args.get("base_path"))
    others = [searched(call, path)[0] for path in call.args.get("other_paths") or ()]
    _check_apart(bases, others)
    patterns = Patterns(call.args.get("patterns") or ())
    files = _Files(call, patterns, pace)
    files.collect(bases, side=0, shared=len(bases) > 1)
    files.collect(others, side=1, shared=False)
    groups = _equal(files.candidates(across=bool(others)), files, pace)
    wanted = call.args.get("different_names") is True
    copies: list[tuple[_File, _File, str]] = []
    for digest, group in groups:
        pairs = _copies(group, across=bool(others), different_names=wanted)
        copies += [(copy, original, digest) for copy, original in pairs]
    copies.sort(key=lambda one: one[0].place.path)
    most = min(call.args.get("max_results") or 1000, MAX_RESULTS)
    metadata: dict[str, Any] = {
        "used": min(len(copies), most),
        "available": len(copies),
        "truncated": len(copies) > most or pace.over,
        "groups": len({original.identity for _, original, _ in copies}),
        "total_bytes": sum(copy.size for copy, _, _ in copies),
        "compared": files.count,
    }
    if files.closed:
        metadata["unreadable"] = files.closed
    if pace.over:
        metadata["incomplete"] = True
    return done([_entry(*one) for one in copies[:most]], **metadata)


def _check_apart(bases: list[Place], others: list[Place]) -> None:
    """A folder compared with itself, or with one inside it, would find every file equal."""
    for base in bases:
        for other in others:
            if base.holds(other) or other.holds(base):
                raise Failure(
                    "invalid_args", "the folders to be compared lie in each other", path=other.path
                )


class _File:
    """What is kept of a file while others are looked at: of hundreds of thousands, little."""

    __slots__ = ("identity", "modified", "place", "side", "size")

    def __init__(self, side: int, found: Found) -> None:
        self.side = side
        self.place = found.place
        self.size = found.info.st_size
        self.modified = found.info.st_mtime
        self.identity = (found.info.st_dev, found.info.st_ino)


class _Files:
    """The files of the folders, by size. `closed` counts what could not be looked into."""

    def __init__(self, call: Call, patterns: Patterns, pace: Pace) -> None:
        self._call = call
        self._patterns = patterns
        self._pace = pace
        self._by_size: dict[int, list[_File]] = {}
        self.count = 0
        self.closed = 0

    def collect(self, bases: list[Place], *, side: int, shared: bool) -> None:
        for base in bases:
            hidden = any(part.startswith(".") for part in base.parts)
            walk = Walk(
                base,
                skip=self._call.trash_name,
                hidden=hidden,
                may_be_closed=shared,
                call=self._call,
            )
            for found in walk:
                if not self._pace.step(self.count):
                    return
                if found.kind != "file" or not found.info.st_size:
                    continue
                if found.place.name.startswith(".") and not hidden:
                    continue
                if not self._patterns.match(found.place.parts[len(base.parts) :]):
                    continue
                self.count += 1
                self._by_size.setdefault(found.info.st_size, []).append(_File(side, found))
            self.closed += walk.closed

    def candidates(self, *, across: bool) -> list[list[_File]]:
        """Files that may be equal: several of one size, on both sides when two are compared."""
        for size, same in self._by_size.items():
            if len(same) > 1:  # another name of a file is no copy of it
                once = {one.identity: one for one in reversed(same)}
                self.count -= len(same) - len(once)
                self._by_size[size] = list(reversed(once.values()))
        return [
            same
            for same in self._by_size.values()
            if len(same) > 1 and (not across or len({one.side for one in same}) == 2)
        ]


def _equal(
    candidates: list[list[_File]], files: _Files, pace: Pace
) -> Iterator[tuple[str, list[_File]]]:
    """Groups of files with one content, and its SHA-256. Of large files the beginnings are
    compared first."""
    total = sum(map(len, candidates))
    done = 0
    for same in candidates:
        through = done + len(same)
        starts: dict[bytes, list[_File]] = {}
        if same[0].size <= _START:
            starts[b""] = same
        else:
            for one in same:
                start = _start_of(one, files)
                if start is not None:
                    starts.setdefault(start, []).append(one)
                if not pace.step(done, total):
                    return
        for alike in starts.values():
            if len(alike) < 2:
                continue
            whole: dict[str, list[_File]] = {}
            for one in alike:
                digest = _digest_of(one, files)
                if digest is not None:
                    whole.setdefault(digest, []).append(one)
                done += 1
                if not pace.tell(done, total):
                    return
            yield from ((digest, group) for digest, group in whole.items() if len(group) > 1)
        done = through
        if not pace.tell(done, total):
            return


def _start_of(one: _File, files: _Files) -> bytes | None:
    """What the file begins with, in short: of many files of one size the starts fill memory."""
    try:
        with opened(one.place) as (fd, _):
            return blake2b(os.pread(fd, _START, 0), digest_size=16).digest()
    except (OSError, Failure):
        files.closed += 1
        return None


def _digest_of(one: _File, files: _Files) -> str | None:
    try:
        with opened(one.place) as (fd, _):
            return digest_of(fd)
    except (OSError, Failure):
        files.closed += 1
        return None


def _copies(
    group: list[_File], *, across: bool, different_names: bool
) -> list[tuple[_File, _File]]:
    """Each copy with the file that it equals."""
    ordered = sorted(group, key=lambda one: (one.modified, one.place.path))
    if across:
        originals = [one for one in ordered if one.side == 0]
        copies = [one for one in ordered if one.side == 1]
    else:
        originals, copies = ordered[:1], ordered[1:]
    pairs = []
    for copy in copies:
        match = next(
            (o for o in originals if not different_names or o.place.name != copy.place.name), None
        )
        if match is not None:
            pairs.append((copy, match))
    return pairs


def _entry(copy: _File, original: _File, digest: str) -> dict[str, Any]:
    return item(
        path=copy.place.path,
        name=copy.place.name,
        same_as=original.place.path,
        same_name=copy.place.name == original.place.name,
        size=copy.size,
        modified=moment(copy.modified),
        sha256=digest,
    )
