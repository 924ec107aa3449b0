"""A word that counts in a request, and what is done to lists of them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

ASKING = frozenset(
    """summarise count group sort classify read compare compute explain suggest describe
    filter label rate total""".split()
)
"""Deeds that change nothing. Beside all others it counts how much is meant, and who asks what."""

TRANSFERS = frozenset(
    """move copy send forward reply share convert translate write add upload download save rename
    extract update create remind compress archive tell call print edit""".split()
)
"""Deeds with a beginning and an end, for which `from` and `to` are never of no account."""

# Folders that have a name of their own, and places, which say where and not what.
NAMED_AS = {"document": "documents_folder", "photo": "photos_folder", "music": "music_folder",
            "video": "videos_folder"}  # fmt: skip
NAMED = frozenset({"download_item", "desktop", *NAMED_AS})
PLACES = frozenset({"download_item", "desktop", "trash", "disk", "archive", *NAMED_AS.values()})


@dataclass(slots=True)
class Said:
    """One word that counts. `deed`: how many deeds stood before it; `place` in the request."""

    name: str
    deed: int
    place: int
    lang: str = ""
    of: str = ""
    number: str = ""
    inside: bool = False
    """It stands after `in`."""


def plain(name: str) -> str:
    return name.rpartition(":")[2]


def swap(names: list[str], name: str, other: str) -> None:
    names[:] = [other if one == name else one for one in names]


def drop(said: list[Said], *names: str) -> None:
    said[:] = [one for one in said if one.name not in names]


def rename(said: list[Said], meant: dict[str, str]) -> None:
    each(said, lambda name: meant.get(name, name))


def each(said: Iterable[Said], change: Callable[[str], str]) -> None:
    for one in said:
        one.name = change(one.name)
