"""The machine's state: looked at by the engine, told by programs that never see it themselves."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.catalog.manifest import parse_manifest
from core.execution import machine
from core.execution.guests import may_use
from core.i18n import Texts
from core.levels.renderer import Renderer
from core.observation import Observation
from tests.executors.file_cases import run
from tests.support.house import ask, open_scripted
from tests.support.run_executor import TREE
from tests.support.scripted_model import Rule

LOCALES = Path(__file__).parents[2] / "locales"
GIB = 2**30
HOST = {
    "system": "Linux 6.1",
    "uptime_s": 3 * 86_400 + 4 * 3600 + 59,
    "cpu_percent": 12.5,
    "memory_total": 8 * GIB,
    "memory_available": 2 * GIB,
    "temperatures": [{"name": "cpu", "celsius": 51.0}, {"name": "disk", "celsius": 38.5}],
    "disks": [
        {"mount": "/", "total": 100 * GIB, "free": 5 * GIB, "used": 95 * GIB, "percent": 95}
    ],
}
PROCESSES = [
    {"pid": 7, "name": "postgres", "user": "db", "cpu": 3.5, "memory": 900_000_000},
    {"pid": 9, "name": "python3", "user": "ada", "cpu": 80.0, "memory": 100_000_000},
]


def manifest_of(name):
    return parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)


def said(name, seen, lang):
    renderer = Renderer(Texts.load(LOCALES), lang, "Europe/Rome", "/home/ada")
    blocks = renderer.observation(Observation.from_json(seen), manifest_of(name))
    return "\n".join(block.text for block in blocks)


@pytest.mark.parametrize(
    ("lang", "wanted"),
    [
        ("it", ["Disco: 5", "Memoria: 2", "51 °C", "3 giorni e 4 ore", "Quasi pieno: /"]),
        ("en", ["Disk: 5", "Memory: 2", "51 °C", "3 days and 4 hours", "Nearly full: /"]),
    ],
)
def test_state_of_the_machine_is_told(lang, wanted):
    text = said("get_host", run("get_host", {}, machine={"host": HOST}, lang=lang), lang)

    assert [part for part in wanted if part not in text] == []


def test_what_the_machine_does_not_tell_is_left_out():
    host = {k: v for k, v in HOST.items() if k != "temperatures"} | {"uptime_s": 30}
    text = said("get_host", run("get_host", {}, machine={"host": host}, lang="it"), "it")

    assert "°C" not in text
    assert "0 minuti" in text


def test_processes_are_chosen_by_name_and_counted():
    told = {"processes": PROCESSES, "processes_total": 240}

    everything = run("get_processes", {}, machine=told)
    python = run("get_processes", {"names": ["PYTHON"]}, machine=told)
    one = run("get_processes", {"max_results": 1}, machine=told)
    none = run("get_processes", {"names": ["zzz"]}, machine=told)

    assert everything["metadata"]["available"] == 240
    assert [entry["pid"] for entry in python["entries"]] == [9]
    assert one["metadata"]["truncated"] is True
    assert "postgres" in said("get_processes", one, "en")
    assert said("get_processes", none, "it") == "Non c'è nessun processo così."


async def test_engine_looks_at_what_the_manifest_names_and_no_more():
    host = (await machine.told_to(manifest_of("get_host")))["machine"]
    busy = (await machine.told_to(manifest_of("get_processes")))["machine"]

    assert set(host) == {"host"}
    assert host["host"]["memory_total"] > host["host"]["memory_available"] > 0
    assert host["host"]["disks"]
    assert set(busy) == {"processes", "processes_total"}
    mine = next(one for one in busy["processes"] if one["pid"] == os.getpid())
    assert mine["memory"] > 10_000_000
    assert "cmdline" not in json.dumps(busy)
    assert await machine.told_to(manifest_of("get_now")) == {}


def test_machine_is_the_hosts_alone():
    for name in ("get_host", "get_processes"):
        assert not may_use(manifest_of(name), ())
        assert not may_use(manifest_of(name), {"system:read"})


async def test_request_is_answered_from_the_real_machine(tmp_path):
    rules = [
        Rule(user="spazio", after=0, calls=[("get_host", {})]),
        Rule(user="spazio", after=1, text=lambda ask: ask.last_result[:200]),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        reply = (await ask(house, "quanto spazio libero c'è sul disco?")).reply

    assert "get_host" in model.asked[0].tool_names
    assert '"free"' in str(reply.blocks)
