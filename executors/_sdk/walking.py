"""Going through folders: what stands beneath one, without following links."""

from __future__ import annotations

import os
import stat
import time

from executors._sdk.files import (
    TEMPORARY,
    Place,
    closed_in,
    folder,
    kind_of,
    locate,
    look,
    tops,
)
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from executors._sdk.call import Call

MAX_DEPTH = 200
# Well inside the timeout of the programs that walk: what was seen by then is better than nothing.
TIME_BUDGET_S = 20.0
_LOOK_UP_EVERY = 500


class Pace:
    """How far a long walk is, told to the person, and when its time is up."""

    def __init__(self, call: Call, *, budget_s: float = TIME_BUDGET_S) -> None:
        self._call = call
        self._until = time.monotonic() + budget_s
        self._steps = 0
        self.over = False

    def step(self, done: int, total: int | None = None) -> bool:
        """One thing more was looked at, and `done` is how far it is; whether time is left."""
        self._steps += 1
        return self._steps % _LOOK_UP_EVERY != 0 or self.tell(done, total)

    def tell(self, done: int, total: int | None = None) -> bool:
        """Tell how far it is now; whether there is time left."""
        self._call.progress(done, total)
        self.over = self.over or time.monotonic() > self._until
        return not self.over


class Found:
    """Something a walk came across; `info` is of the thing itself, a link as a link.

    `kind`: file, dir, link or other.
    """

    __slots__ = ("info", "kind", "place")

    def __init__(self, place: Place, info: os.stat_result) -> None:
        self.place = place
        self.info = info
        self.kind = kind_of(info)


class Walk:
    """What is beneath a folder: each folder's files by name, then its folders.

    Links are shown, never followed. One descriptor is open at a time, so depth and number do not
    matter. `skip`: name of the trash, passed over together with unfinished files; "" passes over
    nothing. `call`: passes over the places that are closed for it. `hidden`: whether to go into
    folders whose name starts with a dot. `names`: "text" leaves out names that are no text, "all"
    keeps them.

    After the walk `closed` counts the folders that could not be entered and `unnamed` the names
    left out. Raises `OSError` or `Failure` for the first folder only, unless it `may_be_closed`.
    """

    def __init__(
        self,
        top: Place,
        *,
        skip: str,
        deep: bool = True,
        hidden: bool = True,
        names: str = "text",
        may_be_closed: bool = False,
        call: Call | None = None,
    ) -> None:
        self.top = top
        self.call = call
        self.skip = skip
        self.deep = deep
        self.hidden = hidden
        self.names = names
        self.may_be_closed = may_be_closed
        self.closed = 0
        self.unnamed = 0

    def __iter__(self) -> Iterator[Found]:
        ahead = [self.top]
        while ahead:
            here = ahead.pop()
            try:
                found = self._scan(here)
            except (OSError, Failure):
                if here is self.top and not self.may_be_closed:
                    raise
                self.closed += 1
                continue
            yield from found
            if not self.deep:
                return
            deeper = [
                one.place
                for one in found
                if one.kind == "dir" and (self.hidden or not one.place.name.startswith("."))
            ]
            if len(here.parts) - len(self.top.parts) >= MAX_DEPTH:
                self.closed += len(deeper)
            else:
                ahead.extend(reversed(deeper))

    def _scan(self, here: Place) -> list[Found]:
        found = []
        is_shut = None if self.call is None else closed_in(self.call, here)
        with folder(here, listing=True) as fd, os.scandir(fd) as listing:
            for entry in listing:
                name = entry.name
                if self.skip and (name == self.skip or name.startswith(TEMPORARY)):
                    continue
                if is_shut is not None and is_shut(name):
                    continue
                if self.names == "text" and not _is_text(name):
                    self.unnamed += 1
                    continue
                try:
                    found.append(Found(here.child(name), entry.stat(follow_symlinks=False)))
                except FileNotFoundError:  # gone since the listing
                    continue
        found.sort(key=lambda one: (one.kind == "dir", one.place.name.casefold(), one.place.name))
        return found


def searched(call: Call, asked: object) -> list[Place]:
    """The folder a call asks to look into, or without one every root that exists.

    Raises `Failure` not_found, not_directory or out_of_scope.
    """
    if asked is None:
        existing = [top for top in tops(call) if look(top) is not None]
        if not existing:
            raise Failure("not_found", "none of the open folders exists")
        return existing
    base = locate(call, asked)
    info = look(base)
    if info is None:
        raise Failure("not_found", "there is no such folder", path=base.path)
    if kind_of(info) == "link":
        raise Failure("out_of_scope", "links are not followed", path=base.path)
    if kind_of(info) != "dir":
        raise Failure("not_directory", "this is a file, not a folder", path=base.path)
    return [base]


def tally(
    place: Place, info: os.stat_result, *, skip: str, teller: Call | None = None
) -> tuple[int, int]:
    """How many items and bytes go with the thing at `place`: a folder counts what is in it, files
    and all, and at least as one. `teller`: the call that tells the person how far it is."""
    if not stat.S_ISDIR(info.st_mode):
        return 1, info.st_size
    count = size = 0
    try:
        for one in Walk(place, skip=skip, names="all"):
            if one.kind != "dir":
                count += 1
                size += one.info.st_size
                if teller is not None and count % _LOOK_UP_EVERY == 0:
                    teller.progress(count)
    except OSError:  # a folder that may not be listed can still be moved as a whole
        return 1, 0
    return max(1, count), size


def _is_text(name: str) -> bool:
    if name.isascii():
        return True
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
