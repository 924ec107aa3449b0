"""What a person is asked at a cap: which one it is, what was done, what a yes means."""

from __future__ import annotations

from core.catalog.loader import Catalog
from core.execution import guards
from core.levels.renderer import Renderer
from core.levels.terminator import Terminator
from core.turn_state import MOST, Cap, TurnState


def words_at_cap(
    state: TurnState, terminator: Terminator, renderer: Renderer, catalog: Catalog
) -> str:
    """The question of a turn that waits at a cap (`state.capped`), "" when it does not."""
    refused = state.capped
    error = None if refused is None else refused.observation.error
    cap = guards.cap_of(error)
    if refused is None or error is None or cap is None:
        return ""
    say, lang = renderer.texts.say, renderer.lang
    if cap is Cap.DAY:
        told = terminator.so_far(state.steps, renderer)
        return "\n".join([say("cap.ask.day", lang), told, say("cap.more.day", lang)])
    limit, doing = error.params["limit"], refused.tool
    if refused.tool in catalog.executors:
        doing = catalog.executors[refused.tool].manifest.phrase[lang]
    elif cap is not Cap.STEPS:
        doing = say("progress.working", lang)
    key = f"cap.ask.{cap.value}"
    if cap is Cap.STEPS and state.plan is not None and len(state.steps) < limit:
        # Told before anything ran: the plan itself is too long.
        asked = say("cap.ask.plan", lang, count=len(state.plan.steps), limit=limit)
    else:
        asked = say(key, lang, limit=limit, doing=doing)
    good = sum(record.observation.ok for record in state.steps)
    done = [say("cap.so_far", lang, count=len(state.steps), good=good)] if state.steps else []
    done.append(terminator.so_far(state.steps, renderer))
    more = say(
        "cap.more.steps" if cap is Cap.STEPS else "cap.more.uses", lang, count=2 * MOST[cap]
    )
    return "\n".join([asked, *done, more])
