"""Small faults of a model's plan that have one plain cure, cured before anything is checked.

Pure. What has no plain cure is left as it is: L2 says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from core.catalog.manifest import Manifest
from core.errors import CallRefused
from core.execution.aliases import called_by_name
from core.levels.argument_schemas import main_field, output_fields
from core.plan import FROM_STEP, PIPES, Plan, Step, StepReference, as_step_number, parse_template

Manifests = Mapping[str, Manifest]

_STEP = re.compile(r"((?:\{\{|\$\{)\s*step)(\d{1,3})(?=\.)")


def mended(plan: Plan, manifests: Manifests) -> Plan:
    """The plan with the arguments' own names, without steps that repeat an earlier one, and with
    references that hold.

    A model that writes `{{step1.body}}` of a page read as text means its text.
    """
    plan = Plan(tuple(called_by_name(step, manifests.get(step.tool)) for step in plan.steps))
    plan = _without_vain_end(_without_repeats(plan, manifests), manifests)
    return Plan(
        tuple(
            Step(step.tool, {k: _mend(v, plan, manifests) for k, v in step.args.items()})
            for step in plan.steps
        )
    )


def _without_repeats(plan: Plan, manifests: Manifests) -> Plan:
    """The plan without what an earlier step did: a reading with nothing changed since, or filling
    the same file once more."""
    steps: list[Step] = []
    places: dict[int, int] = {}  # number in the old plan → number in the new one
    since = 0
    for number, step in enumerate(plan.steps, start=1):
        step = Step(step.tool, _renumbered(step.args, places))
        manifest = manifests.get(step.tool)
        changes = manifest is None or manifest.is_mutating
        same = [at for at in range(since, len(steps)) if _fetches_the_same(step, steps[at])]
        if not changes and same:
            places[number] = same[0] + 1
            continue
        again = [at for at, earlier in enumerate(steps) if _fills_again(step, earlier)]
        if again:
            places[number] = again[0] + 1
            continue
        steps.append(step)
        places[number] = len(steps)
        if changes:
            since = len(steps)
    return Plan(tuple(steps))


def _without_vain_end(plan: Plan, manifests: Manifests) -> Plan:
    """The plan without a last reading of files that its source does not bring: small models
    sometimes do not find the end."""
    if len(plan.steps) < 2:
        return plan
    last = plan.steps[-1]
    number = as_step_number(last.args.get(FROM_STEP))
    reader = manifests.get(last.tool)
    if reader is None or reader.is_mutating or "path" not in reader.sinks.values():
        return plan
    if number is None or not 1 <= number < len(plan.steps):
        return plan
    source = manifests.get(plan.steps[number - 1].tool)
    if source is None or source.takes_entries or "path" in output_fields(source):
        return plan
    return Plan(plan.steps[:-1])


def _fills_again(step: Step, earlier: Step) -> bool:
    """Whether a step fills with some result what an earlier one filled already."""
    if step.tool != earlier.tool or not str(step.args.get("content", "")).startswith("{{step"):
        return False
    names = set(step.args) - {"content"}
    return names == set(earlier.args) - {"content"} and all(
        step.args[name] == earlier.args[name] for name in names
    )


def _fetches_the_same(step: Step, earlier: Step) -> bool:
    """The same call, or the same addresses fetched by another tool."""
    same = step.args == earlier.args
    return same and (step.tool == earlier.tool or set(step.args) == {"urls"})


def _renumbered(value: Any, places: Mapping[int, int]) -> Any:
    """A value whose step numbers are those of the new plan; unknown ones stay, L2 refuses them."""
    if isinstance(value, str):
        return _STEP.sub(lambda m: f"{m[1]}{places.get(int(m[2]), int(m[2]))}", value)
    if isinstance(value, list):
        return [_renumbered(item, places) for item in value]
    if isinstance(value, Mapping):
        return {
            key: places.get(number, number)
            if key in PIPES and (number := as_step_number(item)) is not None
            else _renumbered(item, places)
            for key, item in value.items()
        }
    return value


def _mend(value: Any, plan: Plan, manifests: Manifests) -> Any:
    if not isinstance(value, str):
        return value
    try:
        template = parse_template(value)
    except CallRefused:
        return value  # L2 says what is wrong with it
    whole = template.whole if template is not None else None
    if not isinstance(whole, StepReference) or not 1 <= whole.step <= len(plan.steps):
        return value
    source = manifests.get(plan.steps[whole.step - 1].tool)
    if source is None or whole.path[0] in output_fields(source):
        return value
    name = main_field(source)
    return value if name is None else f"{{{{step{whole.step}.{name}}}}}"
