"""What a step must ask a person before it goes on, what they are shown, and what they said.

An approval is bound to a digest of what exactly was shown: tool, resolved arguments, preview and
manifest. Anything else that digest does not fit is asked again (S8, C5).
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from core.catalog.manifest import Manifest
from core.dialogs import Field, SuspensionKind
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.messages import Block
from core.observation import Provenance
from core.turn_state import TurnState
from core.vocabulary import verb_of

YES, NO, LIST = "yes", "no", "list"

# A list this short stands in the card itself; a longer one has a button, and an end.
MOST_NAMED = 3
MOST_LISTED = 100


@dataclass(frozen=True, slots=True)
class Question:
    """What a step waits for. `targets`, `count` and `size` (bytes) come from its preview; `source`
    says where a wish came from that the person did not utter. `text` is what is asked, for the
    kinds that have no card; `fields` what is to be filled in."""

    kind: SuspensionKind
    tool: str
    digest: str | None = None
    targets: tuple[str, ...] = ()
    count: int = 0
    size: int | None = None
    destination: str | None = None
    source: str | None = None
    reversible: bool = False
    text: str = ""
    fields: tuple[Field, ...] = ()
    expires_s: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The parts that the card is drawn from."""
        return {
            "tool": self.tool,
            "targets": list(self.targets),
            "count": self.count,
            "size": self.size,
            "destination": self.destination,
            "source": self.source,
            "reversible": self.reversible,
            "text": self.text,
        }

    @classmethod
    def from_json(
        cls, kind: SuspensionKind, digest: str | None, data: Mapping[str, Any]
    ) -> Question:
        return cls(kind, digest=digest, **{**data, "targets": tuple(data["targets"])})


@dataclass(frozen=True, slots=True)
class Decision:
    """What the person said to a question. `digest` is what they saw when they agreed; `values` are
    the fields they filled in."""

    agreed: bool
    digest: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


class NeedsAnswer(Exception):
    """The step cannot go on before a person has answered."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.kind.value)
        self.question = question


def digest_of(tool: str, args: Mapping[str, Any], preview: Any, manifest: Manifest) -> str:
    """What an approval is given to. Any other argument, target, state or program is another."""
    shown = [tool, args, preview, manifest.digest]
    data = json.dumps(shown, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(data.encode("utf-8", "surrogatepass")).hexdigest()


def approval_for(
    manifest: Manifest,
    args: Mapping[str, Any],
    preview: Mapping[str, Any],
    targets: Sequence[str],
    *,
    digest: str,
    source: str | None,
) -> Question:
    """The question of a change that needs consent, from what its preview found."""
    size, destination = preview.get("bytes"), args.get("dst")
    return Question(
        SuspensionKind.APPROVAL,
        manifest.name,
        digest,
        tuple(targets),
        int(preview.get("count", len(targets))),
        size if isinstance(size, int) else None,
        destination if isinstance(destination, str) else None,
        source,
        manifest.reversible,
    )


def source_of(origin: Provenance, context: TurnContext, state: TurnState) -> str | None:
    """The page or file that a wish came from, when it came from outside."""
    if origin is not Provenance.EXTERNAL:
        return None
    for record in reversed(state.steps):
        if record.observation.provenance is Provenance.EXTERNAL:
            for entry in record.observation.entries or ():
                found = entry.get("final_url") or entry.get("url") or entry.get("path")
                if found:
                    return str(found)
    return context.quoted[:80] if context.quoted else "?"


def card(
    question: Question,
    renderer: Renderer,
    *,
    expires_at: datetime,
    whole: bool = False,
) -> tuple[Block, ...]:
    """The question as it is shown: what, on what, how many, where from, whether it can be undone,
    until when. `whole` names every target, up to a hundred."""
    texts, lang = renderer.texts, renderer.lang
    names = [renderer.path(target) for target in question.targets]
    lines = [_asked(question, names, renderer)]
    if whole or 1 < len(names) <= MOST_NAMED:
        lines += [f"• {name}" for name in names[:MOST_LISTED]]
        if len(names) > MOST_LISTED:
            lines.append(texts.say("answer.more", lang, count=len(names) - MOST_LISTED))
    elif names[1:]:
        first, last = (posixpath.basename(name) for name in (names[0], names[-1]))
        lines.append(texts.say("consent.span", lang, first=first, last=last))
    if question.size is not None and question.count > 1:
        size = texts.bytes(question.size, lang)
        lines.append(texts.say("consent.amount", lang, count=question.count, size=size))
    said = [Block("text", "\n".join(lines))]
    if question.source is not None:
        source = renderer.path(question.source)
        said.append(Block("text", texts.say("consent.from_outside", lang, source=source)))
    undo = "consent.undo" if question.reversible else "consent.no_undo"
    said.append(Block("text", texts.say(undo, lang)))
    said.append(Block("small", until(expires_at, texts, lang, renderer.tz)))
    return tuple(said)


def until(expires_at: datetime, texts: Texts, lang: str, tz: str) -> str:
    return texts.say("dialog.until", lang, time=texts.time(expires_at, lang, tz))


def _asked(question: Question, names: Sequence[str], renderer: Renderer) -> str:
    """The first line: the change as a question, with its target or their number and folder."""
    lang = renderer.lang
    key = f"consent.ask.{verb_of(question.tool)}"
    if not renderer.texts.has(key, lang):
        key = "consent.ask.other"
    folders = {posixpath.dirname(name) for name in names}
    where = folders.pop() if len(folders) == 1 else ""
    number = len(names)
    if number == 1:
        what = names[0]
    else:
        what = renderer.texts.say("consent.items", lang, count=number)
        if where:
            what = renderer.texts.say("consent.items_in", lang, what=what, place=where)
    to = "" if question.destination is None else renderer.path(question.destination)
    if to:
        what = renderer.texts.say("consent.to", lang, what=what, place=to)
    return renderer.texts.say(key, lang, what=what)
