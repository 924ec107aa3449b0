"""How this machine is: disk, memory, processor, temperature, uptime. The engine looks; this only
tells."""

from __future__ import annotations

from executors._sdk.result import Failure, done, item

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from executors._sdk.call import Call

_FULL = 90


def run(call: Call) -> dict[str, Any]:
    """One entry a disk: `mount`, `total`, `free`, `used` in bytes, `percent`. The rest of the
    machine's state stands in the metadata; what it does not tell is left out."""
    host = dict(call.machine.get("host") or {})
    if not host:
        raise Failure("machine_silent", "the machine does not tell how it is")
    disks = [item(**disk) for disk in host.pop("disks", [])]
    seconds = int(host.pop("uptime_s"))
    warmest = max((t["celsius"] for t in host.get("temperatures") or ()), default=None)
    told = {**host, "uptime": _span(seconds, call.lang), "uptime_s": seconds}
    if warmest is not None:
        told["temperature"] = warmest
    full = [disk["mount"] for disk in disks if disk["percent"] >= _FULL]
    if full:
        told["nearly_full"] = ", ".join(full)
    return done(disks, **told)


def _span(seconds: int, lang: str) -> str:
    """The two largest units of a time: "3 giorni e 4 ore"."""
    one_many = {
        "it": (("giorno", "giorni"), ("ora", "ore"), ("minuto", "minuti")),
        "en": (("day", "days"), ("hour", "hours"), ("minute", "minutes")),
    }[lang if lang == "it" else "en"]
    days, rest = divmod(seconds, 86_400)
    counts = (days, rest // 3600, rest % 3600 // 60)
    first = next((at for at, count in enumerate(counts) if count), 2)
    parts = [
        f"{counts[at]} {one_many[at][counts[at] != 1]}"
        for at in range(first, min(first + 2, 3))
        if counts[at] or at == first
    ]
    return (" e " if lang == "it" else " and ").join(parts)
