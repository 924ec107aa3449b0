"""Orders entries by one field; what lacks the field comes last, equals keep their order."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from executors._sdk import fields, result, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """All entries in order, or the first `limit`. `missing` counts those without the field.

    `by` is the field as the entries call it. A single shown one is named by `label`, whatever its
    fields are called.
    """
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    field = fields.known_field(str(call.args["by"]), entries)
    found = [(fields.lookup(entry, field), entry) for entry in entries]
    present = [pair for pair in found if not fields.is_missing(pair[0])]
    column = values.Column([value for value, _ in present], lang=call.lang, tz=ZoneInfo(call.tz))
    # A reversed sort of Python keeps equals in their order, which reversing afterwards would not.
    present.sort(key=lambda pair: column.key(pair[0]), reverse=bool(call.args.get("desc")))
    absent = [entry for value, entry in found if fields.is_missing(value)]
    ordered = [entry for _, entry in present] + absent
    shown = ordered[: call.args.get("limit")]
    return result.done(
        [{**entry, "ok": True} for entry in shown],
        total=len(entries),
        missing=len(absent),
        by=field,
        truncated=len(shown) < len(ordered),
        **({"label": fields.label_of(shown[0])} if len(shown) == 1 else {}),
    )
