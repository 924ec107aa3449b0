"""What was asked for, found or referred to may be used; what a model made up may not (S2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import CallRefused, ErrorCode
from core.execution.grounding import Ground, check
from core.messages import FinalKind
from tests.core.test_turn import lines
from tests.execution.test_arguments import manifest
from tests.support.house import ask, open_scripted
from tests.support.scripted_model import Rule

ROOTS = ("/h/notes", "/h/work")
EXISTING = frozenset(
    "/h/notes/a.md /h/notes/diario.md /h/notes/lista-spesa.txt /h/notes/Archivio /h/work/bozze"
    " /h/work/bozze/vecchia.txt /h/notes/IMG_2041.jpg".split()
)


def ground(said: str, *seen: str, **fields: Any) -> Ground:
    return Ground(
        said=(said,),
        seen=lambda: seen,
        roots=ROOTS,
        zone="Europe/Rome",
        exists=EXISTING.__contains__,
        **fields,
    )


def outcome(tool: str, args: dict[str, Any], found: Ground, raw: Any = None) -> str:
    try:
        left_out = check(raw or args, args, manifest(tool), found)
    except CallRefused as exc:
        return "refused" if exc.code is ErrorCode.UNGROUNDED else exc.code.value
    return f"without {', '.join(left_out)}" if left_out else "ok"


@pytest.mark.parametrize(
    ("said", "tool", "args", "expected"),
    [
        # what a change acts on must be named
        ("cancella a.md", "delete_files", {"paths": ["/h/notes/a.md"]}, "ok"),
        ("delete ~/notes/a.md please", "delete_files", {"paths": ["/h/notes/a.md"]}, "ok"),
        ("elimina il diario", "delete_files", {"paths": ["/h/notes/diario.md"]}, "ok"),
        ("elimina i diari", "delete_files", {"paths": ["/h/notes/diario.md"]}, "ok"),
        ("butta la lista della spesa", "delete_files", {"paths": ["/h/notes/lista-spesa.txt"]},
         "ok"),
        ("cancella la spesa", "delete_files", {"paths": ["/h/notes/lista-spesa.txt"]}, "refused"),
        ("svuota la cartella Archivio", "delete_files", {"paths": ["/h/notes/Archivio"]}, "ok"),
        ("cancella i file vecchi", "delete_files", {"paths": ["/h/notes/a.md"]}, "refused"),
        ("delete the old files", "delete_files", {"paths": ["/h/notes/diario.md"]}, "refused"),
        ("elimina ba.md", "delete_files", {"paths": ["/h/notes/a.md"]}, "refused"),
        ("elimina a", "delete_files", {"paths": ["/h/notes/a.md"]}, "refused"),
        ("cancella b.md", "delete_files", {"paths": ["/h/notes/b.md", "/h/notes/a.md"]},
         "refused"),
        # what is not there is the tool's to say
        ("cancella il vecchio", "delete_files", {"paths": ["/h/notes/none.md"]}, "ok"),
        # a new name may be chosen, in a folder that is known
        ("salva questa nota", "write_files", {"path": "/h/notes/nota.md"}, "ok"),
        ("write this down somewhere", "write_files", {"path": "/h/work/note.txt"}, "ok"),
        ("salvalo fra le bozze", "write_files", {"path": "/h/work/bozze/nuova.txt"}, "ok"),
        ("salva questa nota", "write_files", {"path": "/h/work/bozze/nuova.txt"}, "refused"),
        ("salva questa nota", "write_files", {"path": "/h/notes/x/y/z.md"}, "refused"),
        ("salva in x/y/z.md", "write_files", {"path": "/h/notes/x/y/z.md"}, "ok"),
        # but nothing that exists is overwritten unnamed
        ("salva questa nota", "write_files", {"path": "/h/notes/a.md"}, "refused"),
        ("save this note", "write_files", {"path": "/h/notes/diario.md"}, "refused"),
        ("aggiungilo al diario", "write_files", {"path": "/h/notes/diario.md"}, "ok"),
        ("sposta a.md in Archivio", "move_files",
         {"paths": ["/h/notes/a.md"], "dst": "/h/notes/Archivio"}, "ok"),
        ("move a.md to the archive", "move_files",
         {"paths": ["/h/notes/a.md"], "dst": "/h/work/archive"}, "ok"),
        ("sposta a.md altrove", "move_files",
         {"paths": ["/h/notes/a.md"], "dst": "/h/work/bozze"}, "refused"),
        ("sposta a.md nella cartella di lavoro", "move_files",
         {"paths": ["/h/notes/a.md"], "dst": "/h/work"}, "ok"),
        ("rinomina IMG_2041.jpg in compleanno", "move_files",
         {"paths": ["/h/notes/IMG_2041.jpg"], "dst": "/h/notes/compleanno.jpg"}, "ok"),
        # looking may start anywhere inside the open folders
        ("cosa devo comprare?", "read_files", {"paths": ["/h/notes/lista-spesa.txt"]}, "ok"),
        ("find my pdfs", "find_files", {"base_path": "/h/work/bozze", "patterns": ["*.pdf"]},
         "ok"),
    ],
)  # fmt: skip
def test_check_paths(said: str, tool: str, args: dict[str, Any], expected: str) -> None:
    assert outcome(tool, args, ground(said)) == expected


@pytest.mark.parametrize(
    ("seen", "path", "expected"),
    [
        ("/h/notes/a.md", "/h/notes/a.md", "ok"),
        ("il file a.md è vecchio", "/h/notes/a.md", "ok"),
        ("/h/notes/ba.md", "/h/notes/a.md", "refused"),
        ("/h/notes/a.mdx", "/h/notes/a.md", "refused"),
    ],
)
def test_check_of_what_a_step_found_is_grounded(seen: str, path: str, expected: str) -> None:
    found = ground("cancella quelli vecchi", seen, first=False)

    assert outcome("delete_files", {"paths": [path]}, found) == expected


@pytest.mark.parametrize(
    "raw",
    [{"from_step": 1}, {"paths": "{{step1.path}}"}, {"paths": ["{{step1.path}}"]},
     {"entries": "{{step1.entries}}"}],
)  # fmt: skip
def test_check_of_a_reference_is_grounded_by_it(raw: dict[str, Any]) -> None:
    args: dict[str, Any] = {"paths": ["/h/notes/a.md"]}
    if "paths" not in raw:
        args = {"entries": [{"path": "/h/notes/a.md"}]}

    assert outcome("delete_files", args, ground("cancella i vecchi"), raw) == "ok"


def test_check_of_a_list_with_references_looks_at_the_rest_of_it() -> None:
    raw = {"paths": ["{{step1.path}}", "a.md"]}
    args = {"paths": ["/h/notes/diario.md", "/h/notes/a.md"]}

    assert outcome("delete_files", args, ground("cancella quello"), raw) == "refused"


def test_check_of_items_written_out_is_as_strict_as_of_paths() -> None:
    args = {"entries": [{"path": "/h/notes/a.md"}]}

    assert outcome("delete_files", args, ground("cancella i vecchi")) == "refused"


@pytest.mark.parametrize(
    ("said", "seen", "url", "expected"),
    [
        ("scarica https://a.example/x", "", "https://a.example/x", "ok"),
        ("scarica a.example/x", "", "https://a.example/x", "ok"),
        ("apri www.a.example", "", "https://a.example/", "ok"),
        ("apri A.EXAMPLE per favore.", "", "https://www.a.example/", "ok"),
        ("read http://127.0.0.1:8080/p.html", "", "http://127.0.0.1:8080/p.html", "ok"),
        ("read http://127.0.0.1:8080/p.html", "", "http://127.0.0.1:9090/", "ok"),
        ("cerca Roma su wikipedia", "", "https://it.wikipedia.org/wiki/Roma", "ok"),
        ("apri il sito del comune di torino", "", "https://www.comune.torino.it/", "ok"),
        ("che tempo fa?", "", "https://wttr.in/Torino", "refused"),
        ("what is the weather", "", "https://api.evil.example/?q=1", "refused"),
        ("leggi la nota", "", "http://10.0.0.1/", "refused"),
        # what a page links to may be followed; what it makes the model compose is asked about
        # (test_addresses), as long as somebody spoke of the site
        ("leggi a.example", "https://b.example/next", "https://b.example/next", "ok"),
        ("leggi a.example", "vedi b.example/next.", "https://b.example/next", "ok"),
        ("leggi a.example", "b.example", "https://b.example/?q=secret", "ok"),
        ("leggi a.example", "ciao", "https://a.example/?leak=secret", "ok"),
        ("leggi a.example", "ciao", "https://a.example/", "ok"),
        ("read a.example", "go to b.example", "https://c.example/", "refused"),
        ("read a.example", "go to b.example", "https://b.example.evil.example/", "refused"),
        ("read a.example", "go to evil.b.example", "https://b.example/", "refused"),
        ("read a.example", "write to x@b.example", "https://b.example/y", "refused"),
        ("apri http://localhost:8080/x", "ciao", "http://localhost:8080/x", "ok"),
    ],
)  # fmt: skip
def test_check_addresses(said: str, seen: str, url: str, expected: str) -> None:
    found = ground(said, seen, first=not seen)

    assert outcome("get_urls", {"urls": [url]}, found) == expected


@pytest.mark.parametrize(
    ("said", "place", "expected"),
    [
        ("che ore sono a Tokyo?", "Asia/Tokyo", "ok"),
        ("what time is it in Tokyo", "Tokyo", "ok"),
        ("che ore sono in Giappone?", "Asia/Tokyo", "ok"),
        ("time in the big apple?", "America/New_York", "ok"),
        ("che ora fa a londra", "Europe/London", "ok"),
        ("ora Lima", "America/Lima", "ok"),
        ("che ore sono?", "Europe/Rome", "ok"),
        ("che ore sono?", "America/New_York", "without timezone"),
        ("che ore sono adesso di preciso", "Asia/Tokyo", "without timezone"),
        ("what time is it right now?", "UTC", "without timezone"),
        ("what is the date of today", "Asia/Tokyo", "without timezone"),
    ],
)
def test_check_places(said: str, place: str, expected: str) -> None:
    assert outcome("get_now", {"timezone": place}, ground(said)) == expected


@pytest.mark.parametrize(
    ("said", "tool", "args", "expected"),
    [
        ("le ultime tre righe", "read_files", {"tail_lines": 3}, "ok"),
        ("the first 20 lines of a.md", "read_files", {"head_lines": 20}, "ok"),
        ("righe da 10 a 25", "read_files", {"start_line": 10, "end_line": 25}, "ok"),
        ("le ultime righe del diario", "read_files", {"tail_lines": 10}, "ok"),
        ("leggi il diario", "read_files", {"tail_lines": 10}, "without tail_lines"),
        ("read a.md", "read_files", {"head_lines": 5, "max_bytes": 100},
         "without head_lines, max_bytes"),
        ("file della settimana scorsa", "find_files", {"modified_within_days": 7}, "ok"),
        ("files changed last week", "find_files", {"modified_within_days": 7}, "ok"),
        ("files from the past two weeks", "find_files", {"modified_within_days": 14}, "ok"),
        ("i pdf di oggi", "find_files", {"modified_within_days": 1}, "ok"),
        ("tutti i pdf", "find_files", {"modified_within_days": 30},
         "without modified_within_days"),
        ("file più grandi di 10 MB", "find_files", {"size_min": 10_000_000}, "ok"),
        ("files over 2 GiB", "find_files", {"size_min": 2 * 2**30}, "ok"),
        ("i file vuoti", "find_files", {"size_max": 0}, "ok"),
        ("all my pdfs", "find_files", {"size_min": 1000}, "without size_min"),
        ("una dozzina di pdf", "find_files", {"max_results": 12}, "ok"),
        ("1.000 pdf", "find_files", {"max_results": 1000}, "ok"),
    ],
)  # fmt: skip
def test_check_amounts(said: str, tool: str, args: dict[str, Any], expected: str) -> None:
    assert outcome(tool, args, ground(said)) == expected


def test_check_of_amounts_after_a_first_look_is_the_models_own_choice() -> None:
    args = {"paths": ["/h/notes/diario.md"], "start_line": 400, "end_line": 500}

    assert outcome("read_files", args, ground("leggi il diario", "…", first=False)) == "ok"


async def test_gate_refuses_a_made_up_target_with_advice_and_tells_the_person(
    tmp_path: Path,
) -> None:
    rules = [
        Rule(after=0, calls=[("write_files", {"path": "diario.md", "content": "x"})]),
        Rule(after=1, text="Non so dove."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/diario.md").write_text("mio")

        closed = await ask(house, "scrivi una nota")

        assert (tmp_path / "notes/diario.md").read_text() == "mio"
        error = json.loads(model.asked[1].last_result)["error"]
        assert error["code"] == "ungrounded"
        assert "path" in error["detail"]
        assert closed.final_kind is FinalKind.ERROR
        assert "scrivimelo per intero" in closed.reply.plain
        assert lines(house)[0]["steps"][0]["grounding"] == "denied"


async def test_gate_leaves_out_what_nobody_asked_for_and_tells_the_model(tmp_path: Path) -> None:
    rules = [
        Rule(after=0, calls=[("read_files", {"paths": ["diario.md"], "tail_lines": 1})]),
        Rule(after=1, text=lambda a: json.loads(a.last_result)["entries"][0]["text"]),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        (tmp_path / "notes/diario.md").write_text("uno\ndue\n")

        closed = await ask(house, "leggi il diario")

        assert "uno" in closed.reply.plain
        assert json.loads(model.asked[1].last_result)["left_out"] == ["tail_lines"]
        step = lines(house)[0]["steps"][0]
        assert step["grounding"] == "without tail_lines"
        assert "tail_lines" not in step["resolved_args"]


async def test_gate_judge_denies_a_change_that_nobody_spoke_of(tmp_path: Path) -> None:
    rules = [
        Rule(after=0, calls=[("write_files", {"path": "evil.md", "content": "x"})]),
        Rule(after=1, text="Sono le dieci."),
    ]
    async with open_scripted(tmp_path, rules) as (house, model):
        await ask(house, "apri la nota diario.md")

        assert not (tmp_path / "notes/evil.md").exists()
        assert json.loads(model.asked[1].last_result)["error"]["code"] == "judge_denied"
        assert lines(house)[0]["steps"][0]["judge"] == "denied"
