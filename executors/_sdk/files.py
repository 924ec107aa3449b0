"""Files beneath the roots of a call: where a path may lead, and opening it without being led away.

A path is opened beneath its root without following a link (`beneath`), so a swap between check
and use finds nothing to grab. Only regular files with a single name are opened, without waiting:
a FIFO or a device is refused, never read. Changing things stands in `writing` and `trash`.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager

from executors._sdk import beneath
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from executors._sdk.call import Call

TEMPORARY = ".metnos-tmp-"

# Without O_NONBLOCK opening a FIFO waits for a writer for ever.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Place:
    """One path beneath one root. `parts` are its components under the root; none: the root."""

    __slots__ = ("parts", "root")

    def __init__(self, root: str, parts: tuple[str, ...]) -> None:
        self.root = root
        self.parts = parts

    @property
    def path(self) -> str:
        return "/".join((self.root.rstrip("/"), *self.parts)) or "/"

    @property
    def name(self) -> str:
        return self.parts[-1] if self.parts else os.path.basename(self.root)  # noqa: PTH119

    @property
    def parent(self) -> Place:
        return Place(self.root, self.parts[:-1])

    def child(self, *names: str) -> Place:
        return Place(self.root, self.parts + names)

    def holds(self, other: Place) -> bool:
        """Whether `other` is this very path or lies somewhere beneath it."""
        return (other.path + "/").startswith(self.path.rstrip("/") + "/")


def shown(path: object) -> str:
    """A path as it may stand in a result: broken characters replaced, at most 1000 characters;
    "" for what is no path."""
    text = path if isinstance(path, str) else ""
    return text.encode("utf-8", "replace").decode("utf-8")[:1000]


def locate(call: Call, path: object, *, in_trash: bool = False) -> Place:
    """The place a path of an argument means, beneath the deepest root that holds it.

    Raises `Failure`: missing_input (no path), bad_text, out_of_scope (no root holds it, or it is
    not absolute and plain), forbidden_path for what no tool may touch even inside a root,
    not_found for what lies in the trash unless `in_trash`.
    """
    if not isinstance(path, str) or not path:
        raise Failure("missing_input", "this item has no path")
    try:
        broken = b"\0" in path.encode("utf-8")
    except UnicodeEncodeError:
        broken = True
    if broken:
        raise Failure("bad_text", "the path holds characters that no path can hold")
    parts = _components(path)
    best: Place | None = None
    for root in call.roots:
        top = _components(root)
        if parts[: len(top)] == top and (best is None or len(root) > len(best.root)):
            best = Place(root, parts[len(top) :])
    if best is None:
        raise Failure("out_of_scope", "the path is under none of the open folders")
    if is_closed(call, best):
        raise Failure("forbidden_path", "a place that no tool may touch")
    if not in_trash and call.trash_name in best.parts:
        raise Failure("not_found", "what is in the trash is not shown")
    return best


def _components(path: str) -> tuple[str, ...]:
    head, *parts = path.rstrip("/").split("/")
    if head or any(part in ("", ".", "..") for part in parts):
        raise Failure("out_of_scope", "the path is not absolute and plain")
    return tuple(parts)


def is_closed(call: Call, place: Place) -> bool:
    """Whether the place lies where no tool may look although a root holds it: keys, the product's
    own home. A root that is itself inside such a place stays open: it was opened on purpose."""
    closed = call.closed
    parts = [part.casefold() for part in place.parts]
    if any(name in parts for name in closed.get("names", ())):
        return True
    if any(
        parts and parts[-1] == last and first in parts for first, last in closed.get("files", ())
    ):
        return True
    return any(
        Place(tree, ()).holds(place) and Place(place.root, ()).holds(Place(tree, ()))
        for tree in closed.get("trees", ())
    )


def closed_in(call: Call, here: Place) -> Callable[[str], bool]:
    """`is_closed` of what stands in the folder `here`, asked by name: for long walks, since what
    is the same for all of a folder is looked up once."""
    closed = call.closed
    above = {part.casefold() for part in here.parts}
    names = frozenset(closed.get("names", ()))
    if not names.isdisjoint(above) or any(
        Place(tree, ()).holds(here) and Place(here.root, ()).holds(Place(tree, ()))
        for tree in closed.get("trees", ())
    ):
        return lambda _: True
    lasts = {last for first, last in closed.get("files", ()) if first in above or first == last}
    trees = [tree.rstrip("/").rpartition("/") for tree in closed.get("trees", ())]
    top = here.path.rstrip("/")
    exact = {name for folder, _, name in trees if folder == top}
    shut = names | lasts

    def is_shut(name: str) -> bool:
        return name.casefold() in shut or name in exact

    return is_shut


def tops(call: Call) -> list[Place]:
    """The roots as places, without those that are seen anyway from another one."""
    places = [Place(root, ()) for root in dict.fromkeys(call.roots)]
    return [
        one
        for one in places
        if not any(_shows(call, other, one) for other in places if other.path != one.path)
    ]


def _shows(call: Call, top: Place, other: Place) -> bool:
    if not top.holds(other):
        return False
    return not is_closed(call, top.child(*_components(other.path)[len(_components(top.path)) :]))


def is_top(call: Call, place: Place) -> bool:
    """Whether the place is a root or holds one: such folders are never moved or deleted."""
    return not place.parts or any(place.holds(Place(root, ())) for root in call.roots)


@contextmanager
def folder(place: Place, *, listing: bool = False) -> Iterator[int]:
    """A descriptor of the folder at `place`: for what stands in it, or for listing and syncing it.

    Raises `Failure` out_of_scope when a link stands on the way, else `OSError`.
    """
    try:
        fd = beneath.open_root(place.root)
        if place.parts:
            fd = _deeper(fd, beneath.open_folder, place.parts)
    except OSError as exc:
        if exc.errno in (errno.ELOOP, errno.EXDEV):
            raise Failure("out_of_scope", "a link stands on the way") from None
        raise
    if listing:
        fd = _deeper(fd, _to_list)
    try:
        yield fd
    finally:
        os.close(fd)


def _deeper(fd: int, open_next: Callable[..., int], *what: Any) -> int:
    """What `open_next` opens from `fd`, which is closed in any case."""
    try:
        return open_next(fd, *what)
    finally:
        os.close(fd)


def _to_list(fd: int) -> int:
    return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)


def look(place: Place) -> os.stat_result | None:
    """What stands at the place, a link as a link; None when nothing does.

    Raises `Failure` out_of_scope for a link on the way; a file on the way means nothing is there.
    """
    try:
        if not place.parts:
            return os.stat(place.root)  # noqa: PTH116
        with folder(place.parent) as fd:
            return os.stat(place.name, dir_fd=fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


def check_regular(info: os.stat_result) -> None:
    """Raise `Failure` is_directory, out_of_scope (a link) or not_regular for what is no file."""
    if stat.S_ISDIR(info.st_mode):
        raise Failure("is_directory", "this is a folder")
    if stat.S_ISLNK(info.st_mode):
        raise Failure("out_of_scope", "links are not followed")
    if not stat.S_ISREG(info.st_mode):
        raise Failure("not_regular", "this is no ordinary file")


def check_single(info: os.stat_result, *, links: int = 1) -> None:
    """Raise `Failure` many_names for a file with more names than `links`.

    A second name may lie where no tool may look, and one here is all it takes to read that file;
    a write would part the names from each other without anybody noticing.
    """
    if info.st_nlink > links:
        raise Failure("many_names", "the file has more than one name (hard links)")


@contextmanager
def opened(place: Place, *, links: int = 1) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file with one name (at most `links`) opened for reading: its descriptor and what
    it is. Never blocks."""
    if not place.parts:
        raise Failure("is_directory", "this is a folder")
    with folder(place.parent) as parent:
        # Looked at first: merely opening some devices has effects.
        check_regular(os.stat(place.name, dir_fd=parent, follow_symlinks=False))
        fd = os.open(place.name, _READ, dir_fd=parent)
    try:
        info = os.fstat(fd)
        check_regular(info)
        check_single(info, links=links)
        yield fd, info
    finally:
        os.close(fd)


