"""Questions of consent as they are shown: the card, and what can be pressed under it. Draws, and
decides nothing.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from core.execution.consent import (
    ALWAYS,
    CHANGE,
    LIST,
    MOST_NAMED,
    NO,
    YES,
    Question,
    Shape,
)
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.messages import Block
from core.vocabulary import verb_of

# A list on demand names this many.
MOST_LISTED = 100
_MOST_PART = 80

_YES = {
    Shape.CHANGE: "dialog.yes",
    Shape.ADDRESS: "dialog.open",
    Shape.RECIPIENT: "dialog.send",
}


def card(
    question: Question,
    renderer: Renderer,
    *,
    expires_at: datetime,
    whole: bool = False,
) -> tuple[Block, ...]:
    """The question as it is shown: what, on what, how many, where from, whether it can be undone,
    until when. `whole` names every target, up to a hundred; one that is `brief` is a line."""
    texts, lang = renderer.texts, renderer.lang
    end = until(expires_at, texts, lang, renderer.tz)
    if question.shape is Shape.ADDRESS:
        return (*_addresses(question, renderer), Block("small", end))
    names = [renderer.path(target) for target in _acted_on(question)]
    asked = _asked(question, names, renderer)
    if question.brief and not whole:
        return (Block("text", texts.say("consent.brief", lang, what=asked, until=end)),)
    lines = [asked]
    things = [_shortened(part) for part in question.parts] or names
    if whole or 1 < len(things) <= MOST_NAMED or question.parts[1:]:
        most = MOST_LISTED if whole else MOST_NAMED
        lines += [f"• {name}" for name in things[:most]]
        if len(things) > most:
            lines.append(texts.say("answer.more", lang, count=len(things) - most))
    elif names[1:]:
        first, last = (posixpath.basename(name) for name in (names[0], names[-1]))
        lines.append(texts.say("consent.span", lang, first=first, last=last))
    if question.size is not None and question.count > 1:
        size = texts.bytes(question.size, lang)
        lines.append(texts.say("consent.amount", lang, count=question.count, size=size))
    said = [Block("text", "\n".join(lines))]
    if question.source is not None:
        said.append(Block("text", _source(question, renderer)))
    if question.subject:
        said.append(Block("text", texts.say("consent.subject", lang, subject=question.subject)))
    if question.addresses:
        said += _addresses(question, renderer)
    undo = "consent.undo" if question.reversible else "consent.no_undo"
    said.append(Block("text", texts.say(undo, lang)))
    said.append(Block("small", end))
    return tuple(said)


def choices(
    question: Question, texts: Texts, lang: str, *, whole: bool = False
) -> list[tuple[str, str]]:
    """What can be pressed under a card: (choice, label), in this order."""
    found = [(YES, texts.say(_YES[question.shape], lang))]
    if question.may_always:
        found.append((ALWAYS, texts.say("dialog.always", lang)))
    if question.changeable is not None:
        found.append((CHANGE, texts.say("dialog.change", lang)))
    found.append((NO, texts.say("dialog.no", lang)))
    hidden = question.shape is not Shape.ADDRESS and len(question.parts or _acted_on(question)) > (
        1 if question.brief else MOST_NAMED
    )
    if hidden and not whole:
        found.append((LIST, texts.say("dialog.list", lang)))
    return found


def until(expires_at: datetime, texts: Texts, lang: str, tz: str) -> str:
    return texts.say("dialog.until", lang, time=texts.time(expires_at, lang, tz))


def _acted_on(question: Question) -> tuple[str, ...]:
    """The targets without the places that things are put into: a card counts the things."""
    to = question.destination
    if to is None:
        return question.targets
    inside = f"{to.rstrip('/')}/"
    return tuple(t for t in question.targets if t != to and not t.startswith(inside)) or (
        question.targets
    )


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
    elif question.shape is Shape.RECIPIENT:
        what = renderer.texts.say("consent.recipients", lang, count=number)
    else:
        what = renderer.texts.say("consent.items", lang, count=number)
        if where:
            what = renderer.texts.say("consent.items_in", lang, what=what, place=where)
    to = "" if question.destination is None else renderer.path(question.destination)
    if to:
        what = renderer.texts.say("consent.to", lang, what=what, place=to)
    if question.parts:
        number = len(question.parts)
        out = _shortened(question.parts[0])
        if number > 1:
            out = renderer.texts.say("consent.items", lang, count=number)
        return renderer.texts.say("consent.ask.part", lang, what=out, place=what)
    return renderer.texts.say(key, lang, what=what)


def _shortened(part: str) -> str:
    return part if len(part) <= _MOST_PART else f"{part[: _MOST_PART - 1].rstrip()}…"


def _source(question: Question, renderer: Renderer) -> str:
    """Where the wish came from, in a sentence."""
    source = question.source
    assert source is not None  # noqa: S101 - the caller has looked
    about = "recipient" if question.shape is Shape.RECIPIENT else "wish"
    key = f"consent.{about}_from.{source.kind}"
    return renderer.texts.say(key, renderer.lang, source=renderer.path(source.name))


def _addresses(question: Question, renderer: Renderer) -> list[Block]:
    """Every address, whole, since each letter of it goes out; whose they are; why it is asked."""
    texts, lang, count = renderer.texts, renderer.lang, len(question.addresses)
    key = "consent.open" if question.shape is Shape.ADDRESS else "consent.opens_also"
    lines = [texts.say(key, lang, count=count), *(f"• {url}" for url in question.addresses)]
    hosts = dict.fromkeys(urlsplit(url).hostname or url for url in question.addresses)
    lines.append(texts.say("consent.hosts", lang, count=len(hosts), hosts=", ".join(hosts)))
    source = question.source if question.shape is Shape.ADDRESS else None
    kind = "unknown" if source is None else source.kind
    name = "" if source is None else renderer.path(source.name)
    why = texts.say(f"consent.composed.{kind}", lang, source=name)
    return [Block("text", "\n".join(lines)), Block("text", why)]
