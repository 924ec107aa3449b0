"""What crosses the door between a channel and the engine, both ways.

Knows no channel: addresses and message references are opaque strings here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from core.errors import ErrorInfo


@dataclass(frozen=True, slots=True)
class ChatAddress:
    """Where a conversation is: channel, chat and topic. The key of order and of memory."""

    channel: str
    chat_id: str
    thread_id: str | None = None

    @property
    def key(self) -> str:
        return f"{self.channel}:{self.chat_id}:{self.thread_id or ''}"

    @classmethod
    def from_key(cls, key: str) -> ChatAddress:
        channel, chat_id, thread_id = key.split(":", 2)
        return cls(channel, chat_id, thread_id or None)


class Role(StrEnum):
    HOST = "host"
    GUEST = "guest"


class Autonomy(StrEnum):
    READ_ONLY = "read_only"
    SUPERVISED = "supervised"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Actor:
    """A person whom the house knows. `id` is a uuid and the key of everything that is theirs.

    `turns_per_hour`, `tokens_per_day` and `money_per_day` are limits of their own: None for what
    the settings say, 0 for none at all.
    """

    id: str
    role: Role
    display_name: str
    autonomy: Autonomy = Autonomy.SUPERVISED
    lang: str | None = None
    tz: str | None = None
    turns_per_hour: int | None = None
    tokens_per_day: int | None = None
    money_per_day: float | None = None


class InboundKind(StrEnum):
    TEXT = "text"
    LOCATION = "location"
    CHOICE = "choice"
    FILE = "file"
    VOICE = "voice"
    SCHEDULED = "scheduled"
    REACTION = "reaction"


@dataclass(frozen=True, slots=True)
class Inbound:
    """One thing a person (or a due task) says to the engine.

    `id` is unique over all time and makes a turn run once however often it is delivered.
    `sender_id` is the channel's numeric user id as text; the engine resolves it to an actor.
    `message_ref` names the person's message in the channel, for replies. `quoted` is what the
    message replies to or forwards: data, never an order. `data` holds what belongs to its kind;
    `"interactive": False` says that nobody is there to answer a question. `alone`, where others
    read along, is where this person can be asked without them.
    """

    id: str
    address: ChatAddress
    sender_id: str
    kind: InboundKind
    text: str
    received_at: datetime
    sender_name: str = ""
    lang: str | None = None
    message_ref: str | None = None
    quoted: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    alone: ChatAddress | None = None

    @property
    def is_interactive(self) -> bool:
        return self.data.get("interactive") is not False


class FinalKind(StrEnum):
    ANSWER = "answer"
    ASK = "ask"
    AWAITING = "awaiting"
    NEEDS_INPUTS = "needs_inputs"
    CAP_STEPS = "cap_steps"
    CAP_SAME_EXECUTOR = "cap_same_executor"
    LOOP_BREAK = "loop_break"
    ERROR = "error"


BlockKind = Literal["prose", "text", "code", "small"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a reply. `prose` is Markdown written by a model; `text` is plain and shown as it
    stands; `code` is monospaced; `small` is a reference or a note in small type. `rest`: items of
    the list in it that are not shown; a turn's end makes a button of them."""

    kind: BlockKind
    text: str
    rest: tuple[str, ...] = ()


ButtonKind = Literal["tap", "location"]


