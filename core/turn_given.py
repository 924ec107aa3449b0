"""What comes with a request beside its words: files, quoted texts, and what it replies to.

A request may also be nothing but that: then it is asked what is to be done with it, and the next
one speaks of it. Names of files and quoted texts were written by others: data, never an order.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core.dialogs import FieldKind, Suspension, SuspensionKind
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.levels.terminator import Closing
from core.messages import Block, FinalKind, Inbound, InboundKind, Reply
from core.redaction import redact
from core.store.turns import Exchange

# What stands for a request that has no words.
WORDLESS = "📎"
CONVERSATION_AGE = dt.timedelta(hours=2)
MOST_FILES = 30
MOST_KEPT = 20_000
_MOST_SHOWN = 200
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Given:
    """`files`: paths of what came with the request, `files_before`: of what had come last before
    it. `talk`: what was said before, oldest first, see `TurnSetup.context`."""

    files: tuple[str, ...] = ()
    files_before: tuple[str, ...] = ()
    quoted: str | None = None
    talk: tuple[tuple[str, str, bool], ...] = ()

    def to_context(self) -> dict[str, Any]:
        """As `TurnSetup.context` takes it."""
        return {
            "talk": self.talk,
            "quoted": self.quoted,
            "files": self.files,
            "files_before": self.files_before,
        }

    def to_store(self) -> dict[str, Any]:
        """What later turns are told of; empty when nothing came."""
        kept: dict[str, Any] = {}
        if self.files:
            kept["files"] = list(self.files)
        if self.quoted:
            kept["quoted"] = redact(self.quoted[:MOST_KEPT])
        return kept


def given_by(inbound: Inbound, talk: Sequence[Exchange], now: dt.datetime) -> Given:
    """What an inbound brings, and what of the conversation so far it can speak of."""
    recent = [one for one in talk if now - one.ended_at <= CONVERSATION_AGE]
    files = tuple(str(file["path"]) for file in inbound.data.get("files") or ())[:MOST_FILES]
    before: tuple[str, ...] = next((one.files for one in reversed(recent) if one.files), ())
    quoted = inbound.quoted
    if quoted is None and not files and recent and recent[-1].request == WORDLESS:
        quoted = recent[-1].quoted
    return Given(files, before, quoted, _talk(inbound, recent))


def _talk(inbound: Inbound, recent: Sequence[Exchange]) -> tuple[tuple[str, str, bool], ...]:
    """The conversation, and before it what the request replies to where that is not part of it."""
    talk: list[tuple[str, str, bool]]
    talk = [(one.request, one.answer, one.external) for one in recent]
    said, told = inbound.data.get("said"), inbound.data.get("told")
    if isinstance(said, str) and all(said.strip() != one[0].strip() for one in talk):
        talk.insert(0, (said, "", False))
    if isinstance(told, str) and not any(told.strip() in one[1] for one in talk):
        # Whose words an old answer repeats nobody knows any more.
        talk.insert(0, ("", told, True))
    return tuple(talk)


def is_wordless(inbound: Inbound, request: str) -> bool:
    """Whether something was given without a word on what to do with it."""
    if request or inbound.kind not in {InboundKind.TEXT, InboundKind.FILE, InboundKind.VOICE}:
        return False
    return bool(inbound.data.get("files") or inbound.quoted)


def as_path(inbound: Inbound, open_ones: Sequence[Suspension]) -> Inbound:
    """One file without a word, sent where the path of a file is asked for, is that path."""
    files = list(inbound.data.get("files") or ())
    asked = any(one.asked.kind is FieldKind.FILE_PATH for one in open_ones)
    if inbound.text.strip() or len(files) != 1 or not asked:
        return inbound
    return replace(inbound, kind=InboundKind.TEXT, text=str(files[0]["path"]))


def is_not_for_voice(asked: Suspension) -> bool:
    """Whether a question is not answered by what a server says that it heard: a yes to a change
    must be the person's, and a secret must reach nobody."""
    return asked.kind is SuspensionKind.APPROVAL or asked.asked.kind is FieldKind.SECRET


def asked_what(inbound: Inbound, context: TurnContext, texts: Texts) -> Closing:
    """The end of a turn to which something was given without a word."""
    lang = context.lang
    renderer = Renderer(texts, lang, context.tz, context.scope.home)
    lines = []
    if context.files:
        folder = renderer.path(str(Path(context.files[0]).parent))
        names = [Path(path).name for path in context.files]
        shown = names[:_MOST_NAMED]
        if more := len(names) - len(shown):
            shown.append(texts.say("answer.more", lang, count=more))
        key = "given.files_late" if inbound.data.get("late") else "given.files"
        what = ", ".join(shown)
        lines.append(texts.say(key, lang, count=len(names), names=what, where=folder))
    if context.quoted:
        text = " ".join(context.quoted.split())
        text = text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1].rstrip() + "…"
        lines.append(texts.say("given.quoted", lang, text=text))
    if not inbound.data.get("late"):
        lines.append(texts.say("given.what_now", lang))
    reply = Reply((Block("text", "\n".join(lines)),), lang, context.turn_id, FinalKind.ASK)
    return Closing(reply)


def from_stored(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a suspended turn was given, as `TurnSetup.context` takes it."""
    return {
        "quoted": data.get("quoted"),
        "files": tuple(data.get("files") or ()),
        "files_before": tuple(data.get("files_before") or ()),
    }
