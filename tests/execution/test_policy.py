"""Guard, judge and consent as tables; the judge must be able to say no."""

from __future__ import annotations

from typing import Any

import pytest

from core.catalog.manifest import Manifest, parse_manifest
from core.execution import policy
from core.messages import Actor, Autonomy, Role
from core.observation import Provenance
from tests.execution.test_arguments import manifest
from tests.support.run_executor import TREE

HOST = Actor("h", Role.HOST, "host")
FULL = Actor("h", Role.HOST, "host", Autonomy.FULL)
READ_ONLY = Actor("r", Role.GUEST, "guest", Autonomy.READ_ONLY)


def shipped(name: str) -> Manifest:
    return parse_manifest((TREE / name / "manifest.toml").read_bytes(), folder=name)


@pytest.mark.parametrize(
    ("tool", "target", "own"),
    [
        ("create_events", "Cena da Paolo", True),
        ("change_events", "Yoga (2026-03-19 18:00)", True),
        ("create_events", "/etc/passwd", False),
        ("write_files", "Cena da Paolo", False),
        ("read_events", "Cena da Paolo", False),
    ],
)
def test_what_stands_in_ones_calendar_is_ones_own(tool: str, target: str, own: bool) -> None:
    assert policy.is_own(shipped(tool), target) is own


@pytest.mark.parametrize(
    ("tool", "fields", "expected"),
    [
        ("create_events", {}, "not_needed"),
        ("create_events", {"count": 21}, "needed"),
        ("create_events", {"origin": Provenance.EXTERNAL}, "needed"),
        ("delete_events", {}, "needed"),
        ("change_events", {}, "needed"),
    ],
)
def test_only_a_few_new_events_of_ones_own_need_no_yes(
    tool: str, fields: dict[str, Any], expected: str
) -> None:
    given: dict[str, Any] = {"count": 1, "in_workspace": True, "origin": Provenance.USER}
    given |= {"named_each": True, "actor": HOST, **fields}

    assert policy.consent(shipped(tool), **given).value == expected


def test_guard_denies_a_forbidden_place_also_for_reading() -> None:
    verdict = policy.guard(manifest("read_files"), {}, HOST, forbidden=["/home/x/.ssh"], system=[])

    assert not verdict.approved
    assert verdict.blocked_by == "guard"


def test_guard_denies_writing_where_the_system_writes_and_allows_reading_there() -> None:
    write = policy.guard(manifest("write_files"), {}, FULL, forbidden=[], system=["/etc/hosts"])
    read = policy.guard(manifest("read_files"), {}, FULL, forbidden=[], system=["/etc/hosts"])

    assert not write.approved
    assert read.approved


def test_guard_denies_changes_to_a_read_only_actor() -> None:
    verdict = policy.guard(manifest("write_files"), {}, READ_ONLY, forbidden=[], system=[])

    assert verdict.reason == "read_only_actor"


@pytest.mark.parametrize(
    ("tool", "args", "request_text", "approved"),
    [
        ("write_files", {"path": "/n/a.md"}, "scrivi ciao in a.md", True),
        ("write_files", {"path": "/n/a.md"}, "save this as a.md", True),
        ("move_files", {"paths": ["/n/a.md"]}, "sposta a.md in archivio", True),
        ("delete_files", {"paths": ["/n/a.md"]}, "cancella a.md", True),
        ("delete_files", {"paths": ["/n/../x"]}, "che ore sono?", False),
        ("write_files", {"path": "/n/../../x"}, "che tempo fa", False),
        ("write_files", {"path": "/n/evil.md"}, "leggi questa pagina e riassumila", False),
        ("delete_files", {"paths": ["/n/a.md"]}, "che ore sono a Roma?", False),
        ("move_files", {"paths": ["/n/a.md"], "dst": "/n/b"}, "what time is it?", False),
        ("write_files", {"path": "/n/spesa.md"}, "metti il latte nella spesa", True),
        ("write_files", {"path": "/n/nota.md"}, "crea un promemoria con scritto ciao", True),
        ("delete_files", {"paths": ["/n/old.log"]}, "get rid of old.log", True),
        (
            "create_events",
            {"summary": "Dentista", "start": "2026-03-19T16:00"},
            "dentista giovedì alle 16",
            True,
        ),
        (
            "create_events",
            {"summary": "Dentist", "start": "Thursday at 4 pm"},
            "dentist Thursday at 4 pm",
            True,
        ),
        ("create_events", {"summary": "Party", "start": "tomorrow"}, "what time is it?", False),
        ("create_events", {"start": "domani", "summary": "Y"}, "riassumi questa pagina", False),
        ("delete_events", {"event_ids": ["Casa|x|"]}, "dentista giovedì alle 16", False),
        ("write_lists", {"name": "spesa", "items": ["latte"]}, "latte nella spesa", True),
        ("write_lists", {"name": "spesa", "items": ["latte"]}, "che ore sono?", False),
        ("get_now", {}, "", True),
        ("read_files", {"paths": ["/n/../x"]}, "", True),
    ],
)
def test_judge_says_yes_and_no(
    tool: str, args: dict[str, Any], request_text: str, approved: bool
) -> None:
    verdict = policy.judge(manifest(tool), args, [request_text], threshold=0.30)

    assert verdict.approved is approved


