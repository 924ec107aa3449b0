"""Lists as sets: what one has and another has not, what both have, both together, each once."""

from __future__ import annotations

from executors._sdk import fields, matching, result
from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_OPS = ("delta", "common", "union", "unique")


def run(call: Call) -> dict[str, Any]:
    """The entries that stay, whole and in their order.

    `delta`: of the first list those that the other has not. `common`: those that it has too.
    `union`: the first list, then what only the other has. `unique`: of equal ones the first; also
    of a single list. Equal are entries alike in `on_keys`, else in what names them.
    """
    op = str(call.args["op"])
    if op not in _OPS:
        raise Failure("invalid_args", f"op is one of: {', '.join(_OPS)}")
    first = [fields.as_entry(item) for item in call.args["entries"]]
    given = call.args.get("other_entries")
    if given is None and op != "unique":
        raise Failure("invalid_args", f"{op} needs other_step, a second list")
    second = [fields.as_entry(item) for item in given or ()]
    wanted = call.args.get("on_keys")
    if given is None and not wanted:
        keys = fields.field_names(first, most=200)
    else:
        keys = matching.keys_of(first, second, wanted)
    others = matching.by_key(second, keys)
    if op == "delta":
        kept = [entry for entry in first if matching.key_of(entry, keys) not in others]
    elif op == "common":
        kept = [entry for entry in first if matching.key_of(entry, keys) in others]
    elif op == "union":
        mine = matching.by_key(first, keys)
        kept = first + [e for e in second if matching.key_of(e, keys) not in mine]
    else:
        kept = [dict(same[0]) for same in matching.by_key([*first, *second], keys).values()]
    named = {"label": fields.label_of(kept[0])} if len(kept) == 1 else {}
    total = len(first) + len(second)
    return result.done([{**entry, "ok": True} for entry in kept], total=total, **named)
