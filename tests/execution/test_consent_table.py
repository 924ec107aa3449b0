"""Consent walked through all combinations, against what C5 says in its own words.

> Everybody starts as `supervised`, the host too. Under it a delete and a send always ask; other
> reversible writes in the actor's workspace do not, up to 20 items; irreversible, blind and
> outbound ones do. `full` skips asking for deletes the person named item by item, and for sends
> to addresses the person has approved before. (S8: or shaped by external text.)
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from core.catalog.manifest import Capability, Effect, Manifest
from core.execution import policy
from core.messages import Actor, Autonomy, Role
from core.observation import Provenance
from tests.execution.test_arguments import manifest

TOOLS = {
    "read_files": "read",
    "write_files": "write",
    "move_files": "write",
    "delete_files": "delete",
    "send_messages": "send",
    "share_files": "share",
}


@dataclass(frozen=True)
class Case:
    tool: str
    autonomy: Autonomy
    role: Role
    reversible: bool
    blind: bool
    outbound: str
    origin: Provenance
    count: int
    in_workspace: bool
    named_each: bool
    known: bool

    @property
    def manifest(self) -> Manifest:
        return _manifest(self.tool, self.reversible, self.blind, self.outbound)


@cache
def _manifest(tool: str, reversible: bool, blind: bool, outbound: str) -> Manifest:
    verb = TOOLS[tool]
    base = manifest("write_files" if verb in {"send", "share"} else tool)
    effect = Effect.BLIND if blind else Effect.CHECKABLE
    rights, args = base.capabilities, base.args
    if outbound == "right":
        rights = (*rights, Capability("mail:send"))
    if outbound == "sink":
        to = {"type": "string", "x-metnos-sink": "recipient", "x-metnos-type": "person"}
        args = {**base.args, "properties": {**base.properties, "to": to}}
    return dataclasses.replace(
        base,
        name=tool,
        effect=Effect.PURE if verb == "read" else effect,
        reversible=reversible,
        capabilities=rights,
        args=args,
    )


_COMBINED: Iterable[tuple[Any, ...]] = itertools.product(
    TOOLS,
    Autonomy,
    Role,
    (True, False),
    (True, False),
    ("", "right", "sink"),
    Provenance,
    (0, 1, 20, 21),
    (True, False),
    (True, False),
    (True, False),
)
CASES = [Case(*combination) for combination in _COMBINED]


def by_the_words_of_c5(case: Case) -> bool:
    """Whether the person is asked, one sentence of C5 after the other."""
    kind = TOOLS[case.tool]
    if kind == "read":
        return False
    if case.origin is Provenance.EXTERNAL:
        return True  # "shaped by external text"
    if case.count > 20:
        return True  # "up to 20 items"
    if case.autonomy is Autonomy.FULL and kind == "delete" and case.named_each:
        return False  # "deletes the person named item by item"
    if case.autonomy is Autonomy.FULL and kind == "send" and case.known:
        return False  # "sends to addresses the person has approved before"
    if kind in {"delete", "send"}:
        return True  # "a delete and a send always ask"
    if not case.reversible or case.blind or case.outbound or kind == "share":
        return True  # "irreversible, blind and outbound ones do"
    return not case.in_workspace  # "other reversible writes in the workspace do not"


def test_consent_is_what_the_contract_says_in_every_combination() -> None:
    wrong, asked = [], 0
    for case in CASES:
        found = policy.consent(
            case.manifest,
            count=case.count,
            in_workspace=case.in_workspace,
            origin=case.origin,
            named_each=case.named_each,
            actor=Actor("a", case.role, "a", case.autonomy),
            known_recipients=case.known,
        )
        wanted = by_the_words_of_c5(case)
        asked += wanted
        if (found is policy.Consent.NEEDED) is not wanted:
            wrong.append(case)

    print(f"{len(CASES)} combinations, {asked} asked, {len(wrong)} wrong")
    assert wrong == []
    assert 0 < asked < len(CASES)


def test_a_yes_for_good_is_offered_only_where_nothing_can_go_wrong_for_good() -> None:
    for case in CASES:
        stands = policy.may_stand(
            case.manifest, in_workspace=case.in_workspace, origin=case.origin
        )
        kind = TOOLS[case.tool]
        wanted = (
            kind in {"write", "delete"}
            and case.origin is not Provenance.EXTERNAL
            and case.in_workspace
            and case.reversible
            and not case.blind
            and not case.outbound
        )
        assert stands is wanted, case


@pytest.mark.parametrize("autonomy", list(Autonomy))
def test_read_only_changes_nothing_whatever_consent_would_say(autonomy: Autonomy) -> None:
    for tool in ("read_files", "write_files", "move_files", "delete_files"):
        actor = Actor("a", Role.HOST, "a", autonomy)
        verdict = policy.guard(manifest(tool), {}, actor, forbidden=[], system=[])

        allowed = tool == "read_files" or autonomy is not Autonomy.READ_ONLY
        assert verdict.approved is allowed


def test_what_runs_a_command_is_lasting_and_always_asked() -> None:
    spec = {"type": "string", "x-metnos-sink": "command", "x-metnos-type": "free"}
    base = manifest("write_files")
    runs = [
        dataclasses.replace(base, args={**base.args, "properties": {"argv": spec}}),
        dataclasses.replace(base, capabilities=(Capability("code:exec"),)),
    ]
    for one in runs:
        assert policy.is_lasting(one)
        asked = policy.consent(
            one,
            count=1,
            in_workspace=True,
            origin=Provenance.USER,
            named_each=True,
            actor=Actor("a", Role.HOST, "a", Autonomy.FULL),
            known_recipients=True,
        )
        assert asked is policy.Consent.NEEDED
