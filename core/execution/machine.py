"""The state of this machine, for the programs that may read it: they never see `/proc` themselves.

What is looked at follows the hints of `system:read`: `host` and `processes`. Of a process its
name, never its command line, which may hold secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import os
import platform
import time
from typing import Any

import psutil

from core.catalog.manifest import Manifest

RIGHT = "system:read"
MOST_PROCESSES = 500
# Between the two looks by which the share of the processor is told.
_SAMPLE_S = 0.2
# File systems that hold nothing of a person's.
_NO_DISKS = frozenset("squashfs overlay tmpfs devtmpfs iso9660 ramfs".split())


async def told_to(manifest: Manifest) -> dict[str, Any]:
    """The part of a call document that a program with the right to it gets; else nothing.

    `host`: system, uptime in seconds, processor, memory and disks in bytes, temperatures in °C,
    battery; what this machine does not tell is left out. `processes`: the heaviest first, 500 at
    most; `processes_total` says how many there are.
    """
    hints = {h for right in manifest.capabilities if right.name == RIGHT for h in right.hints}
    if not hints:
        return {}
    return {"machine": await asyncio.to_thread(_look, hints)}


def _look(hints: set[str]) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if "host" in hints:
        told["host"] = _host()
    if "processes" in hints:
        told["processes"], told["processes_total"] = _processes()
    return told


def _host() -> dict[str, Any]:
    memory, swap, now = psutil.virtual_memory(), psutil.swap_memory(), time.time()
    told: dict[str, Any] = {
        "system": f"{platform.system()} {platform.release()}",
        "booted_at": _moment(psutil.boot_time()),
        "uptime_s": round(now - psutil.boot_time()),
        "cpu_count": psutil.cpu_count() or 1,
        "cpu_percent": psutil.cpu_percent(interval=_SAMPLE_S),
        "load": [round(value, 2) for value in os.getloadavg()],
        "memory_total": memory.total,
        "memory_available": memory.available,
        "memory_percent": memory.percent,
        "swap_total": swap.total,
        "swap_used": swap.used,
        "disks": _disks(),
    }
    if temperatures := _temperatures():
        told["temperatures"] = temperatures
    with contextlib.suppress(OSError, AttributeError):
        battery = psutil.sensors_battery()
        if battery is not None:
            told["battery_percent"] = round(battery.percent)
            told["battery_charging"] = bool(battery.power_plugged)
    return told


def _disks() -> list[dict[str, Any]]:
    """Each real file system once, by the shortest place where it stands."""
    found: dict[str, dict[str, Any]] = {}
    for part in sorted(psutil.disk_partitions(all=True), key=lambda p: len(p.mountpoint)):
        real = part.device.startswith("/") or part.mountpoint == "/"
        if (
            not real
            or part.device in found
            or (part.fstype in _NO_DISKS and part.mountpoint != "/")
        ):
            continue
        with contextlib.suppress(OSError):
            usage = psutil.disk_usage(part.mountpoint)
            if usage.total:
                found[part.device] = {
                    "mount": part.mountpoint,
                    "total": usage.total,
                    "free": usage.free,
                    "used": usage.used,
                    "percent": usage.percent,
                }
    return list(found.values())


def _temperatures() -> list[dict[str, Any]]:
    try:
        sensors = psutil.sensors_temperatures()
    except (OSError, AttributeError):
        return []
    return [
        {"name": one.label or chip, "celsius": round(one.current, 1)}
        for chip, ones in sensors.items()
        for one in ones
        if one.current and -50 < one.current < 200
    ]


def _processes() -> tuple[list[dict[str, Any]], int]:
    running = list(psutil.process_iter())
    for process in running:
        with contextlib.suppress(psutil.Error, OSError):
            process.cpu_percent()
    time.sleep(_SAMPLE_S)
    found: list[dict[str, Any]] = []
    for process in running:
        with contextlib.suppress(psutil.Error, OSError), process.oneshot():
            found.append(
                {
                    "pid": process.pid,
                    "name": process.name(),
                    "user": _user(process),
                    "cpu": round(process.cpu_percent(), 1),
                    "memory": process.memory_info().rss,
                    "memory_percent": round(process.memory_percent(), 1),
                    "started": _moment(process.create_time()),
                }
            )
    found.sort(key=lambda one: (-one["memory"], one["pid"]))
    return found[:MOST_PROCESSES], len(found)


def _user(process: psutil.Process) -> str:
    try:
        return process.username()
    except (psutil.Error, KeyError, OSError):
        return ""


def _moment(stamp: float) -> str:
    return dt.datetime.fromtimestamp(stamp, dt.UTC).isoformat(timespec="seconds")
