"""Turns about a person's own accounts: the button that connects one, the words that ask for it,
and what is said at their end. No model is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.accounts import AccountKind
from core.errors import ErrorCode, ErrorInfo
from core.execution.account_words import (
    CREDENTIALS,
    DELETE_CREDENTIALS,
    FIND_CREDENTIALS,
    SET_CREDENTIALS,
    wish_of,
)
from core.execution.context import TurnContext
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.levels.runner import Outcome
from core.levels.terminator import Closing
from core.messages import Block, Reply, Role
from core.observation import Observation
from core.plan import Plan, Step
from core.store import turns
from core.store.stores import Stores
from core.turn_actions import Act, Press
from core.turn_offers import AGAIN, Offer, Rows, is_kept
from core.turn_state import TurnState

ENGINE = "accounts"
CONNECT = "account.connect"


def begun(state: TurnState, context: TurnContext) -> TurnState:
    """The state of a turn that is about accounts, by its words; any other as it is."""
    if state.engine or state.plan is not None or state.steps:
        return state
    wish = wish_of(context.request)
    return state if wish is None else _with(state, wish)


def _with(state: TurnState, step: Step) -> TurnState:
    return replace(state, plan=Plan((step,)), engine=ENGINE, candidates=tuple(sorted(CREDENTIALS)))


@dataclass(frozen=True, slots=True)
class Connect:
    stores: Stores

    async def press(self, press: Press) -> Act:
        """Begin the form in a turn of its own. The one that the button stands under can be asked
        for again at its end."""
        params = press.action.params
        async with self.stores.main.read() as tx:
            stored = await turns.get(tx, press.action.turn_id)
        if stored is None:
            return Act()
        args = {
            key: str(params[key]) for key in ("kind", "name", "home", "again") if params.get(key)
        }
        state = TurnState("", stored.request)
        return Act(
            settles="action.account.pressed", begins=_with(state, Step(SET_CREDENTIALS, args))
        )


def offers_of(context: TurnContext, outcome: Outcome) -> Rows:
    """What the end of a turn offers about accounts: to connect the one that is missing, to correct
    the password that a server refuses, or to ask again now that it is there."""
    if outcome.question is not None:
        return ()
    last = outcome.state.steps[-1] if outcome.state.steps else None
    if outcome.state.engine == ENGINE and last is not None and last.observation.ok:
        return _after(last.tool, last.observation, _plan_args(outcome.state))
    error = outcome.error or (None if last is None else last.observation.error)
    again = _plan_args(outcome.state).get("again", "")
    if outcome.state.engine != ENGINE and is_kept(context.request):
        again = context.turn_id
    match error:
        case ErrorInfo(ErrorCode.NEEDS_CREDENTIALS, {"kind": str(kind)}):
            return _button("add", kind=kind, again=again)
        case ErrorInfo(ErrorCode.WRONG_CREDENTIALS, {"name": str(name)}):
            return _button("fix", name=name, again=again)
        case ErrorInfo(ErrorCode.OTHER_SERVER, {"name": str(_)} as params):
            return _allowing(params, again)
    return ()


def _after(tool: str, seen: Observation, args: Mapping[str, Any]) -> Rows:
    again = args.get("again", "")
    if tool == FIND_CREDENTIALS and not seen.entries:
        return _button("add")
    if tool != SET_CREDENTIALS or not isinstance(seen.content, Mapping):
        return ()
    error = seen.content.get("error")
    if isinstance(error, Mapping) and error.get("code") == ErrorCode.OTHER_SERVER:
        return _allowing({**error, "name": seen.content["name"]}, again)
    if error is not None:
        return _button("fix", name=str(seen.content["name"]), again=again)
    return ((Offer(AGAIN, "action.again", {"turn": again}),),) if again else ()


def _button(which: str, **params: str) -> Rows:
    given = {key: value for key, value in params.items() if value}
    return ((Offer(CONNECT, f"action.account.{which}", given),),)


def _allowing(params: Mapping[str, Any], again: str) -> Rows:
    """To let name and password go to the server that the account's own one names."""
    given = {"name": params["name"], "home": params.get("home"), "again": again}
    return (
        (
            Offer(
                CONNECT,
                "action.account.allow",
                {key: str(value) for key, value in given.items() if value},
                {"host": params.get("host")},
            ),
        ),
    )


def _plan_args(state: TurnState) -> Mapping[str, Any]:
    return state.plan.steps[0].args if state.engine == ENGINE and state.plan is not None else {}


def closing(
    texts: Texts, context: TurnContext, outcome: Outcome, *, key_file: str
) -> Closing | None:
    """The end of a turn about accounts; None for any other, and for one that failed. `key_file`:
    where the key lies that opens the secrets."""
    last = outcome.state.steps[-1] if outcome.state.steps else None
    if outcome.state.engine != ENGINE or last is None or not last.observation.ok:
        return None
    words = _Words(texts, context)
    match last.tool:
        case "set_credentials":
            lines = words.kept(last.observation.content, key_file)
        case "find_credentials":
            lines = words.listed(last.observation)
        case _:
            lines = [words.say("account.delete.done", **words.named(last.observation.content))]
    blocks = tuple(Block("text", line) for line in lines)
    return Closing(Reply(blocks, context.lang, context.turn_id, outcome.kind), (), None)


@dataclass(frozen=True, slots=True)
class _Words:
    texts: Texts
    context: TurnContext

    def kept(self, told: Any, key_file: str) -> list[str]:
        first = self.say("account.set.done", **self.named(told))
        if "error" in told:
            params = {k: v for k, v in told["error"].items() if k != "code"}
            why = self.say(f"error.{told['error']['code']}", **params)
            first = f"{first} {self.say('account.set.fails', why=why)}"
        else:
            key = "account.set.works" if told["works"] else "account.set.untried"
            first = f"{first} {self.say(key)}"
        if self.context.actor.role is not Role.HOST:
            return [first, self.say("account.set.where_guest")]
        renderer = Renderer(
            self.texts, self.context.lang, self.context.tz, self.context.scope.home
        )
        return [first, self.say("account.set.where", path=renderer.path(key_file))]

    def listed(self, seen: Observation) -> list[str]:
        if self.context.alone is not None:
            return [self.say("account.find.alone")]
        if not seen.entries:
            return [self.say("account.find.none")]
        lines = [
            self.say("account.find.item", **self.named(one), servers=", ".join(one["servers"]))
            for one in seen.entries
        ]
        return ["\n".join([self.say("account.find.some"), *lines])]

    def named(self, told: Any) -> dict[str, str]:
        """An account in words; among others not by its name, which may be an address."""
        kind = self.say(f"account.kind.{AccountKind(told['kind']).value}")
        return {
            "name": kind if self.context.alone is not None else str(told["name"]),
            "kind": kind,
        }

    def say(self, key: str, **params: Any) -> str:
        return self.texts.say(key, self.context.lang, **params)


__all__ = ["CONNECT", "DELETE_CREDENTIALS", "ENGINE", "Connect", "begun", "closing", "offers_of"]