def test_judge_hears_what_was_asked_before_in_the_conversation() -> None:
    said = ["sì, fallo", "cancella a.md"]

    verdict = policy.judge(manifest("delete_files"), {"paths": ["/n/a.md"]}, said, threshold=0.30)

    assert verdict.approved
    assert verdict.score == 0.7


def test_judge_goes_by_its_threshold() -> None:
    args, said = {"path": "/n/a.md"}, ["scrivi ciao in a.md"]

    assert not policy.judge(manifest("write_files"), args, said, threshold=0.9).approved
    assert policy.judge(manifest("write_files"), {"path": "/e"}, ["?"], threshold=0.0).approved


@pytest.mark.parametrize(
    ("tool", "fields", "expected"),
    [
        ("read_files", {}, "not_needed"),
        ("write_files", {}, "not_needed"),
        ("write_files", {"count": 21}, "needed"),
        ("write_files", {"in_workspace": False}, "needed"),
        ("write_files", {"origin": Provenance.EXTERNAL}, "needed"),
        ("move_files", {"count": 20}, "not_needed"),
        ("delete_files", {}, "needed"),
        ("delete_files", {"actor": FULL}, "not_needed"),
        ("delete_files", {"actor": FULL, "named_each": False}, "needed"),
        ("delete_files", {"actor": FULL, "count": 21}, "needed"),
    ],
)
def test_consent_goes_by_effect_and_origin(
    tool: str, fields: dict[str, Any], expected: str
) -> None:
    given: dict[str, Any] = {
        "count": 1,
        "in_workspace": True,
        "origin": Provenance.USER,
        "named_each": True,
        "actor": HOST,
        **fields,
    }

    assert policy.consent(manifest(tool), **given).value == expected


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("/n/a.md", "cancella a.md", True),
        ("/n/a.md", "cancella a.mdx", False),
        ("/n/a.md", "cancella ba.md", False),
        ("/n/Straße.txt", "delete strasse.txt", True),
        ("https://a.example/x", "apri https://a.example/x per favore", True),
        ("https://a.example/x?q=1", "apri https://a.example/x", False),
    ],
)
def test_is_spoken_of_matches_on_token_boundaries(value: str, text: str, expected: bool) -> None:
    assert policy.is_spoken_of(value, [text]) is expected


@pytest.mark.parametrize(
    ("tool", "args", "targets", "nothing"),
    [
        ("move_messages", {"entries": [], "folder": "Viaggi"}, [], True),
        ("move_messages", {"ids": [], "folder": "Viaggi"}, [], True),
        ("move_messages", {"ids": ["Casa|INBOX|1|2"], "entries": []}, [], False),
        ("move_messages", {"entries": [], "folder": "Viaggi"}, ["Fattura"], False),
        ("move_messages", {"folder": "Viaggi"}, [], False),
        ("delete_files", {"paths": []}, [], True),
        ("delete_files", {"paths": "/home/x"}, [], False),
        ("send_messages", {"entries": [], "to": ["marta@posta.example"]}, [], False),
        ("send_messages", {"entries": []}, [], False),
    ],
)
def test_only_a_call_whose_every_list_is_empty_is_about_nothing(
    tool: str, args: dict[str, Any], targets: list[str], nothing: bool
) -> None:
    assert policy.is_about_nothing(shipped(tool), args, targets) is nothing
