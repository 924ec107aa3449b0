"""What a step must ask a person before it goes on, and what they said.

An approval is bound to a digest of what exactly was shown: tool, resolved arguments, preview and
manifest. Anything else that digest does not fit is asked again (S8, C5).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from core.catalog.manifest import Manifest
from core.dialogs import Field, FieldKind, SuspensionKind
from core.execution.context import TurnContext
from core.execution.values import listed
from core.redaction import hide_handles

# What can be said to a question: yes, yes from now on, no, show me all, to somebody else, and that
# an address is going to be typed.
YES, ALWAYS, NO, LIST, CHANGE, TYPE = "yes", "always", "no", "list", "change", "type"

# A list this short stands in the card itself; a longer one has a button.
MOST_NAMED = 3
MOST_SUBJECT = 120


@dataclass(frozen=True, slots=True)
class Source:
    """Where a wish came from: `read` a page or file (`name`), `quoted` in the message, said before
    in the `talk`, or `unknown`."""

    kind: str
    name: str = ""


class Shape(StrEnum):
    """What a question of consent is about: a change, addresses to be opened, or a sending."""

    CHANGE = "change"
    ADDRESS = "address"
    RECIPIENT = "recipient"


@dataclass(frozen=True, slots=True)
class Question:
    """What a step waits for. `targets`, `count` and `size` (bytes) come from its preview.

    `source` says where a wish came from that the person did not utter, `addresses` are those that
    a model composed, `subject` is the first line of what would be sent. `brief`: the person has
    agreed to the like before, a line is enough. `may_always`: a yes may be one for good.
    `changeable` names the argument whose only recipient the person may put another in the place
    of, `changed` holds arguments that they did so with. `parts`: what goes out of a target that
    stays where it is. `text` is what is asked, for the kinds
    that have no card; `fields` what is to be filled in. `apart`: it is for the person alone,
    whatever it asks.
    """

    kind: SuspensionKind
    tool: str
    digest: str | None = None
    targets: tuple[str, ...] = ()
    count: int = 0
    size: int | None = None
    destination: str | None = None
    source: Source | None = None
    reversible: bool = False
    text: str = ""
    fields: tuple[Field, ...] = ()
    expires_s: int | None = None
    shape: Shape = Shape.CHANGE
    addresses: tuple[str, ...] = ()
    subject: str = ""
    brief: bool = False
    may_always: bool = False
    changeable: str | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)
    apart: bool = False
    parts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The parts that the card is drawn from, and what goes on with the answer."""
        source = self.source
        return {
            "tool": self.tool,
            "targets": list(self.targets),
            "count": self.count,
            "size": self.size,
            "destination": self.destination,
            "source": None if source is None else [source.kind, source.name],
            "reversible": self.reversible,
            "text": self.text,
            "shape": self.shape.value,
            "addresses": list(self.addresses),
            "subject": self.subject,
            "brief": self.brief,
            "may_always": self.may_always,
            "changeable": self.changeable,
            "changed": dict(self.changed),
            "parts": list(self.parts),
        }

    @classmethod
    def from_json(
        cls, kind: SuspensionKind, digest: str | None, data: Mapping[str, Any]
    ) -> Question:
        """Read back what `to_json` made; a question that an older version stored has less."""
        source = data.get("source")
        if isinstance(source, str):
            source = ["read", source]
        return cls(
            kind,
            digest=digest,
            **{
                **data,
                "targets": tuple(data["targets"]),
                "addresses": tuple(data.get("addresses", ())),
                "parts": tuple(data.get("parts", ())),
                "shape": Shape(data.get("shape", Shape.CHANGE)),
                "source": None if source is None else Source(*source),
            },
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """What the person said to a question. `digest` is what they saw when they agreed, `choice` the
    button; `values` are the fields they filled in, `changed` the arguments that they had put in
    the place of others when they were asked."""

    agreed: bool
    digest: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    choice: str | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)


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
    source: Source | None,
    addresses: Sequence[str] = (),
) -> Question:
    """The question of a change that needs consent, from what its preview found. With `addresses`
    that a model composed it names these too."""
    size, destination = preview.get("bytes"), args.get("dst")
    to = recipients_of(args, manifest)
    names = [
        name for name, kind in manifest.sinks.items() if kind == "recipient" and args.get(name)
    ]
    return Question(
        SuspensionKind.APPROVAL,
        manifest.name,
        digest,
        tuple(map(hide_handles, to or targets or addresses)),
        int(preview.get("count", len(targets))),
        size if isinstance(size, int) else None,
        destination if isinstance(destination, str) else None,
        source,
        can_be_undone(manifest, preview),
        shape=Shape.RECIPIENT if to else Shape.CHANGE,
        addresses=tuple(addresses),
        subject=_subject(preview, args) if to else "",
        changeable=names[0] if len(to) == 1 else None,
        parts=tuple(hide_handles(str(one)) for one in preview.get("parts", ())),
    )


def can_be_undone(manifest: Manifest, preview: Mapping[str, Any]) -> bool:
    """Whether this very change can be taken back: its preview may know of a reason against it."""
    return manifest.reversible and preview.get("undo") != []


def address_question(
    manifest: Manifest, addresses: Sequence[str], *, digest: str, source: Source | None
) -> Question:
    """Whether addresses that a model composed may be opened."""
    return Question(
        SuspensionKind.APPROVAL,
        manifest.name,
        digest,
        tuple(addresses),
        len(addresses),
        source=source,
        shape=Shape.ADDRESS,
        addresses=tuple(addresses),
    )


def which_recipient(tool: str, argument: str) -> Question:
    """To whom else something is to be sent. The answer comes under the argument's name."""
    asked = Field(argument, "", FieldKind.TEXT)
    return Question(SuspensionKind.INPUTS, tool, fields=(asked,), shape=Shape.RECIPIENT)


def changed_by(decision: Decision, tool: str, context: TurnContext) -> Mapping[str, Any]:
    """The arguments that the person has put another value in for: recipients, and nothing else.
    What they typed just now goes before what they typed earlier. `to.1` is the second of several:
    see `one_of_several`."""
    executor = context.catalog.executors.get(tool)
    if executor is None:
        return {}
    manifest, found = executor.manifest, dict(decision.changed)
    for name, value in decision.values.items():
        if manifest.sinks.get(name) == "recipient" and isinstance(value, str):
            is_list = manifest.properties[name].get("type") == "array"
            found[name] = [value.strip()] if is_list else value.strip()
        argument, dot, place = name.partition(".")
        if dot and place.isdecimal() and manifest.sinks.get(argument) == "recipient":
            found[name] = str(value).strip()
    return found


def one_of_several(argument: str, place: int) -> str:
    """The name under which an answer stands for one item of an argument, the others kept."""
    return f"{argument}.{place}"


def recipients_of(args: Mapping[str, Any], manifest: Manifest) -> list[str]:
    """Everybody whom the change would send something to, each once."""
    found = [
        str(value)
        for name, kind in manifest.sinks.items()
        if kind == "recipient"
        for value in listed(args.get(name))
    ]
    return list(dict.fromkeys(found))


def _subject(preview: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """The subject of what would be sent, or the first line of its text."""
    for place in (preview, args):
        for name in ("subject", "title", "text", "body", "content"):
            value = place.get(name)
            lines = value.split("\n") if isinstance(value, str) else []
            first = next((" ".join(line.split()) for line in lines if line.strip()), "")
            if first:
                return first if len(first) <= MOST_SUBJECT else f"{first[: MOST_SUBJECT - 1]}…"
    return ""
