"""The pages about what was asked, changed and by whom, over an invented past and over a turn that
really went on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.store import turns as turn_store
from core.store.turn_log import TurnLog
from tests.console.conftest import Console, open_console
from tests.support.house import ask
from tests.support.past import GUESTS, Past, invent
from tests.support.scripted_model import Rule, ScriptedModel


@pytest.fixture
async def past(console: Console) -> Past:
    house = console.house
    return await invent(
        house.settings.metnos_home,
        house.stores,
        console.host.id,
        turns=130,
        days=12,
        now=house.clock.now(),
    )


def _rows(html: str) -> int:
    return html.count('<td class="main">')


async def test_turns_are_paged_and_filtered(console: Console, past: Past) -> None:
    first, last = await console.get("/turns"), await console.get("/turns?page=3")
    assert (_rows(first.text), _rows(last.text)) == (50, 30)
    assert 'href="/turns?page=2"' in first.text
    assert 'rel="next"' not in last.text

    errors = await console.get("/turns?kind=error")
    assert 0 < _rows(errors.text) < 30
    assert "Errore</span>" in errors.text
    assert "Risposta</span>" not in errors.text

    theirs = await console.get(f"/turns?actor={GUESTS[0][0]}&source=fastpath")
    assert 0 < _rows(theirs.text) < 50
    assert "<td>host" not in theirs.text
    assert "Modello</td>" not in theirs.text

    day = f"{console.house.clock.now():%Y-%m-%d}"
    assert 0 < _rows((await console.get(f"/turns?day={day}")).text) < 20
    assert _rows((await console.get("/turns?day=2020-01-01")).text) == 0
    # What is no filter of ours filters nothing.
    odd = await console.get("/turns?day=%3Cb%3E&actor=nobody&kind=x&source=y&page=-3")
    assert _rows(odd.text) == 50
    assert "<b>" not in odd.text


async def test_turn_is_told_step_by_step_in_both_languages(console: Console, past: Past) -> None:
    page = await console.get(f"/turns/{past.resumed}")
    assert page.text.count('<ol class="timeline">') == 2
    assert "consenso: dato" in page.text
    assert "Permesso di agire" in page.text
    assert "ha cambiato qualcosa" in page.text

    page = await console.get(f"/turns/{past.failed[:8]}", lang="en")
    assert "scope: denied" in page.text
    assert "/srv/altro is outside the open folders" in page.text
    assert (await console.get("/turns/ffff")).status_code == 404
    assert (await console.get("/turns/x")).status_code == 404


async def test_pages_of_the_past_say_all_and_give_no_answers(console: Console, past: Past) -> None:
    dialogs = await console.get("/dialogs")
    assert "Permesso di agire" in dialogs.text
    assert "1 di 2 risposte" in dialogs.text
    assert "Lasciata cadere" in dialogs.text

    effects = await console.get("/effects")
    assert "no: dopo c&#39;è stato altro" in effects.text
    assert re.search(r"sì, fino al \d", effects.text)
    unknown = await console.get("/effects?state=unknown")
    assert _rows(unknown.text) < _rows(effects.text)

    people = await console.get("/actors")
    assert all(name in people.text for _, name in GUESTS)
    assert "/srv/foto" in people.text
    assert "al massimo 30 all&#39;ora" in people.text
    assert "Una vicina" in people.text

    home = await console.get("/")
    assert home.text.count("<svg") == 3
    assert "Mostra i numeri" in home.text
    for page in (dialogs, effects, people, home, await console.get(f"/turns/{past.newest}")):
        assert "S3CR3T-ANSWER" not in page.text


async def test_secret_in_a_request_is_masked_wherever_the_host_reads_it(console: Console) -> None:
    house, secret = console.house, "hunter2hunter2"
    async with house.stores.main.write() as tx:
        await turn_store.open_turn(
            tx,
            turn_id="abcd1234",
            inbound_id="x",
            actor_id=console.host.id,
            conversation="telegram:7:",
            lang="it",
            request=f"la password è {secret} <script>alert(1)</script>",
            now=house.clock.now(),
        )

    for path in ("/turns", "/turns/abcd1234"):
        page = await console.get(path)
        assert "la password è •••" in page.text
        assert secret not in page.text
        assert "<script" not in page.text
        assert "In corso" in page.text


async def test_program_that_is_refused_is_shown_with_its_reason(console: Console) -> None:
    page = await console.get("/executors")
    assert 'id="find_files"' in page.text
    assert "Rifiutato" not in page.text

    folder = console.house.settings.metnos_home / "executors" / "find_files"
    (folder / "main.py").write_text("changed = True\n", encoding="utf-8")
    page = await console.get("/executors", lang="en")

    assert 'id="find_files"' not in page.text
    assert "One program refused" in page.text
    assert '<strong class="mono wrap">find_files</strong>' in page.text


async def test_turn_that_went_on_here_is_told_from_its_log(tmp_path: Path) -> None:
    model = ScriptedModel(
        [Rule(user="che ore", after=0, calls=[("get_now", {})]), Rule(text="Le dieci.")]
    )
    with model.running() as base_url:
        async with open_console(tmp_path, metnos_llm_base_url=base_url) as console:
            closed = await ask(console.house, "che ore sono?")
            await console.house.turns.close()
            log = TurnLog(console.house.settings.metnos_home / "turns")
            assert log.files()

            listed = await console.get("/turns")
            page = await console.get(f"/turns/{closed.turn_id}")

    assert f'href="/turns/{closed.turn_id}"' in listed.text
    assert "Modello</td>" in listed.text
    assert "che ore sono?" in page.text
    assert '<span class="muted mono small wrap">get_now</span>' in page.text
    assert "argomenti: ok" in page.text
    assert "guardia: ok" in page.text
