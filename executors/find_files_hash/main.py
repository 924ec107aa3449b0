"""Files with equal content, whatever they are called: beneath a folder, or across several."""

from __future__ import annotations

import os
import time

from executors._sdk.digest import digest_of
from executors._sdk.files import moment, opened
from executors._sdk.globs import Patterns
from executors._sdk.result import Failure, done, item
from executors._sdk.walking import Found, Walk, searched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.files import Place

MAX_RESULTS = 5000
# Well inside the manifest's timeout: what was compared by then is better than nothing.
TIME_BUDGET_S = 240.0
PROGRESS_EVERY = 500
# Files that differ nearly always differ here.
_START = 1 << 16


def run(call: Call) -> dict[str, Any]:
    """One entry per copy: its `path`, and `same_as`, the file that it equals byte for byte.

    Of files with one content the oldest counts as the original and is no entry, so that what is
    done to all entries leaves one of each. With `other_paths` copies are only what lies in these
    and equals a file of `base_path`. Empty files, links and the trash are passed over.
    """
    clock = _Clock(call)
    bases = searched(call, call.args.get("base_path"))
    others = [searched(call, path)[0] for path in call.args.get("other_paths") or ()]
    _check_apart(bases, others)
    patterns = Patterns(call.args.get("patterns") or ())
    files = _Files(call, patterns, clock)
    files.collect(bases, side=0, shared=len(bases) > 1)
    files.collect(others, side=1, shared=False)
    groups = list(_equal(files.candidates(across=bool(others)), files, clock))
    wanted = call.args.get("different_names") is True
    entries: list[dict[str, Any]] = []
    for group in groups:
        entries += _copies(group, across=bool(others), different_names=wanted)
    entries.sort(key=lambda entry: entry["path"])
    most = min(call.args.get("max_results") or 1000, MAX_RESULTS)
    metadata: dict[str, Any] = {
        "used": min(len(entries), most),
        "available": len(entries),
        "truncated": len(entries) > most or clock.over,
        "groups": len({entry["same_as"] for entry in entries}),
        "total_bytes": sum(entry["size"] for entry in entries),
        "compared": files.count,
    }
    if files.closed:
        metadata["unreadable"] = files.closed
    if clock.over:
        metadata["incomplete"] = True
    return done(entries[:most], **metadata)


def _check_apart(bases: list[Place], others: list[Place]) -> None:
    """A folder compared with itself, or with one inside it, would find every file equal."""
    for base in bases:
        for other in others:
            if base.holds(other) or other.holds(base):
                raise Failure(
                    "invalid_args", "the folders to be compared lie in each other", path=other.path
                )


class _Clock:
    def __init__(self, call: Call) -> None:
        self._call = call
        self._until = time.monotonic() + TIME_BUDGET_S
        self.over = False

    def tick(self, done: int, total: int | None = None) -> bool:
        """Tell how far it is; whether there is time left."""
        self._call.progress(done, total)
        self.over = self.over or time.monotonic() > self._until
        return not self.over


class _Files:
    """The files of the folders, by size. `closed` counts what could not be looked into."""

    def __init__(self, call: Call, patterns: Patterns, clock: _Clock) -> None:
        self._call = call
        self._patterns = patterns
        self._clock = clock
        self._by_size: dict[int, list[tuple[int, Found]]] = {}
        self._known: set[tuple[int, int]] = set()
        self.count = 0
        self.closed = 0

    def collect(self, bases: list[Place], *, side: int, shared: bool) -> None:
        seen = 0
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
                seen += 1
                if seen % PROGRESS_EVERY == 0 and not self._clock.tick(self.count):
                    return
                if found.kind != "file" or not found.info.st_size:
                    continue
                if found.place.name.startswith(".") and not hidden:
                    continue
                if not self._patterns.match(found.place.parts[len(base.parts) :]):
                    continue
                identity = (found.info.st_dev, found.info.st_ino)
                if identity not in self._known:  # another name of a file is no copy of it
                    self._known.add(identity)
                    self.count += 1
                    self._by_size.setdefault(found.info.st_size, []).append((side, found))
            self.closed += walk.closed

    def candidates(self, *, across: bool) -> list[list[tuple[int, Found]]]:
        """Files that may be equal: several of one size, on both sides when two are compared."""
        return [
            same
            for same in self._by_size.values()
            if len(same) > 1 and (not across or len({side for side, _ in same}) == 2)
        ]


def _equal(
    candidates: list[list[tuple[int, Found]]], files: _Files, clock: _Clock
) -> Iterator[list[tuple[int, Found, str]]]:
    """Groups of files with one content and its SHA-256. First the beginnings are compared, then
    everything."""
    total = sum(map(len, candidates))
    done = 0
    for same in candidates:
        starts: dict[bytes, list[tuple[int, Found]]] = {}
        for side, found in same:
            start = _start_of(found, files)
            if start is not None:
                starts.setdefault(start, []).append((side, found))
        for alike in starts.values():
            if len(alike) < 2:
                continue
            whole: dict[str, list[tuple[int, Found, str]]] = {}
            for side, found in alike:
                digest = _digest_of(found, files)
                if digest is not None:
                    whole.setdefault(digest, []).append((side, found, digest))
                if clock.over:
                    return
            yield from (group for group in whole.values() if len(group) > 1)
        done += len(same)
        if not clock.tick(done, total):
            return


def _start_of(found: Found, files: _Files) -> bytes | None:
    try:
        with opened(found.place) as (fd, _):
            return os.pread(fd, _START, 0)
    except (OSError, Failure):
        files.closed += 1
        return None


def _digest_of(found: Found, files: _Files) -> str | None:
    try:
        with opened(found.place) as (fd, _):
            return digest_of(fd)
    except (OSError, Failure):
        files.closed += 1
        return None


def _copies(
    group: list[tuple[int, Found, str]], *, across: bool, different_names: bool
) -> list[dict[str, Any]]:
    ordered = sorted(group, key=lambda one: (one[1].info.st_mtime, one[1].place.path))
    if across:
        originals = [found for side, found, _ in ordered if side == 0]
        copies = [found for side, found, _ in ordered if side == 1]
    else:
        originals, copies = [ordered[0][1]], [found for _, found, _ in ordered[1:]]
    entries = []
    for copy in copies:
        match = next(
            (o for o in originals if not different_names or o.place.name != copy.place.name), None
        )
        if match is not None:
            entries.append(_entry(copy, match, group[0][2]))
    return entries


def _entry(copy: Found, original: Found, digest: str) -> dict[str, Any]:
    return item(
        path=copy.place.path,
        name=copy.place.name,
        same_as=original.place.path,
        same_name=copy.place.name == original.place.name,
        size=copy.info.st_size,
        modified=moment(copy.info.st_mtime),
        sha256=digest,
    )
