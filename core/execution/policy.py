"""Vaglio: guard, judge and consent. Decides on canonical values; opens nothing, asks nobody.

The guard is binary and not relaxable, the judge is graduated, consent goes by effect and by where
the wish came from (S8, C5). A decision that cannot be made is a no.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from core.catalog.manifest import Effect, Manifest
from core.errors import CallRefused, ErrorCode
from core.execution.values import fold
from core.messages import Actor, Autonomy, Role
from core.observation import Provenance
from core.turn_state import MASS_MUTATION
from core.vocabulary import is_read_only, verb_of

_WORD = re.compile(r"[^\W_]+")

BlockedBy = Literal["guard", "judge"]

# What reaches other people; to write in one's own mailbox or calendar does not.
_OUTBOUND_RIGHTS = frozenset({"channel:out", "mail:send", "network:http"})
_OWN_RIGHTS = frozenset({"calendar:write"})

_ADDING = frozenset({"create", "write"})

_IRRECOVERABLE = re.compile(
    r"""
      \brm\s+(?:-[a-z-]+\s+)*-?[a-z-]*[rf][a-z-]*\s+(?:--\s+)?["']?(?:/|~|\$HOME)["']?\s*\*?\s*$
    | \bmkfs(?:\.|\b) | \bdd\b.*\bof=/dev/ | :\(\)\s*\{.*\};\s*:
    | \bchmod\s+(?:-R|--recursive)\s+\S+\s+/\s*$ | >\s*/dev/(?:sd|nvme|mmcblk)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What policy says of one call. `score` is the judge's, in [0, 1]; None: not judged."""

    approved: bool
    reason: str
    score: float | None = None
    blocked_by: BlockedBy | None = None
    judge_kind: str | None = None


class Consent(StrEnum):
    NOT_NEEDED = "not_needed"
    NEEDED = "needed"
    GIVEN = "given"
    STANDING = "standing"
    DECLINED = "declined"


def guard(
    manifest: Manifest,
    args: Mapping[str, Any],
    actor: Actor,
    *,
    forbidden: Iterable[str],
    system: Iterable[str],
) -> Verdict:
    """The binary no. `forbidden` and `system` are the canonical paths among the sinks that lie in
    a forbidden place, or where only the system writes; the caller has looked."""
    if any(True for _ in forbidden):
        return Verdict(False, "forbidden_path", blocked_by="guard")
    if manifest.is_mutating and any(True for _ in system):
        return Verdict(False, "system_tree", blocked_by="guard")
    if any(cap.name == "code:exec" for cap in manifest.capabilities):
        for name, kind in manifest.sinks.items():
            if kind == "command" and _IRRECOVERABLE.search(_as_command(args.get(name))):
                return Verdict(False, "irrecoverable_command", blocked_by="guard")
    if actor.autonomy is Autonomy.READ_ONLY and manifest.is_mutating:
        return Verdict(False, "read_only_actor", blocked_by="guard")
    if actor.role is Role.GUEST and "recipient" in manifest.sinks.values():
        return Verdict(False, "guest_sends_to_others", blocked_by="guard")
    return Verdict(True, "ok")


def _as_command(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def judge(
    manifest: Manifest,
    args: Mapping[str, Any],
    said: Sequence[str],
    *,
    threshold: float,
    pointed_at: Collection[str] = (),
) -> Verdict:
    """The graduated no, by rules. Read-only verbs are not judged.

    Starts at 0.7; what the person's own words do not speak for takes away. `said`: their request
    and what they asked before in the conversation, never an observation, which others can write.
    `pointed_at`: targets that they mean without naming them.
    A change that they name neither by verb nor by target falls below the default threshold 0.30.
    """
    if not manifest.is_mutating or is_read_only(manifest.name):
        return Verdict(True, "safe_verb", 1.0, judge_kind="rules")
    words = {word for text in said for word in _WORD.findall(fold(text))}
    names_verb = _names_verb(manifest, words)
    score = 0.7
    reasons: list[str] = []
    if not names_verb:
        score -= 0.3
        reasons.append("the request names no such action")
    targets = [value for value in _leaves(args, _named_by(manifest)) if isinstance(value, str)]
    if not any(
        target in pointed_at or is_spoken_of(target, said) or _stem_in(target, words)
        for target in targets
    ):
        score -= 0.15
        reasons.append("the request names no such target")
    if any(".." in target.split("/") for target in targets):
        score -= 0.3
        reasons.append("a target that climbs")
    if manifest.effect is Effect.BLIND:
        score -= 0.1
    if not manifest.reversible and not names_verb:
        score -= 0.2
        reasons.append("cannot be undone")
    score = max(0.0, min(1.0, round(score, 2)))
    if score < threshold:
        return Verdict(False, "; ".join(reasons), score, "judge", "rules")
    return Verdict(True, "; ".join(reasons) or "ok", score, judge_kind="rules")


def _named_by(manifest: Manifest) -> Iterable[str]:
    """The arguments by which a person may name what is changed: the dangerous ones. What only
    adds to something of theirs and has none is named by what it adds (`dentist Thursday at 4`)."""
    adds = verb_of(manifest.name) in _ADDING and not manifest.sinks
    return manifest.properties if adds else manifest.sinks


def _names_verb(manifest: Manifest, words: set[str]) -> bool:
    """Whether a word begins as one of the tool's own verbs does: the first of each affinity."""
    known = {fold(phrase).split()[0] for forms in manifest.affinity.values() for phrase in forms}
    prefixes = {word[:5] for word in known if len(word) >= 4}
    return bool(words & known) or any(word[:5] in prefixes for word in words if len(word) >= 4)


def _stem_in(path: str, words: set[str]) -> bool:
    """Whether the name without its ending was said, word by word."""
    name = fold(path.rstrip("/").rsplit("/", 1)[-1])
    parts = [part for part in _WORD.findall(name.rsplit(".", 1)[0]) if len(part) > 2]
    return bool(parts) and words.issuperset(parts)


def _leaves(args: Mapping[str, Any], names: Iterable[str]) -> list[Any]:
    found: list[Any] = []
    for name in names:
        value = args.get(name)
        found += value if isinstance(value, list) else [value]
    return found


def consent(
    manifest: Manifest,
    *,
    count: int,
    in_workspace: bool,
    origin: Provenance,
    named_each: bool,
    actor: Actor,
    known_recipients: bool = False,
) -> Consent:
    """Whether a person must say yes first (C5).

    `count` comes from the preview; `in_workspace`: every target lies in the actor's own folders;
    `origin`: the worst of the sink arguments; `named_each`: the person named every item;
    `known_recipients`: this person has agreed before that things are sent to all of them.
    """
    if not manifest.is_mutating:
        return Consent.NOT_NEEDED
    if origin is Provenance.EXTERNAL or count > MASS_MUTATION:
        return Consent.NEEDED
    verb = verb_of(manifest.name)
    if actor.autonomy is Autonomy.FULL:
        if verb == "delete" and named_each:
            return Consent.NOT_NEEDED
        if verb == "send" and known_recipients:
            return Consent.NOT_NEEDED
    if verb == "delete" or is_lasting(manifest) or not in_workspace or _changes_own(manifest):
        return Consent.NEEDED
    return Consent.NOT_NEEDED


def is_about_nothing(
    manifest: Manifest, args: Mapping[str, Any], targets: Collection[str]
) -> bool:
    """Whether every list that the call works on is there and empty, and so nothing can change:
    no mail was found that it would move. What nobody can look up afterwards is never nothing."""
    lists = [args[name] for name in {*manifest.vector, "entries"} if name in args]
    empty = bool(lists) and all(value in ([], ()) for value in lists)
    sinks = any(args.get(name) for name in manifest.sinks)
    return empty and not targets and not sinks and manifest.effect is not Effect.BLIND


def may_stand(manifest: Manifest, *, in_workspace: bool, origin: Provenance) -> bool:
    """Whether a yes to this change may be one for good: it can be undone, stays in the person's
    own folders, and nothing from outside had a word in it."""
    return (
        manifest.is_mutating
        and origin is not Provenance.EXTERNAL
        and in_workspace
        and not is_lasting(manifest)
    )


def is_own(manifest: Manifest, target: str) -> bool:
    """Whether a target that is no path is the person's own: what is written in their calendar."""
    return not target.startswith("/") and any(
        right.name in _OWN_RIGHTS for right in manifest.capabilities
    )


def _changes_own(manifest: Manifest) -> bool:
    """Whether it changes what somebody put into a calendar, which others may have been told of."""
    own = any(right.name in _OWN_RIGHTS for right in manifest.capabilities)
    return own and verb_of(manifest.name) == "change"


def is_lasting(manifest: Manifest) -> bool:
    """Whether the change cannot be taken back: there is no undo, nobody can look whether it
    happened, it runs a command, or it leaves the house."""
    return (
        not manifest.reversible
        or manifest.effect is Effect.BLIND
        or "command" in manifest.sinks.values()
        or any(right.name == "code:exec" for right in manifest.capabilities)
        or is_outbound(manifest)
    )


def is_outbound(manifest: Manifest) -> bool:
    """Whether the change reaches others: it sends, shares, or speaks to a place on the network."""
    return manifest.is_mutating and (
        verb_of(manifest.name) in {"send", "share"}
        or bool({"recipient", "url"} & set(manifest.sinks.values()))
        or any(right.name in _OUTBOUND_RIGHTS for right in manifest.capabilities)
    )


def is_spoken_of(value: str, texts: Sequence[str]) -> bool:
    """Whether a canonical value stands in what the person said: whole, or by its last name, on
    token boundaries."""
    target = fold(value)
    name = target.rstrip("/").rsplit("/", 1)[-1]
    for text in texts:
        said = fold(text)
        for candidate in {target, name}:
            if candidate and re.search(rf"(?<![\w.-]){re.escape(candidate)}(?![\w-])", said):
                return True
    return False


def refuse(verdict: Verdict) -> CallRefused:
    """The exception for a verdict that says no."""
    if verdict.blocked_by == "judge":
        return CallRefused(ErrorCode.JUDGE_DENIED, verdict.reason)
    if verdict.reason in {"read_only_actor", "guest_sends_to_others"}:
        return CallRefused(ErrorCode.NOT_AUTHORIZED, verdict.reason)
    return CallRefused(ErrorCode.FORBIDDEN_PATH, verdict.reason)


def log_line(
    verdict: Verdict, *, tool: str, args: Iterable[str], turn_id: str, now: datetime
) -> dict[str, Any]:
    """A verdict as the policy log keeps it: with the names of the arguments, never a value."""
    return {
        "ts": now.timestamp(),
        "turn_id": turn_id,
        "tool": tool,
        "args": sorted(args),
        "approved": verdict.approved,
        "reason": verdict.reason,
        "score": verdict.score,
        "blocked_by": verdict.blocked_by,
        "judge_kind": verdict.judge_kind,
    }
