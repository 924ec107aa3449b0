"""The messages before the person's text: what never changes first, then today's facts (C4).

The facts stand in a message pair of their own, so that every chat template takes them and the
last user message is the person's text alone.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo

from core.execution.context import TurnContext
from core.execution.giving import wants_files
from core.i18n import Texts
from core.llm.client import Message
from core.llm.prompts import Prompts

MOST_QUOTED = 2000


def opening(context: TurnContext, prompts: Prompts, texts: Texts, *, system: str) -> list[Message]:
    """System prompt, facts of the day and the conversation so far.

    The facts go no finer than the day: the clock is a tool, and a changing minute would spoil the
    prefix. A quoted text is marked as data.
    """
    local = context.now.astimezone(ZoneInfo(context.tz))
    facts = prompts.render(
        "facts",
        context.lang,
        date=local.date().isoformat(),
        weekday=texts.weekday(local, context.lang),
        zone=context.tz,
        roots=[_short(root, context.scope.home) for root in context.scope.roots[:-1]],
        conversation=context.conversation,
        files=[_short(path, context.scope.home) for path in context.files],
        files_before=[_short(path, context.scope.home) for path in context.files_before],
        quoted=(context.quoted or "")[:MOST_QUOTED],
        gives=wants_files(context.request),
    )
    return [
        Message("system", system),
        Message("user", facts),
        Message("assistant", texts.say("model.understood", context.lang)),
    ]


def _short(path: str, home: str) -> str:
    return "~" + path[len(home) :] if path.startswith(home) else path