def kind_of(info: os.stat_result) -> str:
    """file, dir, link or other (FIFO, socket, device)."""
    if stat.S_ISREG(info.st_mode):
        return "file"
    if stat.S_ISDIR(info.st_mode):
        return "dir"
    return "link" if stat.S_ISLNK(info.st_mode) else "other"


def moment(seconds: float) -> str | None:
    """A time of the file system as ISO text in UTC; None for one that no calendar holds."""
    from datetime import UTC, datetime

    try:
        return datetime.fromtimestamp(int(seconds), UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def state_of(place: Place, info: os.stat_result | None, **more: Any) -> dict[str, Any]:
    """A place as a preview records it, to tell afterwards whether something has changed."""
    if info is None:
        return {"path": place.path, "exists": False}
    return {
        "path": place.path,
        "exists": True,
        "kind": kind_of(info),
        "size": info.st_size,
        "modified": moment(info.st_mtime),
        "id": f"{info.st_dev}:{info.st_ino}",
        **more,
    }


def arg_paths(call: Call) -> list[str | None]:
    """The paths of a call that takes `paths` or `entries`, in their order; what is no path, or an
    entry without one, stands as None."""
    given = call.args.get("paths")
    if given is None:
        entries = call.args.get("entries") or ()
        given = [entry.get("path") if isinstance(entry, dict) else entry for entry in entries]
    listed = [given] if isinstance(given, str) else list(given)
    return [path if isinstance(path, str) else None for path in listed]
