"""L2, the validator: whether a whole plan may run, without a model and before anything runs.

Pure. Checks what can be known of a plan as it stands: tools, arguments, references backwards only,
and its shape (S6).
Values that references will bring are checked again by the gate when they are there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core.catalog.loader import Catalog
from core.catalog.manifest import Manifest
from core.errors import CallRefused, ErrorCode, ErrorInfo, to_error_info
from core.execution import arguments, guards
from core.execution.builtins import BUILTINS
from core.execution.piping import pipes_of
from core.levels import shape
from core.plan import (
    FROM_STEP,
    OTHER_STEP,
    PIPES,
    FillerReference,
    Plan,
    Step,
    as_step_number,
    references_in,
    steps_used,
)
from core.turn_state import MAX_STEPS, Cap


def problem_of(plan: Plan, catalog: Catalog, *, most: int = MAX_STEPS) -> ErrorInfo | None:
    """The first thing wrong with a plan, None when it may run. `most`: how many steps it may
    have."""
    if not plan.steps:
        return None
    if len(plan.steps) > most:
        params = {"limit": most, "cap": Cap.STEPS.value}
        return ErrorInfo(ErrorCode.CAP_STEPS, params, detail="too many steps")
    stage = shape.compute_state(())
    for number, step in enumerate(plan.steps, start=1):
        try:
            _check(number, step, catalog)
            _check_run(plan.steps[:number], catalog)
            executor = catalog.offered.get(step.tool)
            called = shape.call_of(step, None if executor is None else executor.manifest)
            stage = shape.next_state(stage, called)
        except CallRefused as exc:
            info = to_error_info(exc)
            return ErrorInfo(info.code, info.params, detail=f"step {number}: {info.detail}")
    return None


def _check(number: int, step: Step, catalog: Catalog) -> None:
    for reference in references_in(dict(step.args)):
        if isinstance(reference, FillerReference):
            raise CallRefused(ErrorCode.BAD_REFERENCE, f"there is no filler {reference.name}")
    backwards = steps_used(step.args)
    wrong = sorted(n for n in backwards if not 1 <= n < number)
    if wrong:
        raise CallRefused(
            ErrorCode.BAD_REFERENCE, f"speaks of step {wrong[0]}, which is not an earlier one"
        )
    if step.tool in BUILTINS:
        return
    executor = catalog.offered.get(step.tool)
    if step.tool in catalog.withheld:
        raise CallRefused(ErrorCode.NOT_AUTHORIZED, "this tool is the host's alone")
    if executor is None:
        raise CallRefused(ErrorCode.UNKNOWN_TOOL, f"{step.tool[:64]} does not exist")
    _check_arguments(step, executor.manifest)


def _check_run(steps: Sequence[Step], catalog: Catalog) -> None:
    """C4: the third call of a vector tool in a row that could have been one is no plan."""
    *before, last = steps
    executor = catalog.offered.get(last.tool)
    if executor is None:
        return
    raw: list[Mapping[str, Any]] = []
    for step in reversed(before):
        if step.tool != last.tool:
            break
        raw.insert(0, step.args)
    guards.check_vector_run([*raw, last.args], executor.manifest)


def _check_arguments(step: Step, manifest: Manifest) -> None:
    """The schema, with a harmless stand-in for every value that a reference will bring."""
    standing: dict[str, Any] = {}
    pipes = pipes_of(manifest)
    for name, value in step.args.items():
        if name in pipes:
            continue
        if any(True for _ in references_in({"v": value})):
            continue
        standing[name] = value
    promised = {name for name in step.args if name not in standing and name not in pipes}
    if step.args.get(FROM_STEP) is not None:
        taken = "entries" if manifest.takes_entries else next(iter(manifest.vector), None)
        if taken is None or as_step_number(step.args[FROM_STEP]) is None:
            raise CallRefused(
                ErrorCode.BAD_REFERENCE,
                f"{step.tool} cannot take that: from_step is a step's number",
            )
        promised.add(taken)
    if OTHER_STEP in pipes and step.args.get(OTHER_STEP) is not None:
        other = as_step_number(step.args[OTHER_STEP])
        if other is None or other == as_step_number(step.args.get(FROM_STEP)):
            raise CallRefused(ErrorCode.BAD_REFERENCE, "other_step is another step's number")
        promised.add(PIPES[OTHER_STEP])
    arguments.validate_partly(standing, manifest, promised=frozenset(promised))
