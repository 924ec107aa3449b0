"""The calendars of a person: those of their accounts, or a file of their own where they have none.

An event is known outside as one text, `ACCOUNT|PLACE|TIME`: the place is its path on the server,
or its UID in the file (the account is then empty), the time names one of a series and is empty
for what does not recur, and for a series as a whole.
"""

from __future__ import annotations

import hashlib
from urllib.parse import quote
from zoneinfo import ZoneInfo

from executors._sdk import ics
from executors._sdk.dav import Dav
from executors._sdk.dav_parts import CALENDARS, Resource
from executors._sdk.encodings import lossless
from executors._sdk.files import locate, look, opened
from executors._sdk.result import Failure, from_exception
from executors._sdk.writing import Seen, check_writable, chunks_of, retried, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from executors._sdk.call import Call
    from executors._sdk.dav_parts import Collection
    from executors._sdk.files import Place

FILES = ("Calendario.ics", "Calendar.ics", "calendario.ics", "calendar.ics", "Agenda.ics",
         "agenda.ics")  # fmt: skip
MAX_FILE = 32 << 20
_SCOPES = {
    "it": {"occurrence": "solo quella volta", "series": "tutta la serie"},
    "en": {"occurrence": "only that time", "series": "the whole series"},
}


class EventId:
    """The parts of an event's name. `key`: which time of a series."""

    __slots__ = ("account", "key", "place")

    def __init__(self, account: str, place: str, key: str = "") -> None:
        self.account, self.place, self.key = account, place, key

    def __str__(self) -> str:
        return f"{self.account}|{self.place.replace('|', '%7C')}|{self.key}"

    @classmethod
    def read(cls, text: object) -> EventId:
        """Raises `Failure` for what names no event."""
        parts = str(text).split("|")
        if len(parts) != 3 or not parts[1] or len(str(text)) > 1000:
            raise Failure("invalid_args", "not the id of an event: take those of read_events")
        place = parts[1] if parts[0] else parts[1].replace("%7C", "|")
        return cls(parts[0], place, parts[2])


class Kept:
    """One event as it is kept: its place, its version, and its components."""

    __slots__ = ("account", "calendar", "place", "text", "uid", "version")

    def __init__(
        self, account: str, calendar: str, place: str, version: str, text: ics.Text, uid: str
    ) -> None:
        self.account, self.calendar, self.place = account, calendar, place
        self.version, self.text, self.uid = version, text, uid

    def id_of(self, key: str = "") -> str:
        return str(EventId(self.account, self.place, key))


class Found:
    """What lies in a window: an occurrence and where it is kept."""

    __slots__ = ("kept", "one")

    def __init__(self, kept: Kept, one: ics.Occurrence) -> None:
        self.kept, self.one = kept, one


