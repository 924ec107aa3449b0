"""One request all the way: written on Telegram, planned, executed, answered, logged."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_model import Ask, Rule
from tests.support.world import World, open_world

ENGINES = ("simple", "metis")
DIARY = "".join(f"riga {n}\n" for n in range(1, 11))
PAGE = "<html><body><h1>Perché no</h1>\r\n" + "è tutto qui. " * 40 + "</body></html>\n"


@pytest.fixture
def page_url() -> Iterator[str]:
    """A page served on loopback, byte for byte `PAGE`."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/p.html"
    server.shutdown()
    server.server_close()
    thread.join()


def both(user: str, steps: list[tuple[str, dict[str, Any]]], answer: Any = None) -> list[Rule]:
    """Rules by which the model plans the same thing for either engine."""
    plan = {"steps": [{"tool": tool, "args": args} for tool, args in steps]}
    rules = [Rule(user=user, after=n, calls=[step], plan=plan) for n, step in enumerate(steps)]
    return [*rules, Rule(user=user, after=len(steps), text=answer or "Fatto.")]


def last_lines(ask: Ask) -> str:
    text = json.loads(ask.last_result)["entries"][0]["text"]
    return f"Ecco le ultime tre righe:\n\n{text}"


@pytest.fixture(params=ENGINES)
def world(request: pytest.FixtureRequest, tmp_path: Path, page_url: str) -> Iterator[World]:
    rules = [
        *both(
            "diario",
            [("read_files", {"paths": ["~/notes/diario.md"], "tail_lines": 3})],
            last_lines,
        ),
        *both(
            "tokyo",
            [("get_now", {"timezone": "Tokyo"})],
            lambda ask: "In Tokyo it is " + json.loads(ask.last_result)["entries"][0]["time"],
        ),
        *both(
            "scarica",
            [
                ("get_urls", {"urls": [page_url]}),
                ("write_files", {"path": "~/notes/p.html", "content": "{{step1.body}}"}),
            ],
            lambda ask: f"Salvata: {json.loads(ask.last_result)['entries'][0]['bytes']} byte.",
        ),
    ]
    with open_world(tmp_path, rules, METNOS_ENGINE=request.param) as world:
        (world.notes / "diario.md").write_text(DIARY, encoding="utf-8")
        world.telegram.start_bot()
        yield world


def test_journey_last_three_lines_of_the_diary(world: World) -> None:
    anna = world.host()

    world.telegram.say(anna, "leggi il file ~/notes/diario.md e dimmi le ultime tre righe")
    world.telegram.expect(anna, "riga 8\nriga 9\nriga 10")

    assert "riga 7" not in world.texts(anna)[-1]
    world.wait_for(lambda: world.log_lines(), what="the log line")
    line = world.log_lines()[-1]
    assert line["final_kind"] == "answer"
    assert line["channel"] == "telegram"
    assert line["user_query"].startswith("leggi il file")
    assert [step["tool"] for step in line["steps"]] == ["read_files"]
    assert line["steps"][0]["resolved_args"]["paths"] == [str(world.notes / "diario.md")]
    assert line["ts_end"] >= line["ts_start"]
    assert line["match_source"] == "engine"
    assert line["tokens_in"] > 0


def test_journey_time_in_tokyo_in_english(world: World) -> None:
    sam = world.host("sam", lang="en")

    world.telegram.say(sam, "what time is it in Tokyo?")
    shown = world.telegram.expect(sam, "Tokyo")

    assert any(char.isdigit() for char in shown["message"]["text"])
    world.wait_for(lambda: world.log_lines(), what="the log line")
    assert world.log_lines()[-1]["lang"] == "en"


def test_journey_fetch_save_and_say_the_bytes(world: World, page_url: str) -> None:
    anna = world.host()
    size = len(PAGE.encode())

    world.telegram.say(
        anna, f"scarica la pagina {page_url}, salvala in ~/notes/p.html e dimmi quanti byte"
    )
    world.telegram.expect(anna, f"{size}")

    saved = (world.notes / "p.html").read_bytes()
    assert hashlib.sha256(saved).digest() == hashlib.sha256(PAGE.encode()).digest()
    assert "~/notes/p.html" in "\n".join(world.texts(anna))
    world.wait_for(lambda: world.log_lines(), what="the log line")
    line = world.log_lines()[-1]
    assert [step["ok"] for step in line["steps"]] == [True, True]
    assert line["effect_counts"]["mutations"] == 1
    assert line["steps"][1]["consent"] == "not_needed"
    assert world.rows("SELECT state FROM effects") == [("done",)]
    assert world.model.unscripted == []
    world.telegram.assert_clean()
