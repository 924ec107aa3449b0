"""The programs that run on this machine, the heaviest first. The engine looks; this only tells."""

from __future__ import annotations

from executors._sdk.result import Failure, done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

MOST = 50


def run(call: Call) -> dict[str, Any]:
    """One entry a process: `pid`, `name`, `user`, `cpu` in percent of one core, `memory` in bytes,
    `started`. `names` keeps those whose name holds one of these."""
    if "processes" not in call.machine:
        raise Failure("machine_silent", "the machine does not tell its processes")
    wanted = [str(name).casefold() for name in call.args.get("names") or ()]
    found = [
        item(**one)
        for one in call.machine["processes"]
        if not wanted or any(name in one["name"].casefold() for name in wanted)
    ]
    most = min(int(call.args.get("max_results") or MOST), len(found))
    return done(
        found[:most],
        truncated=most < len(found),
        available=len(found) if wanted else int(call.machine["processes_total"]),
        memory=sum(one["memory"] for one in found),
    )
