"""The console in a real browser, without JavaScript: in by the link, through every page, a plan
deleted, memory flushed. METNOS_SHOTS names a folder for pictures of each page, if they are wanted.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.support.ui import WebDriverWait

from bot.app import load_texts
from core.store import plan_cache
from tests.console.conftest import Console, open_console
from tests.console.test_served import free_port, link_of
from tests.support import browser
from tests.support.past import Past, invent
from tests.support.scripted_model import Rule
from tests.support.world import open_world

pytestmark = [
    pytest.mark.needs_chromium,
    pytest.mark.skipif(not browser.is_here(), reason="needs_chromium"),
]
TEXTS = load_texts()


@asynccontextmanager
async def served(tmp_path: Path) -> AsyncIterator[tuple[Console, str, Past]]:
    """The console of a house with a past, on a port of this machine."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        async with open_console(tmp_path, metnos_console_hosts=(place,)) as console:
            house = console.house
            past = await invent(
                house.settings.metnos_home,
                house.stores,
                console.host.id,
                turns=600,
                days=30,
                now=house.clock.now(),
            )
            server = uvicorn.Server(uvicorn.Config(console.app, log_config=None, lifespan="off"))
            running = asyncio.create_task(server.serve(sockets=[listening]))
            try:
                yield console, f"http://{place}", past
            finally:
                server.should_exit = True
                await running


async def test_console_is_gone_through_by_a_person_on_a_phone_and_at_a_desk(
    tmp_path: Path,
) -> None:
    shots = Path(folder) if (folder := os.environ.get("METNOS_SHOTS")) else None

    async with served(tmp_path) as (console, base, past):
        secret = await console.link()
        await asyncio.to_thread(_visit, base, secret, past, shots)

        async with console.house.stores.memory.read() as tx:
            assert await plan_cache.count(tx) == (0, 0)


def test_host_comes_by_the_link_from_telegram_and_takes_a_plan_away(tmp_path: Path) -> None:
    rules = [
        Rule(user="che ore", after=0, calls=[("get_now", {})]),
        Rule(user="che ore", after=1, text="Ecco."),
    ]
    place = {"METNOS_CONSOLE": "on", "METNOS_CONSOLE_PORT": str(free_port())}
    with open_world(tmp_path, rules, METNOS_MEMORY="1", **place) as world:
        world.telegram.start_bot()
        anna = world.host()

        def ask() -> int:
            """What a request costs: requests at the model."""
            before, lines = len(world.model.asked), len(world.log_lines())
            world.telegram.say(anna, "che ore sono?")
            world.wait_for(lambda: len(world.log_lines()) > lines, what="the answer")
            return len(world.model.asked) - before

        assert ask() > 0
        assert ask() == 0
        with browser.open_browser() as driver:
            link = link_of(world, anna)
            _enter(driver, link.partition("/enter")[0], link.rpartition("/")[2])
            driver.find_element("css selector", "header nav a[href='/turns']").click()
            _wait(driver, lambda: driver.find_elements("css selector", "table.list"))
            assert [row.text for row in driver.find_elements("css selector", "td.main")] == [
                "che ore sono?",
                "che ore sono?",
            ]
            driver.find_element("css selector", "td.main a").click()
            _wait(driver, lambda: driver.find_elements("css selector", "ol.timeline"))
            assert "get_now" in driver.find_element("css selector", "ol.timeline").text
            _forget_one_plan(driver, link.partition("/enter")[0], "it")
            assert browser.complaints(driver) == []
        assert ask() > 0


