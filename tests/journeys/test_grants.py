"""An inner host is opened with `metnos grants`, used from Telegram, and closed again."""

from __future__ import annotations

import json
from pathlib import Path

from tests.executors.web_server import web_server
from tests.support.scripted_model import Rule
from tests.support.world import open_world


def test_journey_page_of_the_house_is_read_while_its_host_is_granted(tmp_path: Path) -> None:
    with web_server() as server:
        url = f"http://localhost:{server.server_port}/page"
        rules = [
            Rule(user="leggi", after=0, calls=[("read_urls_html", {"urls": [url]})]),
            Rule(text=lambda ask: "Aperta" if "Orari" in ask.last_result else "Chiusa"),
        ]
        with open_world(tmp_path, rules, METNOS_PRIVATE_HOSTS="") as world:
            world.telegram.start_bot()
            anna = world.host()

            world.telegram.say(anna, f"leggi {url}")
            world.telegram.expect(anna, "Chiusa")
            seen_without = len(server.seen)
            target = f"localhost:{server.server_port}"
            made = json.loads(world.cli("grants", "add", "host", target, "--json").stdout)
            world.telegram.say(anna, f"leggi {url} adesso")
            world.telegram.expect(anna, "Aperta")
            world.cli("grants", "revoke", str(made["id"]))
            world.telegram.say(anna, f"leggi {url} di nuovo")
            world.wait_for(lambda: len(world.log_lines()) == 3, what="the third turn")
            world.telegram.say(anna, "/status")
            world.telegram.expect(anna, "Isolamento: attivo")

            codes = [step.get("error_class") for x in world.log_lines() for step in x["steps"]]
            assert seen_without == 0
            assert codes == ["host_denied", None, "host_denied"]
            assert [path for path, _ in server.seen] == ["/page"]
            world.telegram.assert_clean()
