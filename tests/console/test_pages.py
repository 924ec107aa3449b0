"""The pages that show how the house is and what it remembers."""

from __future__ import annotations

from tests.console.conftest import Console


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
