"""A question as a channel shows it: card or prompt, buttons with their tokens, and the suspension
that stands behind it. Makes, and stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from core import dialogs
from core.clock import new_token
from core.dialogs import (
    Answer,
    Field,
    FieldKind,
    Suspension,
    SuspensionKind,
    is_private,
    ttl_of,
    with_answer,
)
from core.execution import cards
from core.execution.consent import ALWAYS, CHANGE, TYPE, Decision, Question, Shape
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.messages import Block, Button, ChatAddress, Expects, FinalKind, Reply
from core.redaction import redact
from core.turn_fields import MOST_BUTTONS, choices_of, listed, notes
from core.turn_state import TurnState

CANCEL = "cancel"
_ROW = 2
_MOST_REQUEST = 120
_TYPED = frozenset(
    {
        FieldKind.TEXT,
        FieldKind.SECRET,
        FieldKind.NUMBER,
        FieldKind.DATE,
        FieldKind.FILE_PATH,
    }
)
_MOST_CHARS = {
    FieldKind.TEXT: dialogs.MAX_TEXT,
    FieldKind.SECRET: dialogs.MAX_SECRET,
    FieldKind.FILE_PATH: dialogs.MAX_PATH,
    FieldKind.LOCATION: dialogs.MAX_ADDRESS,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A question ready to be stored and shown. `tokens`: button token → choice."""

    suspension: Suspension
    reply: Reply
    tokens: Mapping[str, str]


def ask(
    question: Question,
    context: TurnContext,
    state: TurnState,
    texts: Texts,
    *,
    question_id: str,
    now: datetime,
) -> Asked:
    """Put a question to the person: open it now, for as long as its kind allows; where nobody
    reads along, if it is for them alone."""
    apart = question.apart or is_private(question.kind, question.fields)
    private = context.alone is not None and apart
    place = context.alone if private and context.alone is not None else context.address
    suspension = Suspension(
        id=question_id,
        kind=question.kind,
        turn_id=context.turn_id,
        actor_id=context.actor.id,
        conversation=place.key,
        created_at=now,
        expires_at=now
        + ttl_of(question.kind, scheduled=context.scheduled, wished_s=question.expires_s),
        fields=question.fields,
        digest=question.digest,
        prompt_key=f"{context.turn_id}:ask:{question_id[:12]}",
        data={
            "question": question.to_json(),
            "programs": programs_of(context, state),
            "asked_at": context.now.isoformat(),
            "quoted": context.quoted,
            "files": list(context.files),
            "files_before": list(context.files_before),
            "scheduled": context.scheduled,
            "talk": [[e.request, e.answer, e.external] for e in context.conversation],
            "alone": None if context.alone is None else context.alone.key,
        },
    )
    return show(suspension, context, texts)


def again(
    suspension: Suspension, context: TurnContext, texts: Texts, *, question_id: str, whole: bool
) -> Asked:
    """The same question anew, at the field it has come to, until when it was open before.
    `whole`: with all that it is about."""
    return show(
        replace(
            suspension,
            id=question_id,
            prompt_key=f"{context.turn_id}:ask:{question_id[:12]}",
            message_id=None,
        ),
        context,
        texts,
        whole=whole,
    )


def show(
    suspension: Suspension, context: TurnContext, texts: Texts, *, whole: bool = False
) -> Asked:
    """Draw what is asked now, with fresh buttons."""
    lang = context.lang
    renderer = Renderer(texts, lang, context.tz, context.scope.home)
    question = question_of(suspension)
    field = suspension.asked
    worded = question.text or suspension.fields
    if suspension.kind is SuspensionKind.APPROVAL and (question.targets or not worded):
        blocks = cards.card(question, renderer, expires_at=suspension.expires_at, whole=whole)
    else:
        prompt = field.prompt or question.text or _where(question, texts, lang)
        if question.shape is Shape.RECIPIENT:
            prompt = texts.say("consent.which_recipient", lang)
        if suspension.matches or suspension.is_typing:
            key = "dialog.which_place" if suspension.matches else "dialog.type_address"
            prompt = texts.say(key, lang)
        end = cards.until(suspension.expires_at, texts, lang, context.tz)
        small = [*notes(suspension, field, texts, lang), end]
        options = listed(field, always=bool(suspension.matches))
        blocks = (Block("text", prompt + options), Block("small", " · ".join(small)))
    if suspension.conversation != context.address.key:
        request = redact(" ".join(context.request.split()))
        if len(request) > _MOST_REQUEST:
            request = f"{request[: _MOST_REQUEST - 1]}…"
        blocks = (Block("text", texts.say("dialog.about", lang, request=request)), *blocks)
    if suspension.kind is SuspensionKind.APPROVAL:
        choices = cards.choices(question, texts, lang, whole=whole)
    else:
        choices = choices_of(suspension, field, texts, lang)
        if field.kind is FieldKind.LOCATION and not suspension.is_typing:
            choices.append((TYPE, texts.say("dialog.type", lang)))
        if suspension.kind is not SuspensionKind.CAP:
            choices.append((CANCEL, texts.say("dialog.cancel", lang)))
    tokens = {new_token(): choice for choice, _ in choices}
    buttons = [Button(label, token) for token, (_, label) in zip(tokens, choices, strict=True)]
    rows = [tuple(buttons[at : at + _ROW]) for at in range(0, len(buttons), _ROW)]
    many = len(field.options) > MOST_BUTTONS
    typed = field.kind in _TYPED or suspension.is_typing or many
    expects: Expects = "text" if typed else "tap"
    if field.kind is FieldKind.LOCATION and not suspension.is_typing:
        expects = "location"
        rows.insert(0, (Button(texts.say("dialog.send_location", lang), kind="location"),))
    kind = (
        FinalKind.NEEDS_INPUTS if suspension.kind is SuspensionKind.INPUTS else FinalKind.AWAITING
    )
    reply = Reply(
        tuple(blocks),
        lang,
        context.turn_id,
        kind,
        buttons=tuple(rows),
        expects=expects,
        secret=field.kind is FieldKind.SECRET,
    )
    return Asked(suspension, reply, tokens)


