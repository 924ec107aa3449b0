"""What a model is to read in order to find fields in texts; the engine asks the model."""

from __future__ import annotations

from executors._sdk import fields, passages
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MOST_FIELDS = 10


def run(call: Call) -> dict[str, Any]:
    """The passages of the entries, and in `metadata` the names of the `fields` to be found."""
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    names = [" ".join(str(name).split())[:60] for name in call.args["fields"]]
    names = list(dict.fromkeys(name for name in names if name))
    if not 1 <= len(names) <= MOST_FIELDS:
        raise Failure("invalid_args", f"1 to {MOST_FIELDS} fields")
    seen = passages.of_entries(entries, most_each=passages.MOST)
    seen["metadata"]["fields"] = names
    return seen
