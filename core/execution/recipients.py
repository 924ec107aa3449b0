"""Recipients that are said by name: whom the person means, and sending to those who are paired.

A name that the person said themselves is looked up among the people of this home, who get their
message in Telegram, and among the person's contacts. One that fits stands in its place; of several
the person chooses, and for none they are asked for the address. Nobody is guessed.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.catalog.manifest import Manifest
from core.clock import Clock
from core.dialogs import Field, FieldKind, Option, SuspensionKind
from core.errors import CallRefused, ErrorCode
from core.execution import accounts
from core.execution.cage.process import ProcessCage
from core.execution.consent import NeedsAnswer, Question, one_of_several
from core.execution.context import TurnContext
from core.execution.document import document_of
from core.execution.policy import is_spoken_of
from core.execution.values import fold, listed
from core.i18n import Texts
from core.messages import Actor, Attachment, Block, ChatAddress, Reply, Role
from core.observation import Effects, Observation
from core.store import actors, outbox
from core.store.database import Transaction
from core.store.stores import Stores
from core.turn_state import TurnState

CHANNEL = "telegram"
CONTACTS = "find_contacts"
MOST_CONTACTS = 20
_PAIRED = re.compile(r"(?P<name>.+?)(?: #(?P<id>[0-9a-f]{6}))? \(Telegram\)")
_WORD = re.compile(r"[^\W_]+")
_MAIL = re.compile(r"\b(?:e-?mail|mail|posta)\b", re.IGNORECASE)
_TELEGRAM = re.compile(r"\btelegram\b", re.IGNORECASE)
_TOLD = ("subject", "title", "name", "text", "content", "value", "path", "url")

Along = Callable[[Transaction], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Recipients:
    """Holds what looking up needs; keeps nothing of any call."""

    cage: ProcessCage
    stores: Stores
    clock: Clock
    texts: Texts

    async def resolved(
        self,
        context: TurnContext,
        state: TurnState,
        manifest: Manifest,
        args: Mapping[str, Any],
        answered: Mapping[str, Any],
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The arguments with whom the names in them mean, and what was put in: it counts as said.

        `answered`: what the person said of names that stood together with others, see
        `consent.one_of_several`. Raises `NeedsAnswer` for the first name that fits several or
        nobody.
        """
        found, put_in = dict(args), list[str]()
        for argument, kind in manifest.sinks.items():
            if kind != "recipient" or manifest.types.get(argument) != "person":
                continue
            values = [str(value) for value in listed(args.get(argument))]
            meant = []
            for place, value in enumerate(values):
                name = one_of_several(argument, place) if len(values) > 1 else argument
                said = str(answered.get(name, value)) if name != argument else value
                fit = await self._meant(context, state, said)
                if len(fit) != 1:
                    raise NeedsAnswer(self._which(context, manifest, name, said, fit, answered))
                meant += fit
            if meant != values:
                put_in += [new for new, old in zip(meant, values, strict=True) if new != old]
                is_list = isinstance(args[argument], list)
                found[argument] = meant if is_list else meant[0]
        return found, tuple(put_in)

    async def _meant(self, context: TurnContext, state: TurnState, said: str) -> list[str]:
        """Whom one value means: itself when it is an address, or no name that the person said."""
        if "@" in said or _PAIRED.fullmatch(said) or not is_spoken_of(said, context.said):
            return [said]
        return await self._fitting(context, state, said)

    def _which(
        self,
        context: TurnContext,
        manifest: Manifest,
        name: str,
        said: str,
        fit: Sequence[str],
        answered: Mapping[str, Any],
    ) -> Question:
        key = "recipient.which" if fit else "recipient.none"
        prompt = self.texts.say(key, context.lang, name=said, count=len(fit))
        options = tuple(Option(one[:400], one) for one in fit)
        field = Field(name, prompt, FieldKind.CHOICE if fit else FieldKind.TEXT, options)
        asked = SuspensionKind.DISAMBIGUATION if fit else SuspensionKind.INPUTS
        return Question(asked, manifest.name, fields=(field,), changed=answered)

    async def _fitting(self, context: TurnContext, state: TurnState, said: str) -> list[str]:
        """Everybody whom a name may mean, those who are called exactly so before all others."""
        mail, chat = _MAIL.search(context.request), _TELEGRAM.search(context.request)
        found: list[tuple[str, str]] = []
        if chat or not mail:
            found += await self._paired(context)
        if mail or not chat:
            found += await self._contacts(context, state, said)
        words = set(_WORD.findall(fold(said)))
        fit = [
            (name, to) for name, to in found if words and words <= set(_WORD.findall(fold(name)))
        ]
        exact = [to for name, to in fit if fold(name) == fold(said)]
        return list(dict.fromkeys(exact or [to for _, to in fit]))

    async def _paired(self, context: TurnContext) -> list[tuple[str, str]]:
        """(name, recipient) of the others who are paired; for the host alone."""
        if context.actor.role is not Role.HOST:
            return []
        people = [one for one, _ in await self._people(context)]
        names = [one.display_name for one in people]
        return [
            (one.display_name, _as_recipient(one, alone=names.count(one.display_name) == 1))
            for one in people
        ]

    async def _people(self, context: TurnContext) -> list[tuple[Actor, ChatAddress]]:
        async with self.stores.main.read() as tx:
            return [
                (one, ChatAddress(CHANNEL, sender))
                for one in await actors.list_actors(tx)
                if one.id != context.actor.id
                for channel, sender in await actors.identities_of(tx, one.id)
                if channel == CHANNEL
            ]

    async def _contacts(
        self, context: TurnContext, state: TurnState, said: str
    ) -> list[tuple[str, str]]:
        """(name, recipient) of the person's contacts with an address. None where no program looks
        them up; those that cannot be read are passed over."""
        executor = context.catalog.executors.get(CONTACTS)
        if executor is None or CONTACTS in context.catalog.dormant:
            return []
        manifest, args = executor.manifest, {"query": said, "max_results": MOST_CONTACTS}
        try:
            mine = await accounts.opened(self.stores, context, manifest, {})
        except CallRefused:
            return []
        seen = await self.cage.run(
            executor,
            context.catalog.sdk,
            mine.into(document_of(context, state, manifest, args, [])),
            timeout_s=manifest.timeout_s,
            limits=manifest.limits,
        )
        found = []
        for entry in seen.entries or ():
            name, address = _plain(entry.get("name")), str(entry.get("email") or "").strip()
            if name and re.fullmatch(r"[^@\s<>]+@[^@\s<>]+", address):
                found.append((name, f"{name} <{address}>"))
        return found

    # -- to those who are paired ------------------------------------------------------------------

    async def paired(
        self, context: TurnContext, manifest: Manifest, args: Mapping[str, Any]
    ) -> list[tuple[Actor, ChatAddress, str]]:
        """Those of the home whom this sending goes to; empty when it goes to addresses. Raises
        `CallRefused` for both together, or somebody who is not there any more."""
        sinks = [name for name, kind in manifest.sinks.items() if kind == "recipient"]
        to = [str(value) for name in sinks for value in listed(args.get(name))]
        meant = [match for value in to if (match := _PAIRED.fullmatch(value))]
        if not meant or context.actor.role is not Role.HOST:
            return []
        if len(meant) < len(to):
            raise CallRefused(
                ErrorCode.INVALID_ARGS, "by mail and in Telegram at once: make two calls"
            )
        people, found = await self._people(context), []
        for match in meant:
            fit = [
                (one, where, match[0])
                for one, where in people
                if one.display_name == match["name"] and one.id.startswith(match["id"] or "")
            ]
            if len(fit) != 1:
                raise CallRefused(ErrorCode.NOT_FOUND, "nobody of that name", path=match["name"])
            found += fit
        return found

    def foreseen(
        self, people: Sequence[tuple[Actor, ChatAddress, str]], args: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """What a preview would say. Raises `CallRefused` when there is nothing to send."""
        if not _body(args) and not _files(args):
            raise CallRefused(ErrorCode.MISSING_INPUT, "a text or a file is needed")
        to = [name for _, _, name in people]
        return {"targets": to, "count": len(to), "subject": _subject(args), "body": _body(args)}

    def sending(
        self,
        context: TurnContext,
        state: TurnState,
        people: Sequence[tuple[Actor, ChatAddress, str]],
        args: Mapping[str, Any],
    ) -> tuple[Observation, Along]:
        """What came of it, and what is to be written with that in one transaction: a message in
        the outbox for each, once however often the step is walked."""
        text, files = _body(args), tuple(map(_attachment, _files(args)))

        async def along(tx: Transaction) -> None:
            for person, where, _ in people:
                lang = person.lang or context.lang
                who = self.texts.say("recipient.from", lang, name=context.actor.display_name)
                blocks = (Block("small", who), *((Block("text", text),) if text else ()))
                reply = Reply(blocks, lang, attachments=files)
                key = f"{context.turn_id}:send:{len(state.steps) + 1}:{person.id}"
                await outbox.enqueue(tx, key, where, reply.to_json(), self.clock.now())

        entries = tuple(
            {"ok": True, "to": name, "subject": _subject(args), "account": "Telegram"}
            for _, _, name in people
        )
        told = {"count": len(entries), "ok_count": len(entries), "failed_count": 0}
        seen = Observation(ok=True, entries=entries, metadata=told, effects=Effects.DONE)
        return seen, along


def _as_recipient(person: Actor, *, alone: bool) -> str:
    mark = "" if alone else f" #{person.id[:6]}"
    return f"{person.display_name}{mark} (Telegram)"


def _plain(name: Any) -> str:
    """A name without what means something in an address."""
    return " ".join(re.sub(r"[<>\",;:()\[\]\\@]", " ", str(name or "")).split())[:80]


def _body(args: Mapping[str, Any]) -> str:
    said = args.get("body")
    text = str(said.get("text") or said.get("content") or "") if isinstance(said, dict) else said
    lines = [
        " · ".join(str(e[k]) for k in _TOLD if e.get(k) and not isinstance(e[k], dict))
        for e in args.get("entries") or ()
        if isinstance(e, Mapping) and not _is_file(e)
    ]
    return "\n\n".join(part for part in (str(text or "").strip(), "\n".join(lines)) if part)


def _subject(args: Mapping[str, Any]) -> str:
    said = " ".join(str(args.get("subject") or "").split())
    first = next((line.strip() for line in _body(args).split("\n") if line.strip()), "")
    return said or first[:60] or ", ".join(Path(path).name for path in _files(args))[:60]


def _files(args: Mapping[str, Any]) -> list[str]:
    listed_ones = [str(path) for path in args.get("attachments") or ()]
    found = [str(e["path"]) for e in args.get("entries") or () if _is_file(e)]
    return list(dict.fromkeys([*listed_ones, *found]))


def _is_file(entry: Any) -> bool:
    return isinstance(entry, Mapping) and str(entry.get("path") or "").startswith("/")


def _attachment(path: str) -> Attachment:
    try:
        size = Path(path).lstat().st_size
    except OSError as exc:
        raise CallRefused(ErrorCode.NOT_FOUND, "no such file", path=path) from exc
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    return Attachment(path, Path(path).name, kind, size)
