"""Going through folders: what stands beneath one, without following links."""

from __future__ import annotations

import os
import stat

from executors._sdk.files import (
    TEMPORARY,
    Place,
    folder,
    is_closed,
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


class Found:
    """Something a walk came across; `info` is of the thing itself, a link as a link."""

    __slots__ = ("info", "place")

    def __init__(self, place: Place, info: os.stat_result) -> None:
        self.place = place
        self.info = info

    @property
    def kind(self) -> str:
        """file, dir, link or other."""
        return kind_of(self.info)


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
        with folder(here, listing=True) as fd, os.scandir(fd) as listing:
            for entry in listing:
                name = entry.name
                if self.skip and (name == self.skip or name.startswith(TEMPORARY)):
                    continue
                if self.call is not None and is_closed(self.call, here.child(name)):
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


def tally(place: Place, info: os.stat_result, *, skip: str) -> tuple[int, int]:
    """How many items and bytes go with the thing at `place`: a folder counts what is in it, files
    and all, and at least as one."""
    if not stat.S_ISDIR(info.st_mode):
        return 1, info.st_size
    count = size = 0
    try:
        for one in Walk(place, skip=skip, names="all"):
            if one.kind != "dir":
                count += 1
                size += one.info.st_size
    except OSError:  # a folder that may not be listed can still be moved as a whole
        return 1, 0
    return max(1, count), size


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
