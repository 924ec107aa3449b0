"""A named list opened to a guest: the button under the host's list, and what it does.

A list lives in a folder of its own, so that opening it is opening that folder, and no other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from core.clock import Clock
from core.config import Settings
from core.execution.context import TurnContext
from core.execution.paths import may_be_granted, scope_for
from core.i18n import Texts
from core.levels.runner import Outcome
from core.messages import Block, FinalKind, Role
from core.store import actors, grants
from core.store.database import Transaction
from core.store.grants import GrantKind
from core.store.stores import Stores
from core.turn_actions import Act, Handler, Press
from core.turn_offers import Offer, Rows
from core.turn_state import StepRecord
from core.vocabulary import object_of

SHARE = "list.share"
MOST_GUESTS = 3


@dataclass(frozen=True, slots=True)
class Sharing:
    """Offers to open the list that an answer is about to each guest who has not got it yet."""

    stores: Stores
    clock: Clock
    texts: Texts
    settings: Settings

    @property
    def handlers(self) -> Mapping[str, Handler]:
        return {SHARE: self.press}

    async def rows(self, context: TurnContext, outcome: Outcome) -> Rows:
        """A button for each of the first guests, under the host's answer about one list that is
        there; no row for anybody else, or without guests."""
        path = _list_of(outcome)
        if path is None or context.actor.role is not Role.HOST:
            return ()
        folder = str(PurePosixPath(path).parent)
        if not _is_list(path) or not may_be_granted(folder, context.scope):
            return ()
        now = self.clock.now()
        found: list[Offer] = []
        async with self.stores.main.read() as tx:
            guests = [one for one in await actors.list_actors(tx) if one.role is Role.GUEST]
            for guest in guests:
                have = (await grants.granted_to(tx, guest.id, now)).write_folders
                if folder not in have and guest.display_name and len(found) < MOST_GUESTS:
                    about = {"guest": guest.id, "path": path}
                    found.append(Offer(SHARE, "list.share", about, {"name": guest.display_name}))
        return tuple((offer,) for offer in found)

    async def press(self, press: Press) -> Act:
        """Let the guest read and change that list from now on; nothing when either is gone."""
        if press.actor.role is not Role.HOST:
            return Act()
        guest_id, path = (str(press.action.params.get(name)) for name in ("guest", "path"))
        folder, name = str(PurePosixPath(path).parent), PurePosixPath(path).stem
        async with self.stores.main.read() as tx:
            guest = next((a for a in await actors.list_actors(tx) if a.id == guest_id), None)
        open_ = _is_list(path) and may_be_granted(folder, scope_for(press.actor, self.settings))
        if guest is None or guest.role is not Role.GUEST or not open_:
            return Act(says="list.gone")

        async def opened(tx: Transaction) -> None:
            if not await actors.is_revoked(tx, guest_id):
                await grants.add(tx, guest_id, GrantKind.WRITE, folder, now=self.clock.now())

        words = {"name": guest.display_name, "list": name}
        said = self.texts.say("list.shared", press.lang, **words)
        return Act(tells=(Block("text", said),), writes=opened)


def _list_of(outcome: Outcome) -> str | None:
    """The file of the one list that the answer is about."""
    if outcome.kind is not FinalKind.ANSWER:
        return None
    about = [path for record in outcome.state.steps if (path := _path_in(record))]
    return about[-1] if len(set(about)) == 1 else None


def _path_in(record: StepRecord) -> str | None:
    seen = record.observation
    if object_of(record.tool) != "lists" or not seen.ok:
        return None
    entries = seen.entries or ()
    path = seen.metadata.get("path") or (entries[0].get("path") if len(entries) == 1 else None)
    return path if isinstance(path, str) else None


def _is_list(path: str) -> bool:
    """Whether this is the file of a list in a folder of that name and of nothing else, no link."""
    place = PurePosixPath(path)
    own = place.is_absolute() and place.suffix == ".md" and place.parent.name == place.stem
    return own and os.path.realpath(path) == path and Path(path).is_file()
