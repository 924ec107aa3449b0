"""What a model is to read in order to sum entries up; the engine asks the model."""

from __future__ import annotations

from executors._sdk import fields, passages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call


def run(call: Call) -> dict[str, Any]:
    """The passages of the entries, long texts in several; see `passages.of_entries`."""
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    return passages.of_entries(entries, most_each=passages.MOST)