class Agenda:
    """One account's calendars; a context manager. Raises `Failure` as `Dav` does."""

    def __init__(self, call: Call, account: dict[str, Any]) -> None:
        self.name = str(account["name"])
        self.zone = ZoneInfo(call.tz)
        self._dav = Dav(call, account, CALENDARS)

    def __enter__(self) -> Agenda:
        return self

    def __exit__(self, *exc: object) -> None:
        self._dav.__exit__(*exc)

    def between(self, start: datetime, end: datetime) -> tuple[list[Found], int]:
        """What falls in the window, and how many events could not be read."""
        found: list[Found] = []
        unreadable = 0
        for collection in self._dav.collections():
            for resource in self._dav.events(collection, start, end):
                text = ics.Text(resource.text)
                uid = next(iter(text.groups), "")
                kept = Kept(self.name, collection.name, resource.href, resource.version, text, uid)
                ones, bad = text.between(start, end, self.zone)
                found += [Found(kept, one) for one in ones]
                unreadable += bad
                if len(found) >= ics.MOST_EVENTS:
                    return found[: ics.MOST_EVENTS], unreadable
        return found, unreadable

    def get(self, place: str) -> Kept | None:
        resource = self._dav.get(place)
        if resource is None:
            return None
        text = ics.Text(resource.text)
        return Kept(self.name, "", place, resource.version, text, next(iter(text.groups), ""))

    def add(self, uid: str, text: str) -> tuple[str, str, bool]:
        """Make an event under its UID: its place, its version, whether it was there already."""
        home = self._home()
        href = f"{home.href.rstrip('/')}/{quote(uid)}.ics"
        version = self._dav.add(href, text)
        if version is not None:
            return href, version, False
        there = self._dav.get(href)
        if there is None:
            raise Failure("already_exists", "the server does not take the event", path=home.name)
        return href, there.version, True

    def change(self, kept: Kept, text: str) -> str:
        return self._dav.replace(_resource(kept), text)

    def text_of(self, kept: Kept) -> str:
        """The event as it is written, whole."""
        return kept.text.whole

    def remove(self, kept: Kept) -> None:
        self._dav.delete(_resource(kept))

    def restore(self, place: str, text: str) -> str:
        """Put an event back that is not there any more; its version. Raises `changed_since` when
        something is there by now."""
        version = self._dav.add(place, text)
        if version is None:
            raise Failure("changed_since", "something is there by now")
        return version

    def _home(self) -> Collection:
        """The calendar for new events: the first that may be written."""
        listed = self._dav.collections()
        first = next((one for one in listed if one.is_writable), None)
        if first is None:
            raise Failure("permission_denied", "no calendar may be written", path=self.name)
        return first


class FileAgenda:
    """The calendar file of a person without an account: `Calendario.ics` or `Calendar.ics` in one
    of their folders; a new one is made in the first."""

    name = ""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.zone = ZoneInfo(call.tz)
        self._place = _file_of(call)
        self._seen = Seen(None)

    def __enter__(self) -> FileAgenda:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def between(self, start: datetime, end: datetime) -> tuple[list[Found], int]:
        text = self._read()
        kept = {uid: self._kept(text, uid) for uid in text.groups}
        ones, unreadable = text.between(start, end, self.zone)
        return [Found(kept[one.uid], one) for one in ones if one.uid in kept], unreadable

    def get(self, place: str) -> Kept | None:
        text = self._read()
        return self._kept(text, place) if place in text.groups else None

    def add(self, uid: str, text: str) -> tuple[str, str, bool]:
        def once() -> tuple[str, str, bool]:
            there = self._read()
            if uid in there.groups:
                return uid, ics.version_of(there.groups[uid]), True
            return uid, self._write(there, uid, text), False

        return retried(once)  # what others put in meanwhile stays

    def text_of(self, kept: Kept) -> str:
        return kept.text.document(kept.text.groups[kept.uid])

    def change(self, kept: Kept, text: str) -> str:
        def once() -> str:
            return self._write(self._same(kept), kept.uid, text)

        return retried(once)

    def remove(self, kept: Kept) -> None:
        def once() -> str:
            return self._write(self._same(kept), kept.uid, "")

        retried(once)

    def restore(self, place: str, text: str) -> str:
        there = self._read()
        if place in there.groups:
            raise Failure("changed_since", "something is there by now")
        return self._write(there, place, text)

    def _same(self, kept: Kept) -> ics.Text:
        now = self._read()
        blocks = now.groups.get(kept.uid)
        if blocks is None or ics.version_of(blocks) != kept.version:
            raise Failure("changed_since", "it has changed meanwhile")
        return now

    def _kept(self, text: ics.Text, uid: str) -> Kept:
        return Kept("", "", uid, ics.version_of(text.groups[uid]), text, uid)

    def _read(self) -> ics.Text:
        place = self._place
        self._seen = Seen(None)
        if place is None or look(place) is None:
            return ics.Text("")
        with opened(place) as (fd, info):
            if info.st_size > MAX_FILE:
                raise Failure("too_large", "more than 32 MB", path=place.path, limit=MAX_FILE)
            data = b"".join(chunks_of(fd))
            self._seen = Seen(info)
        return ics.Text(lossless(data))

    def _write(self, there: ics.Text, uid: str, text: str) -> str:
        """Put the events of this text in the place of those of a UID; their version."""
        place = self._place or self._new()
        info = look(place)
        check_writable(place, info)
        whole = there.whole
        for block in there.groups.get(uid, ()):
            whole = whole.replace(block, "", 1)
        new = ics.blocks_of(text)
        zones = [zone for zone in ics.zones_of(text) if zone not in whole] if new else []
        body = "".join([*zones, *new]).replace("\r\n", "\n").replace("\n", "\r\n")
        if "END:VCALENDAR" in whole:
            head, mark, tail = whole.rpartition("END:VCALENDAR")
            whole = f"{head}{body}{mark}{tail}"
        else:
            whole = text if new else there.document([])
        mode = 0o600 if info is None else info.st_mode & 0o777
        data = [whole.encode("utf-8", "replace")]
        write_file(place, data, mode=mode, replace=info is not None, since=self._seen)
        return ics.version_of(ics.Text(whole).groups.get(uid, ()))

    def _new(self) -> Place:
        self._place = _named(self._call, self._call.roots[0], FILES[self._call.lang != "it"])
        return self._place


