"""Caps and guards over the steps of one turn: what is too often, too much or the same again.

Pure: counts the records that are there, so a pause resets nothing (S9, readings of C4).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from core.catalog.loaded import Catalog
from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode, ErrorInfo
from core.observation import Effects
from core.plan import steps_used
from core.turn_state import (
    MAX_SAME_FAILURE,
    MAX_VECTOR_RUN,
    MOST,
    Cap,
    StepRecord,
)
from core.vocabulary import is_read_only, object_of, verb_of

# Refusals that advise the model; when it does not listen, the turn ends.
ADVICE = frozenset({ErrorCode.DUPLICATE_CALL, ErrorCode.DUPLICATE_READ, ErrorCode.VECTORISE})


def call_key(tool: str, args: Mapping[str, Any]) -> str:
    """What makes two calls the same: the tool and its canonical resolved arguments."""
    return f"{tool} {json.dumps(args, sort_keys=True, ensure_ascii=False, default=str)}"


def check_duplicates(
    steps: Sequence[StepRecord],
    tool: str,
    args: Mapping[str, Any],
    targets: Sequence[str],
) -> None:
    """Refuse a call that was made already, and a read of nothing but what was read already.

    `targets` are the canonical paths and addresses of this call. A step that changed something
    makes what lies before it count no more for the targets it touched, and for all reads without
    a target; but the same change is never made twice. Raises `CallRefused` with the advice to
    answer.
    """
    key = call_key(tool, args)
    selection = _selection(args, targets)
    unread = set(targets)
    for record in reversed(steps):
        if record.observation.effects is not Effects.NONE:
            if record.key == key:
                raise CallRefused(
                    ErrorCode.DUPLICATE_CALL,
                    f"step {record.number} was this very change: do not repeat it, answer",
                )
            changed = set(_targets_of(record))
            if not targets or not changed or changed & set(targets):
                return
        if not record.ran or record.tool != tool:
            continue
        if record.key == key:
            _refuse_failed(record)
            if not record.observation.ok:
                return
            raise CallRefused(
                ErrorCode.DUPLICATE_CALL,
                f"step {record.number} was this very call: use its result and answer",
            )
        if is_read_only(tool) and record.observation.ok:
            before = _targets_of(record)
            if selection == _selection(record.resolved_args, before):
                unread -= set(before)
                if targets and not unread:
                    raise CallRefused(
                        ErrorCode.DUPLICATE_READ,
                        f"step {record.number} has read this already: use it and answer",
                    )


def check_declined(steps: Sequence[StepRecord], key: str) -> None:
    """Refuse a call that the person has said no to in this turn: nobody is asked twice."""
    for record in steps:
        error = record.observation.error
        if record.key == key and error is not None and error.code is ErrorCode.DECLINED:
            raise CallRefused(
                ErrorCode.DECLINED, f"the person said no to this in step {record.number}: answer"
            )


def _refuse_failed(record: StepRecord) -> None:
    """The same call again after it failed: only what may pass by itself is worth a second try."""
    error = record.observation.error
    if error is not None and not error.retryable:
        raise CallRefused(
            error.code,
            f"step {record.number} failed in this very way: change it or answer",
            **error.params,
        )


def _targets_of(record: StepRecord) -> list[str]:
    found: list[str] = []
    for value in record.resolved_args.values():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and (item.startswith("/") or "://" in item):
                found.append(item)
            elif isinstance(item, Mapping):
                found += [str(item[k]) for k in ("path", "url") if isinstance(item.get(k), str)]
    for entry in record.observation.entries or ():
        found += [str(entry[k]) for k in ("path", "source") if isinstance(entry.get(k), str)]
    return found


def _selection(args: Mapping[str, Any], targets: Sequence[str]) -> str:
    """Range and selection arguments: everything that names no target."""
    known = set(targets)
    rest = {
        name: value
        for name, value in args.items()
        if not (
            (isinstance(value, str) and value in known)
            or (isinstance(value, list) and all(isinstance(v, str) and v in known for v in value))
            or name == "entries"
        )
    }
    return json.dumps(rest, sort_keys=True, ensure_ascii=False, default=str)


def check_steps(steps: Sequence[StepRecord], *, extended: Collection[Cap] = ()) -> None:
    """Raise `CallRefused(cap_steps)` when no further step is left, whatever it may be.
    `extended`: the caps that the person has extended."""
    most = most_of(Cap.STEPS, extended)
    if len(steps) >= most:
        raise _capped(Cap.STEPS, most, f"{most} steps are the most")


def check_caps(
    steps: Sequence[StepRecord],
    tool: str,
    args: Mapping[str, Any],
    manifest: Manifest | None,
    *,
    extended: Collection[Cap] = (),
) -> None:
    """Raise `CallRefused` with `cap_same_executor` or `vectorise`.

    C4: a vector tool called again directly after itself without a new reference could have been
    one call, and the third such call is refused; a tool that only looks may run three times in a
    row; everything else ten times in a turn. A tool whose only list is `entries` is no vector
    tool here: models fill it by reference alone, so several calls could not have been one.
    `extended`: the caps that the person has extended.
    """
    if tool == "scratchpad_read":
        return

    times = most_of(Cap.SAME_EXECUTOR, extended)
    if sum(record.tool == tool and record.ran for record in steps) >= times:
        raise _capped(Cap.SAME_EXECUTOR, times, f"{tool} ran {times} times")
    if manifest is not None and _takes_several(manifest):
        check_vector_run([*(r.raw_args for r in _last_run(steps, tool)), args], manifest)
    elif is_read_only(tool) and len(_last_run(steps, tool)) >= (
        times := most_of(Cap.IN_A_ROW, extended)
    ):
        said = f"{tool} ran {times} times in a row: answer with what there is"
        raise _capped(Cap.IN_A_ROW, times, said)


def most_of(cap: Cap, extended: Collection[Cap]) -> int:
    """How much a cap lets pass: twice as much once it was extended."""
    return MOST[cap] * (2 if cap in extended else 1)


def cap_of(error: ErrorInfo | None) -> Cap | None:
    """The cap that an error tells of; None: it tells of something else."""
    found = None if error is None else error.params.get("cap")
    return Cap(found) if isinstance(found, str) and found in set(Cap) else None


def _capped(cap: Cap, limit: int, detail: str) -> CallRefused:
    code = ErrorCode.CAP_STEPS if cap is Cap.STEPS else ErrorCode.CAP_SAME_EXECUTOR
    return CallRefused(code, detail, limit=limit, cap=cap.value)


def _last_run(steps: Sequence[StepRecord], tool: str) -> list[StepRecord]:
    """The last calls of this tool, directly one after the other. Refused calls were none, so
    they neither count nor come between."""
    run: list[StepRecord] = []
    for record in reversed(steps):
        if record.ran and record.tool != tool:
            break
        if record.ran:
            run.append(record)
    return run[::-1]


def _takes_several(manifest: Manifest) -> bool:
    return bool(set(manifest.vector) - {"entries"})


def check_vector_run(calls: Sequence[Mapping[str, Any]], manifest: Manifest) -> None:
    """Refuse the last of these calls of one tool in a row (raw arguments) when it is the third
    that could have been one: a reference to a step that none of them has used brings something
    new and begins again. Raises `CallRefused(vectorise)`."""
    if not _takes_several(manifest):
        return
    count, known = 0, set[int]()
    for raw in calls:
        used = steps_used(raw)
        count = 1 if used - known else count + 1
        known |= used
    if count > MAX_VECTOR_RUN:
        raise CallRefused(
            ErrorCode.VECTORISE,
            f"{manifest.name} takes several items in one call: give all at once, or answer",
        )


def is_looping(steps: Sequence[StepRecord]) -> bool:
    """Whether the same tool failed with the same class twice, one after the other."""
    if len(steps) < MAX_SAME_FAILURE:
        return False
    last = steps[-MAX_SAME_FAILURE:]
    codes = {record.observation.error.code for record in last if record.observation.error}
    return (
        all(not record.observation.ok for record in last)
        and len({record.tool for record in last}) == 1
        and len(codes) == 1
    )


def check_source(args: Mapping[str, Any], manifest: Manifest, catalog: Catalog) -> None:
    """Raises `CallRefused(needs_data_source)` for a tool that works on a list and was given none;
    the detail names the tools that bring one."""
    if "entries" in args or "entries" not in manifest.args.get("required", ()):
        return
    bring = [n for n, e in catalog.offered.items() if manifest.name in e.manifest.producer_for]
    first = f"first call {' or '.join(sorted(bring)[:8])}, then" if bring else "needs"
    raise CallRefused(ErrorCode.NEEDS_DATA_SOURCE, f"no list to work on: {first} from_step")


def unknown(name: str, offered: frozenset[str]) -> str:
    """Says so, with names that look alike or speak of the same thing; nothing near is run."""
    names = sorted(offered)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    kin = [n for n in names if verb_of(n) == verb_of(name) or object_of(n) == object_of(name)]
    found = list(dict.fromkeys([*near, *kin]))[:4]
    return f"{name[:64]} does not exist" + (f"; there is {', '.join(found)}" if found else "")
