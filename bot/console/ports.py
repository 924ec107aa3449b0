"""What a page is given and what it gives back. Knows no web server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from core.messages import Actor

if TYPE_CHECKING:
    from bot.app import House
    from bot.console.rendering import Words

MOST_PAGES = 10_000


class Engine(Protocol):
    """The running channel, as the pages tell of it."""

    def waiting(self) -> int: ...
    def poll_age_s(self) -> float | None: ...
    def rival(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of the host, checked in every way. `params` are the parts of the path, `query`
    and `form` the first value of each name; `secret` is the session's, never to be shown."""

    house: House
    engine: Engine | None
    actor: Actor
    words: Words
    path: str
    csrf: str
    secret: str = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def lang(self) -> str:
        return self.words.lang

    @property
    def tz(self) -> str:
        return self.words.tz

    def page_number(self) -> int:
        """Which page of a list is asked for, from 1."""
        return number_of(self.query.get("page"), most=MOST_PAGES) or 1


def number_of(text: str | None, *, most: int = 2**63 - 1) -> int | None:
    """A whole number from 1 to `most` as it stands in a form; None for anything else."""
    if text is None or not (text.isascii() and text.isdecimal()) or len(text) > 19:
        return None
    number = int(text)
    return number if 1 <= number <= most else None


@dataclass(frozen=True, slots=True)
class Shown:
    """A page: its template and what it is filled with."""

    template: str
    data: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True)
class Moved:
    """Something was done: the browser is sent on. `done` names the word (`console.done.…`) that
    the next page says of it, `count` what stands in that word."""

    to: str
    done: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """There is no such thing (any more)."""


Outcome = Shown | Moved | Missing
Endpoint = Callable[[Visit], Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class Page:
    """Where an endpoint is found. `nav`: the key of its text in the menu, None for no place in it;
    a page without one stands under the entry whose path begins its own."""

    path: str
    endpoint: Endpoint
    method: Literal["GET", "POST"] = "GET"
    nav: str | None = None
