"""The call an executor answers: its arguments and what it may know about the person and the turn.

Kept free of heavy imports: every call of every executor pays for this module.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import Any


class Call:
    """One call, read-only by agreement.

    `args`: validated against the manifest; paths in it are absolute and canonical.
    `roots`: absolute folders inside which files may be touched. `home`: the actor's home.
    `lang`: "it" or "en". `tz`: IANA name of the person's time zone.
    `trash_name`: name of the folder under a root where deleted things go.
    `closed`: places inside the roots where no tool may look: `trees` (absolute), `names` of
    folders at any depth, `files` as pairs of a folder on the way and a last name.
    `services`: addresses of services that are not the public ones, by name (`photon`).
    `position`: where the person is, `{"lat", "lon", "label"}`; None when that is not known or the
    manifest has no `location:read`. `about`: whether the request is about the surroundings of
    the person ("here"), names no place at all ("open") or one ("elsewhere").
    `accounts`: the person's accounts that this call may use, each `{"name", "kind", …}` with its
    settings and its secret; the one that was asked for, else all of the kinds that the manifest
    names. Say no value of theirs in an observation but `name` and `address`.
    `machine`: what the engine saw of this machine, of `host` and `processes` what the manifest's
    `system:read` names.
    `put_back`: when a change is taken back, what is to become as it was: `{"id", "version",
    "text"}` each, the version that the change left and the text before it.
    `mode`: "run", or "preview" when nothing may be changed.
    """

    def __init__(
        self,
        document: Mapping[str, Any],
        *,
        progress: Callable[[int | None, int | None], None] | None = None,
    ) -> None:
        self.args: dict[str, Any] = dict(document.get("args") or {})
        self.tool: str = document.get("tool", "")
        self.mode: str = document.get("mode", "run")
        self.lang: str = document.get("lang", "en")
        self.tz: str = document.get("tz", "UTC")
        self.turn_id: str = document.get("turn_id", "")
        self.step: int = document.get("step", 0)
        self.actor_id: str = document.get("actor_id", "")
        self.roots: tuple[str, ...] = tuple(document.get("roots") or ())
        self.home: str = document.get("home", "/nonexistent")
        self.trash_name: str = document.get("trash_name", ".metnos-trash")
        self.closed: dict[str, Any] = dict(document.get("closed") or {})
        self.services: dict[str, str] = dict(document.get("services") or {})
        self.accounts: tuple[dict[str, Any], ...] = tuple(document.get("accounts") or ())
        self.put_back: tuple[dict[str, Any], ...] = tuple(document.get("put_back") or ())
        self.machine: dict[str, Any] = dict(document.get("machine") or {})
        where = dict(document.get("whereabouts") or {})
        self.about: str = where.get("about", "elsewhere")
        self.position: dict[str, Any] | None = where.get("position")
        self.user_agent: str = document.get("user_agent", "Metnos")
        self._now: str = document.get("now", "1970-01-01T00:00:00+00:00")
        self._progress = progress

    @property
    def now(self) -> datetime:
        """The instant of the call, aware, as the engine's clock says it (UTC)."""
        from datetime import datetime

        return datetime.fromisoformat(self._now)

    def progress(self, done: int | None, total: int | None = None) -> None:
        """Tell the person how far the work is. May be dropped; never raises, never blocks."""
        if self._progress is not None:
            self._progress(done, total)