def agendas(call: Call) -> list[Agenda | FileAgenda]:
    """The calendars that this call may use. Raises `Failure` needs_credentials when there is
    neither an account nor a folder for a file."""
    found: list[Agenda | FileAgenda] = [Agenda(call, account) for account in call.accounts]
    if not found:
        if not call.roots:
            raise Failure("needs_credentials", "there is no calendar", kind="calendar")
        found.append(FileAgenda(call))
    return found


def agenda_of(call: Call, account: str) -> Agenda | FileAgenda:
    """The calendars of the account of this name, "" for the file."""
    if not account:
        return FileAgenda(call)
    for one in call.accounts:
        if one["name"] == account:
            return Agenda(call, one)
    raise Failure("not_found", "there is no such account", path=account)


def all_between(
    call: Call, start: datetime, end: datetime
) -> tuple[list[Found], int, list[str], bool]:
    """What falls in a window in all calendars, by time: the events, how many could not be read,
    the accounts that could not be reached, and whether there is more than is said here.

    Raises `Failure` when no calendar could be read.
    """
    found: list[Found] = []
    unreadable, last = 0, None
    unreached: list[str] = []
    listed = agendas(call)
    for number, agenda in enumerate(listed, 1):
        try:
            with agenda:
                some, bad = agenda.between(start, end)
                found += some
                unreadable += bad
        except (Failure, OSError) as exc:
            failure = from_exception(exc)
            if failure is None:
                raise
            last, unreached = failure, [*unreached, agenda.name]
        if len(listed) > 1:
            call.progress(number, len(listed))
    if last is not None and len(unreached) == len(listed):
        raise last
    zone = ZoneInfo(call.tz)
    found.sort(key=lambda f: (f.one.span(zone)[0], f.one.span(zone)[1], f.one.summary))
    return found, unreadable, unreached, len(found) >= ics.MOST_EVENTS


def uid_for(call: Call, *parts: object) -> str:
    """The same for the same event of the same turn, and for no other."""
    text = "\0".join([call.turn_id, str(call.step), *map(str, parts)])
    return "metnos-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _resource(kept: Kept) -> Resource:
    return Resource(kept.place, kept.version, "")


def _file_of(call: Call) -> Place | None:
    for root in call.roots:
        for name in FILES:
            place = _named(call, root, name)
            if look(place) is not None:
                return place
    return None


def _named(call: Call, root: str, name: str) -> Place:
    return locate(call, f"{root.rstrip('/')}/{name}")


def unreached_text(names: Sequence[str]) -> dict[str, str]:
    return {"unreached": ", ".join(name or "-" for name in names)} if names else {}


def scope_fields(call: Call, scope: str) -> dict[str, str]:
    """What part of an event was changed: `event`, `occurrence` or `series`, and for a recurring
    one how people say it."""
    said = _SCOPES.get(call.lang, _SCOPES["en"]).get(scope)
    return {"scope": scope, **({"scope_text": said} if said else {})}
