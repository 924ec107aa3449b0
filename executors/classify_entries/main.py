"""What a model is to read in order to sort entries into classes; the engine asks the model."""

from __future__ import annotations

from executors._sdk import fields, passages, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

# The beginning tells what something is about.
MOST_EACH = 700
MOST_LABELS = 20
_URGENCY = {"it": ["alta", "media", "bassa"], "en": ["high", "medium", "low"]}
_KNOWN = {"urgen": _URGENCY, "priorit": _URGENCY}


def run(call: Call) -> dict[str, Any]:
    """One passage per entry, and in `metadata` the `labels` to choose among: the given ones, else
    those that everybody knows of this dimension, else none: the model finds some."""
    entries = [fields.as_entry(item) for item in call.args["entries"]]
    given = [" ".join(str(label).split())[:60] for label in call.args.get("labels") or ()]
    labels = list(dict.fromkeys(label for label in given if label))[:MOST_LABELS]
    dimension = values.fold(str(call.args["dimension"]))
    for stem, known in _KNOWN.items():
        if not labels and stem in dimension:
            labels = known.get(call.lang, known["en"])
    seen = passages.of_entries(entries, most_each=MOST_EACH)
    seen["metadata"]["labels"] = labels
    return seen
