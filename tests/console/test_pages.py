"""The pages that show how the house is and what it remembers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.console import pages
from bot.console.app import build_app
from bot.console.ports import Outcome, Page, Visit
from core.errors import StoreError
from core.execution.cage.process import ProcessCage
from core.execution.cage.status import Isolation
from core.store import usage
from tests.console.conftest import Console, browser


async def test_overview_in_both_languages(console: Console) -> None:
    page = await console.get("/")
    assert page.status_code == 200
    assert "Ultimo contatto con Telegram" in page.text
    page = await console.get("/", lang="en")
    assert "Last contact with Telegram" in page.text


async def test_praxis_when_nothing_is_remembered(console: Console) -> None:
    page = await console.get("/praxis")
    assert page.status_code == 200
    assert "Qui non c'è niente" in page.text.replace("&#39;", "'")


async def boom(visit: Visit) -> Outcome:
    raise RuntimeError("S3CR3T detail")


async def unread(visit: Visit) -> Outcome:
    raise StoreError("S3CR3T detail")


@pytest.mark.parametrize(
    ("lang", "words"),
    [
        ("it", ("Qui non c", "Qualcosa è andato storto", "Il database non risponde")),
        ("en", ("There is nothing here", "Something went wrong", "The database does not answer")),
    ],
)
async def test_what_goes_wrong_is_said_in_a_page_of_its_own(
    console: Console, lang: str, words: tuple[str, ...]
) -> None:
    await console.speak(lang)
    odd = (Page("/boom", boom), Page("/unread", unread))
    async with browser(build_app(console.house, all_pages=(*pages.ALL, *odd))) as client:
        client.cookies = console.client.cookies
        told = [await client.get(path) for path in ("/nowhere", "/boom", "/unread")]
        wrong_way = await client.get("/praxis/flush")

    assert [page.status_code for page in told] == [404, 500, 503]
    assert all(word in page.text for word, page in zip(words, told, strict=True))
    assert not any("S3CR3T" in page.text or "Traceback" in page.text for page in told)
    assert all("content-security-policy" in page.headers for page in told)
    assert wrong_way.status_code == 404


async def test_switch_of_language_is_kept_and_leads_nowhere_else(console: Console) -> None:
    assert '<html lang="it">' in (await console.get("/")).text
    elsewhere = (
        "//evil.example",
        "/\\evil.example",
        "http://evil.example",
        "evil",
        "/a\r\nx: y",
        "",
    )
    led = {back: await console.post("/lang", lang="en", back=back) for back in elsewhere}
    moved = await console.post("/lang", lang="<b>", back="/praxis")

    assert {page.headers["location"] for page in led.values()} == {"/"}
    assert moved.headers["location"] == "/praxis"
    assert '<html lang="en">' in (await console.get("/praxis")).text


async def test_overview_says_what_is_not_as_it_should_be(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def off(_: ProcessCage) -> Isolation:
        return Isolation.OFF

    monkeypatch.setattr(ProcessCage, "isolation", off)
    console.engine.age_s, console.engine.other = None, "altro_bot"
    console.engine.queued = 3

    page = (await console.get("/")).text

    assert "altro_bot" in page
    assert "METNOS_UNSAFE_NO_CAGE" in page
    assert "non lo sento" in page
    assert "3 in coda" in page


async def test_overview_counts_the_day_of_everybody(console: Console) -> None:
    house = console.house
    today = house.clock.now().astimezone(house.settings.zone).date()
    async with house.stores.main.write() as tx:
        for actor in ("a", "b"):
            await usage.add(
                tx, actor, today, tokens_in=1000, tokens_out=234, turns=4, from_memory=3, money=0.5
            )
        await usage.add(tx, "a", today - timedelta(days=6), turns=2)
        await usage.add(tx, "a", today - timedelta(days=7), turns=100)

    page = (await console.get("/")).text

    assert "2.468" in page
    assert "75 %" in page
    assert "1,00 €" in page
    assert "10 in 7 giorni" in page