def _visit(base: str, secret: str, past: Past, shots: Path | None) -> None:
    with browser.open_browser() as driver:
        _enter(driver, base, secret)
        for lang in ("it", "en"):
            _speak(driver, lang)
            for path in _pages(driver, past):
                driver.get(base + path)
                _look(driver, shots, path, lang)
            _forget_one_plan(driver, base, lang)
        _flush(driver, base, "en")
        # The link was for one time.
        driver.delete_all_cookies()
        _press(driver, f"{base}/enter/{secret}", "button.main")
        gone = TEXTS.say("console.outside.stale", "en")
        _wait(driver, lambda: driver.find_element("tag name", "h1").text == gone)
        driver.get(f"{base}/turns")
        assert not driver.find_elements("css selector", "nav")


def _enter(driver: Any, base: str, secret: str) -> None:
    _press(driver, f"{base}/enter/{secret}", "button.main")
    _wait(driver, lambda: driver.current_url == f"{base}/")
    # The door itself is a 401, as all is that is seen without a session: the browser says so.
    assert all("401" in one for one in browser.complaints(driver))


def _press(driver: Any, url: str, button: str) -> None:
    driver.get(url)
    driver.find_element("css selector", button).click()


def _speak(driver: Any, lang: str) -> None:
    for button in driver.find_elements("css selector", f"button[name=lang][value={lang}]"):
        button.click()
        break
    _wait(driver, lambda: driver.find_elements("css selector", f"html[lang={lang}]"))


def _pages(driver: Any, past: Past) -> Iterator[str]:
    """All that the menu leads to, and pages below."""
    links = driver.find_elements("css selector", "header nav a")
    paths = ["/" + link.get_attribute("href").split("/", 3)[3] for link in links]
    assert len(paths) == len(set(paths)) >= 7
    yield from paths
    yield from (f"/turns/{past.resumed}", f"/turns/{past.failed}", "/turns?kind=error")
    yield from ("/effects?state=unknown", "/turns?day=2020-01-01")


def _look(driver: Any, shots: Path | None, path: str, lang: str) -> None:
    """Nothing is missing, nothing stands out at the side, nothing is left untranslated."""
    kind = path.strip("/").replace("/", "-").replace("?", "-").replace("=", "-")[:20] or "home"
    for width, dark in product((browser.PHONE, browser.DESKTOP), (False, True)):
        browser.show_as(driver, width=width, dark=dark)
        wide, _ = browser.page_size(driver)
        assert wide <= width, f"{path} is {wide} wide on {width}"
        if shots is not None:
            screen = f"{width}-{'dark' if dark else 'light'}"
            browser.photograph(driver, shots / f"{kind}-{lang}-{screen}.png")
    assert browser.complaints(driver) == []
    text = driver.find_element("tag name", "body").text
    assert "console." not in text
    assert "S3CR3T" not in text


def _forget_one_plan(driver: Any, base: str, lang: str) -> None:
    driver.get(f"{base}/praxis")
    before = len(driver.find_elements("css selector", "table.list tbody tr"))
    driver.find_element("css selector", "table.list td.acts form button.bad").click()
    assert TEXTS.say("console.done.plan_deleted", lang) in _note(driver)
    assert len(driver.find_elements("css selector", "table.list tbody tr")) == before - 1


def _flush(driver: Any, base: str, lang: str) -> None:
    for word, done in (("no", "flush_left"), (TEXTS.say("cli.plans.flush_word", lang), "flushed")):
        driver.get(f"{base}/praxis")
        driver.find_element("css selector", "form.sure input[name=which][value=all]").click()
        field = driver.find_element("css selector", "form.sure input[name=word]")
        field.send_keys(word)
        field.find_element("xpath", "./ancestor::form//button").click()
        count = 6  # of eight, one was deleted in each language
        assert TEXTS.say(f"console.done.{done}", lang, count=count) in _note(driver)


def _note(driver: Any) -> str:
    _wait(driver, lambda: driver.find_elements("css selector", "[role=status]"))
    return str(driver.find_element("css selector", "[role=status]").text)


def _wait(driver: Any, test: Callable[[], Any]) -> None:
    WebDriverWait(driver, 60, 0.05, [StaleElementReferenceException]).until(lambda _: test())
