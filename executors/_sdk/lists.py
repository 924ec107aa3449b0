"""Named lists of a person ("spesa", "shopping"): plain Markdown files they can also read and edit.

A list is the file `NAME/NAME.md` in the folder `Liste` (`Lists`) of an open folder: a folder of
its own, so that one list can be opened to somebody else and no other.
"""

from __future__ import annotations

import os
import re
import stat

from executors._sdk import making, values
from executors._sdk.encodings import lossless
from executors._sdk.files import Place, folder, is_top, locate, look, opened
from executors._sdk.result import Failure
from executors._sdk.writing import Seen, retried

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from executors._sdk.call import Call

FOLDERS = {"it": "Liste", "en": "Lists"}
MOST_ITEMS = 2000
MOST_LISTS = 500
MOST_BYTES = 1 << 20
_MOST_TEXT = 500
_LINE = re.compile(r"\s{0,8}[-*+]\s+(?:\[(?P<done>[ xX])\]\s+)?(?P<text>\S.*)")
_TICK = re.compile(r"\[[ xX]\]\s*(?P<text>\S.*)")
# What people say around the name of a list.
_AROUND = re.compile(
    r"^(?:(?:la|the|my|mia|una|a)\s+)*(?:(?:lista|elenco|list)\s+)?"
    r"(?:(?:del|della|delle|dei|degli|dello|di|of|for|da|per|la|le|the)\s+|dell['’]\s*)*",
    re.IGNORECASE,
)
_BEHIND = re.compile(r"\s+(?:list|lista)$", re.IGNORECASE)


class Item:
    """One line of a list; `done` is ticked."""

    __slots__ = ("done", "raw", "text")

    def __init__(self, text: str, *, done: bool = False, raw: str = "") -> None:
        self.text = text
        self.done = done
        self.raw = raw or f"- {text}"


class List:
    """A list where it stands, or would stand; `lines` are those of the file, items and others."""

    __slots__ = ("lines", "name", "place", "seen")

    def __init__(self, name: str, place: Place, lines: list[Item | str], seen: Seen) -> None:
        self.name = name
        self.place = place
        self.lines = lines
        self.seen = seen

    @property
    def items(self) -> list[Item]:
        return [line for line in self.lines if isinstance(line, Item)]

    def data(self) -> bytes:
        """The whole file."""
        text = "\n".join(line.raw if isinstance(line, Item) else line for line in self.lines)
        return (text.rstrip("\n") + "\n").encode() if text.strip() else b""


def plain_name(name: str) -> str:
    """What a list is called: "la lista della spesa" → "spesa", "my shopping list" → "shopping".

    Raises `Failure(invalid_args)` when nothing is left.
    """
    text = " ".join(name.split())[:80]
    short = _BEHIND.sub("", _AROUND.sub("", text, count=1)).strip()
    found = making.file_name(short or text, "")
    if not found or found.startswith("."):
        raise Failure("invalid_args", "a list needs a name")
    return found


def texts_of(wanted: Sequence[Any]) -> list[str]:
    """The items of a call as lines, each once. Raises `Failure(too_many)`."""
    texts = (_bare(" ".join(values.as_text(one).split()))[:_MOST_TEXT] for one in wanted)
    found = {values.fold(text): text for text in texts if text}
    if len(found) > MOST_ITEMS:
        raise Failure(
            "too_many", f"at most {MOST_ITEMS} items", count=len(found), limit=MOST_ITEMS
        )
    return list(found.values())


def _bare(text: str) -> str:
    """An item without the marks of a list that stand before it: they would tick it, or be read as
    a part of it."""
    while match := _LINE.fullmatch(text) or _TICK.fullmatch(text):
        text = match["text"].strip()
    return text


def every(call: Call) -> Iterator[List]:
    """All lists there are, by name, without what is in them."""
    found: dict[str, List] = {}
    for place, name in _places(call):
        found.setdefault(values.fold(name), List(name, place, [], Seen(None)))
        if len(found) >= MOST_LISTS:
            break
    yield from (found[key] for key in sorted(found))


def find(call: Call, name: str) -> List | None:
    """The list of this name with what is in it, whatever its case and accents; None if there is
    none. Raises `Failure` for one that cannot be read."""
    wanted = values.fold(plain_name(name))
    for place, found in _places(call):
        if values.fold(found) == wanted:
            return List(found, place, *_read(place))
    return None


def changed(
    call: Call, change: Callable[[], tuple[List | None, dict[str, Any]]]
) -> dict[str, Any]:
    """Read, change and write a list, anew while somebody else writes it too; the entry. `change`
    gives the list as it is to be, None where nothing is, and what is to be said of it."""

    def once() -> dict[str, Any]:
        wanted, facts = change()
        if wanted is None:
            return facts
        return making.put(call, wanted.place, [wanted.data()], since=wanted.seen, **facts)

    return retried(once)


def find_or_new(call: Call, name: str) -> List:
    """The list of this name, or a new one in the first open folder."""
    found = find(call, name)
    if found is not None:
        return found
    new = plain_name(name)
    top = FOLDERS.get(call.lang, FOLDERS["en"])
    place = locate(call, f"{call.roots[0].rstrip('/')}/{top}/{new}/{new}.md")
    return List(new, place, [], Seen(None))


def whole(call: Call, wanted: List) -> str:
    """What is to be thrown away so that this list is gone: its folder, or the file alone where
    the folder holds something else. Raises `Failure` not_authorized for a list that somebody
    opened by itself: whoever may change it may not take it from them."""
    own = wanted.place.parent
    if is_top(call, own):
        raise Failure("not_authorized", "the list is another person's")
    with folder(own, listing=True) as fd, os.scandir(fd) as found:
        alone = [one.name for one in found] == [wanted.place.name]
    return own.path if alone else wanted.place.path


def _places(call: Call) -> Iterator[tuple[Place, str]]:
    for root in call.roots:
        base = root.rstrip("/")
        parent, _, own = base.rpartition("/")
        if parent.rpartition("/")[2] in FOLDERS.values():  # a list that was opened by itself
            yield from _list_at(call, base, own)
        for name in FOLDERS.values():
            for child in _folders(call, f"{base}/{name}"):
                yield from _list_at(call, f"{base}/{name}/{child}", child)


def _list_at(call: Call, path: str, name: str) -> Iterator[tuple[Place, str]]:
    try:
        place = locate(call, f"{path}/{name}.md")
        info = look(place)
    except (OSError, Failure):
        return
    if info is not None and stat.S_ISREG(info.st_mode):
        yield place, name


def _folders(call: Call, path: str) -> list[str]:
    try:
        with folder(locate(call, path), listing=True) as fd, os.scandir(fd) as found:
            return sorted(e.name for e in found if e.is_dir(follow_symlinks=False))[:MOST_LISTS]
    except (OSError, Failure):
        return []


def _read(place: Place) -> tuple[list[Item | str], Seen]:
    with opened(place) as (fd, info):
        if info.st_size > MOST_BYTES:
            raise Failure("too_large", f"over {MOST_BYTES} bytes", path=place.path)
        data = b"".join(iter(lambda: os.read(fd, 1 << 16), b""))
    lines: list[Item | str] = []
    for line in lossless(data).replace("\r\n", "\n").rstrip("\n").split("\n"):
        match = _LINE.fullmatch(line)
        ticked = match is not None and (match["done"] or " ") in "xX"
        lines.append(line if match is None else Item(match["text"].strip(), done=ticked, raw=line))
    return lines, Seen(info)
