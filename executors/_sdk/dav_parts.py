"""What WebDAV speaks of: collections, resources, properties; and cards without pictures."""

from __future__ import annotations

import re

from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from xml.etree import ElementTree as ET

MAX_BODY = 32 << 20
D, CAL, CARD = "{DAV:}", "{urn:ietf:params:xml:ns:caldav}", "{urn:ietf:params:xml:ns:carddav}"
_PICTURE = re.compile(rb"(?i)(?:[\w-]+\.)?(?:photo|logo|sound|key)[;:]")


class Kind:
    """What is looked for on a server."""

    __slots__ = ("data", "home", "media_type", "resource", "well_known")

    def __init__(self, resource: str, home: str, data: str, media_type: str, known: str) -> None:
        self.resource, self.home, self.data = resource, home, data
        self.media_type, self.well_known = media_type, known


CALENDARS = Kind(
    f"{CAL}calendar", f"{CAL}calendar-home-set", f"{CAL}calendar-data",
    "text/calendar; charset=utf-8", "/.well-known/caldav",
)  # fmt: skip
BOOKS = Kind(
    f"{CARD}addressbook", f"{CARD}addressbook-home-set", f"{CARD}address-data",
    "text/vcard; charset=utf-8", "/.well-known/carddav",
)  # fmt: skip


class Collection:
    """A calendar or an address book: `href` is its path on the server."""

    __slots__ = ("href", "is_writable", "name")

    def __init__(self, href: str, name: str, *, is_writable: bool) -> None:
        self.href, self.name, self.is_writable = href, name, is_writable


class Resource:
    """One thing in a collection: its path, its version as the server names it, its text."""

    __slots__ = ("href", "text", "version")

    def __init__(self, href: str, version: str, text: str) -> None:
        self.href, self.version, self.text = href, version, text


class Node:
    """One answer of a multistatus: a path and its properties by name."""

    __slots__ = ("href", "props")

    def __init__(self, href: str, props: dict[str, ET.Element]) -> None:
        self.href, self.props = href, props

    def text(self, name: str) -> str:
        found = self.props.get(name)
        return (found.text or "").strip() if found is not None else ""

    def hrefs(self, name: str) -> list[str]:
        found = self.props.get(name)
        listed = found.iter(f"{D}href") if found is not None else ()
        return [text for one in listed if (text := (one.text or "").strip())]

    def is_a(self, resource: str) -> bool:
        found = self.props.get(f"{D}resourcetype")
        return found is not None and found.find(resource) is not None


class PictureSieve:
    """Lets a stream of cards through without the lines of pictures, sounds and keys."""

    def __init__(self) -> None:
        self._rest = b""
        self._drops = False

    def feed(self, data: bytes) -> bytes:
        *lines, rest = (self._rest + data).split(b"\n")
        kept = b"".join(line + b"\n" for line in lines if self._keeps(line))
        if len(rest) > 1 << 16:
            # A picture in one long line: its beginning is enough to know it by.
            drops = self._drops
            if not self._keeps(rest):
                rest = rest[:64]
            elif len(rest) > MAX_BODY:
                raise Failure("too_large", "a line without an end", limit=MAX_BODY)
            self._drops = drops
        self._rest = rest
        return kept

    def end(self) -> bytes:
        return self._rest if self._keeps(self._rest) else b""

    def _keeps(self, line: bytes) -> bool:
        if line[:1] not in (b" ", b"\t"):  # else it goes on with the line before
            self._drops = bool(_PICTURE.match(line))
        return not self._drops


def holds_events(node: Node) -> bool:
    """Whether a calendar is one of events; one that does not say is."""
    kinds = node.props.get(f"{CAL}supported-calendar-component-set")
    names = [one.get("name", "").upper() for one in kinds] if kinds is not None else []
    return not names or "VEVENT" in names
