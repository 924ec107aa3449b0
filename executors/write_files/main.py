"""Write files: text as given, or bytes as an earlier step brought them, whole or not at all.

What a write replaces is kept in the trash of the turn, so every write can be undone: an
overwritten or extended file from there, a new one by taking it away.

The manifest says `checkable`, not `idempotent`: appending twice is not appending once, and
`create` fails the second time. Whether a write happened can always be told from the SHA-256 that
the preview promised.
"""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from functools import partial

from executors._sdk.files import Place, locate, look, opened, shown, state_of
from executors._sdk.payload import Job, jobs_of
from executors._sdk.result import Failure, done, failed_item, from_exception, item
from executors._sdk.trash import drop_copy, keep_copy, own_copy, trash_place
from executors._sdk.writing import (
    Seen,
    check_writable,
    chunks_of,
    make_folders,
    missing_folders,
    retried,
    sha256_of,
    write_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from executors._sdk.call import Call

# Files up to this size are summed in a preview, to tell afterwards whether the write happened.
MAX_SUMMED = 64 << 20


def run(call: Call) -> dict[str, Any]:
    """One entry per file: `path`, `bytes` it has now, `created`, `mode`, `kept` (the old one)."""
    entries = []
    jobs = jobs_of(call)
    for number, job in enumerate(jobs, 1):
        try:
            if job.mode == "append":  # to what somebody else has added meanwhile, too
                entries.append(retried(partial(_write, call, job)))
            else:
                entries.append(_write(call, job))
        except (OSError, Failure) as exc:
            entries.append(_failed(job, exc))
        if len(jobs) > 1:
            call.progress(number, len(jobs))
    return done(entries, bytes=sum(entry.get("bytes", 0) for entry in entries))


def preview(call: Call) -> dict[str, Any]:
    """What `run` would leave, without leaving anything. Raises `Failure` when nothing would work.

    `before` and `after` describe every target in turn, with size and SHA-256 (None over 64 MiB);
    `refused` names the items that would not work.
    """
    before, after, undo, refused = [], [], [], []
    total = 0
    for job in jobs_of(call):
        try:
            old, new, size = _foresee(call, job)
        except (OSError, Failure) as exc:
            refused.append(_failed(job, exc))
            continue
        before.append(old)
        after.append(new)
        total += size
        undo.append(
            {"do": "restore", "from": new["kept"], "to": new["path"]}
            if old["exists"]
            else {"do": "remove", "path": new["path"]}
        )
    if refused and not after:
        error = refused[0]["error"]
        raise Failure(error["code"], error["detail"], path=refused[0]["path"])
    return {
        "targets": [one["path"] for one in after],
        "before": before,
        "after": after,
        "bytes": total,
        "count": len(after),
        "undo": undo,
        "refused": refused,
    }


def _foresee(call: Call, job: Job) -> tuple[dict[str, Any], dict[str, Any], int]:
    place = locate(call, job.path)
    info = look(place)
    _check(call, job, info)
    if info is None:
        missing_folders(place.parent)
        data = job.data()
        after = {"size": len(data), "sha256": sha256_of([data])}
        return state_of(place, None), {"path": place.path, "exists": True, **after}, len(data)
    with opened(place, links=_links(call, place, info)) as (fd, _):
        summed = info.st_size <= MAX_SUMMED
        old = sha256_of(chunks_of(fd)) if summed else None
        if job.mode == "append":
            data = job.data(after=fd, size=info.st_size)
            size = info.st_size + len(data)
            new = sha256_of(_joined(fd, data)) if summed else None
        else:
            data = job.data()
            size, new = len(data), sha256_of([data])
    after = {"size": size, "sha256": new, "kept": trash_place(call, place).path}
    return (
        state_of(place, info, sha256=old),
        {"path": place.path, "exists": True, **after},
        len(data),
    )


def _check(call: Call, job: Job, info: os.stat_result | None) -> None:
    place = locate(call, job.path)
    if job.repeated:
        raise Failure("already_exists", "another item is written there already")
    if info is not None and job.mode == "create":
        raise Failure("already_exists", "the file is there already and mode is create")
    if info is not None and job.why_only_new is not None:
        raise Failure(*job.why_only_new)
    check_writable(place, info, links=_links(call, place, info))


def _links(call: Call, place: Place, info: os.stat_result | None) -> int:
    """How many names a file may have: one more when an interrupted write of this turn kept it."""
    return 2 if own_copy(call, place, info) else 1


def _write(call: Call, job: Job) -> dict[str, Any]:
    place = locate(call, job.path)
    info = look(place)
    _check(call, job, info)
    if info is None:
        # All that can fail without a trace fails before folders are made.
        data = job.data()
        make_folders(place.parent)
        umask = os.umask(0)
        os.umask(umask)
        # The name is taken exclusively, so a file that appears meanwhile survives.
        replace = job.mode == "overwrite"
        size = write_file(place, [data], mode=0o666 & ~umask, replace=replace)
        return _written(job, place.path, size, created=True)
    with ExitStack() as stack:
        fd, now = stack.enter_context(opened(place, links=_links(call, place, info)))
        chunks: Iterable[bytes]
        since = None
        if job.mode == "append":
            chunks, since = _joined(fd, job.data(after=fd, size=now.st_size)), Seen(now)
        else:
            chunks = [job.data()]
        kept: list[Place] = []
        try:
            bits = stat.S_IMODE(now.st_mode) & 0o777
            size = write_file(
                place, chunks, mode=bits, replace=True, since=since,
                keep=lambda: kept.append(keep_copy(call, place)),
            )  # fmt: skip
        except BaseException:
            for copy in kept:
                drop_copy(place, copy, now)
            raise
    return _written(job, place.path, size, created=False, kept=kept[0].path)


def _written(job: Job, path: str, size: int, *, created: bool, **more: Any) -> dict[str, Any]:
    entry = item(path=path, bytes=size, created=created, mode=job.mode, **more)
    if job.partial:
        entry["partial"] = size
    return entry


def _joined(fd: int, data: bytes) -> Iterator[bytes]:
    yield from chunks_of(fd)
    yield data


def _failed(job: Job, exc: OSError | Failure) -> dict[str, Any]:
    failed = from_exception(exc)
    code, detail = (failed.code, failed.detail) if failed else ("write_failed", "")
    # An unknown complaint of the disk is about writing here.
    return failed_item(
        "write_failed" if code == "internal" else code, detail, path=shown(job.path)
    )