def question_of(suspension: Suspension) -> Question:
    return Question.from_json(
        suspension.kind, suspension.digest, suspension.data.get("question") or {}
    )


def decided(
    suspension: Suspension, answer: Answer | None, choice: str | None
) -> tuple[Decision, str]:
    """What an answer to the last field decides (None: the question is dropped, which for an
    approval is a no), and the text that says so in the question's place."""
    if not is_whole(suspension):
        return Decision(False), "dialog.cancelled"
    at_cap = suspension.kind is SuspensionKind.CAP
    approval = at_cap or (suspension.kind is SuspensionKind.APPROVAL and not suspension.fields)
    agreed = answer is not None and (not approval or answer.value is True)
    decision = Decision(
        agreed,
        suspension.digest if agreed and choice != CHANGE else None,
        {} if answer is None else with_answer(suspension, answer),
        choice,
        question_of(suspension).changed,
    )
    if not approval:
        chosen = suspension.asked.kind is FieldKind.CHOICE
        answered = "dialog.chosen" if chosen else "dialog.answered"
        return decision, "dialog.cancelled" if answer is None else answered
    if at_cap:
        return decision, "cap.extended" if agreed else "cap.left"
    if not agreed:
        return decision, "dialog.declined"
    keys = {ALWAYS: "dialog.approved_always", CHANGE: "dialog.changing"}
    return decision, keys.get(choice or "", "dialog.approved")


def is_whole(suspension: Suspension) -> bool:
    """Whether all is there that going on needs: what of a row is damaged reads as nothing, and
    nothing must not stand for "no program to compare" or "no field to fill in"."""
    filled_in = suspension.kind in {SuspensionKind.INPUTS, SuspensionKind.DISAMBIGUATION}
    return "asked_at" in suspension.data and bool(suspension.fields or not filled_in)


def shape_of(field: Field, texts: Texts, lang: str) -> str:
    """What would be an answer to a field, in words."""
    kind = field.kind.value
    return texts.say(f"dialog.shape.{kind}", lang, most=_MOST_CHARS.get(field.kind))


def talk_of(data: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """What had been said before a question, from its data: request, answer, and whether the answer
    holds what came from outside. An older row does not say the last."""

    def exchange(said: str, replied: str, external: bool = False) -> tuple[str, str, bool]:
        return said, replied, external

    return [exchange(*one) for one in data.get("talk", ())]


def alone_of(data: Mapping[str, Any]) -> ChatAddress | None:
    """Where the person can be asked alone in the rest of a turn, from its question's data."""
    key = data.get("alone")
    return ChatAddress.from_key(key) if isinstance(key, str) and key.count(":") > 1 else None


def programs_of(context: TurnContext, state: TurnState) -> dict[str, str]:
    """Digests of the programs that the rest of this turn has been promised with."""
    names = [call.tool for call in state.pending]
    if state.plan is not None:
        names += [step.tool for step in state.plan.steps[state.next_step :]]
    known = context.catalog.executors
    return {name: known[name].manifest.digest for name in names if name in known}


def are_same(programs: Mapping[str, Any], context: TurnContext) -> bool:
    """Whether these programs are still there, and the very same."""
    known = context.catalog.executors
    return all(
        name in known and known[name].manifest.digest == digest
        for name, digest in programs.items()
    )


def _where(question: Question, texts: Texts, lang: str) -> str:
    """What is said for the place of the person when nobody worded it."""
    if not question.targets:
        return texts.say("dialog.where", lang)
    what = texts.list([target[:80] for target in question.targets], lang)
    return texts.say("dialog.where_for", lang, what=what)