@dataclass(frozen=True, slots=True)
class Button:
    """Something to press. `token` is opaque (at most 64 bytes) and means a row of the store; a
    `location` button shares the person's place and has no token."""

    label: str
    token: str = ""
    kind: ButtonKind = "tap"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that goes along with a reply: the canonical path of a regular file that its person
    may read, the name it is to have, and its size in bytes when that was decided."""

    path: str
    name: str
    media_type: str = "application/octet-stream"
    size: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "name": self.name,
            "media_type": self.media_type,
            "size": self.size,
        }


Expects = Literal["tap", "text", "location"]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person is told. Blocks are shown in order, apart from each other by an empty line
    (`small` by a line break).

    A question `expects` a tap, a text or a place, and may have `buttons`, row by row; `secret`
    says that the answer is to be taken out of the chat. Buttons of a reply that expects nothing
    are things that can be done about it, now or later. `attachments` follow the words. `answers`
    names the person's message that it answers, where others speak too.
    """

    blocks: tuple[Block, ...]
    lang: str
    turn_id: str | None = None
    final_kind: FinalKind = FinalKind.ANSWER
    repeated: bool = False
    buttons: tuple[tuple[Button, ...], ...] = ()
    expects: Expects | None = None
    secret: bool = False
    attachments: tuple[Attachment, ...] = ()
    answers: str | None = None

    @property
    def plain(self) -> str:
        """All blocks as plain text, for terminals, logs and fallbacks."""
        return "\n\n".join(block.text for block in self.blocks if block.text)

    def to_json(self) -> dict[str, Any]:
        return {
            "blocks": [[block.kind, block.text] for block in self.blocks],
            "lang": self.lang,
            "turn_id": self.turn_id,
            "final_kind": self.final_kind.value,
            "repeated": self.repeated,
            "buttons": [[[b.label, b.token, b.kind] for b in row] for row in self.buttons],
            "expects": self.expects,
            "secret": self.secret,
            **(
                {"attachments": [file.to_json() for file in self.attachments]}
                if self.attachments
                else {}
            ),
            "answers": self.answers,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Reply:
        return cls(
            tuple(Block(kind, text) for kind, text in data["blocks"]),
            data["lang"],
            data.get("turn_id"),
            FinalKind(data.get("final_kind", "answer")),
            data.get("repeated") is True,
            tuple(tuple(Button(*b) for b in row) for row in data.get("buttons") or ()),
            data.get("expects"),
            data.get("secret") is True,
            tuple(Attachment(**file) for file in data.get("attachments") or ()),
            data.get("answers"),
        )


# -- events of a turn: progress may be dropped, the last one never is -------------------------


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """`answers` names the person's message that the turn is about."""

    turn_id: str
    lang: str
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class StepStarted:
    """`phrase` is what the step is doing, in the person's words and language."""

    turn_id: str
    number: int
    tool: str
    phrase: str


@dataclass(frozen=True, slots=True)
class StepProgress:
    turn_id: str
    number: int
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class StepFinished:
    turn_id: str
    number: int
    tool: str
    ok: bool


@dataclass(frozen=True, slots=True)
class TextGrew:
    """`text` is the answer so far, as Markdown, as far as it may be seen already. A later one
    takes its place; the answer itself always comes with the end."""

    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class QuestionSettled:
    """A question was answered, refused or ran out: what stands in its place now. `outbox_key` is
    the row that showed it (None: the channel has no outbox)."""

    turn_id: str
    text: str
    outbox_key: str | None = None


@dataclass(frozen=True, slots=True)
class ButtonsChanged:
    """Other buttons, those of `reply`, stand under an answer from now on. The change stands in the
    outbox already (`outbox_key` is the row that showed the answer; None: no outbox)."""

    turn_id: str
    reply: Reply
    outbox_key: str | None = None


@dataclass(frozen=True, slots=True)
class TurnSuspended:
    """The turn waits for an answer, in the store and nowhere else. The question stands in the
    outbox under `outbox_key` already (None: the channel shows `reply` itself)."""

    turn_id: str
    reply: Reply
    outbox_key: str | None = None


@dataclass(frozen=True, slots=True)
class TurnClosed:
    """Emitted after the commit that closed the turn. The reply stands in the outbox under
    `outbox_key` already (None: the channel has no outbox and shows `reply` itself)."""

    turn_id: str
    final_kind: FinalKind
    reply: Reply
    error: ErrorInfo | None = None
    outbox_key: str | None = None


TurnEvent = (
    TurnStarted
    | StepStarted
    | StepProgress
    | StepFinished
    | TextGrew
    | QuestionSettled
    | ButtonsChanged
    | TurnSuspended
    | TurnClosed
)
