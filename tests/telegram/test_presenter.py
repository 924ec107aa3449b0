"""Progress messages: whatever crosses with the end of a turn, none stays behind the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.telegram import presenter as module
from bot.telegram.pacing import Gate
from bot.telegram.presenter import Presenter
from core.clock import SystemClock
from core.i18n import Texts
from core.messages import ChatAddress, StepStarted, TextGrew, TurnStarted
from core.store.stores import Stores, open_stores
from tests.support.executors import home_settings

ROOT = Path(__file__).parents[2]
CHAT = ChatAddress("telegram", "1000")


class SlowBot:
    """A bot whose requests take as long as the test says; `standing` is what is in the chat."""

    def __init__(self) -> None:
        self.standing: dict[int, str] = {}
        self.sent = 0
        self.drafts: list[str] = []
        self.sending = asyncio.Event()
        self.may_send = asyncio.Event()
        self.editing = asyncio.Event()
        self.may_edit = asyncio.Event()

    async def send_chat_action(self, *_: Any, **__: Any) -> None:
        pass

    async def send_message(self, _: int, text: str, **__: Any) -> Any:
        self.sending.set()
        await self.may_send.wait()
        self.sent += 1
        self.standing[self.sent] = text
        return SimpleNamespace(message_id=self.sent)

    async def edit_message_text(self, text: str, _: int, message_id: int, **__: Any) -> None:
        self.editing.set()
        await self.may_edit.wait()
        self.standing[message_id] = text

    async def send_message_draft(self, _: int, __: int, text: str, **___: Any) -> None:
        self.drafts.append(text)

    async def delete_message(self, _: int, message_id: int) -> None:
        del self.standing[message_id]


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    stores = await open_stores(home_settings(tmp_path), SystemClock())
    yield stores
    await stores.close()


@pytest.fixture
async def bot(monkeypatch: pytest.MonkeyPatch) -> SlowBot:
    monkeypatch.setattr(module, "PROGRESS_AFTER_S", 0.0)
    monkeypatch.setattr(module, "TYPING_AFTER_S", 0.01)
    monkeypatch.setattr(module, "EDIT_EVERY_S", 0.0)
    monkeypatch.setattr(module, "_LAST_REQUEST_S", 0.3)
    return SlowBot()


@pytest.fixture
async def presenter(bot: SlowBot, stores: Stores) -> Presenter:
    clock = SystemClock()
    presenter = Presenter(
        bot=bot,  # type: ignore[arg-type]
        gate=Gate(clock.monotonic),
        store=stores.main,
        texts=Texts.load(ROOT / "locales"),
        clock=clock,
        lang="it",
        wake_outbox=lambda: None,
    )
    await presenter.show(CHAT, TurnStarted("t1", "it"))
    await presenter.show(CHAT, StepStarted("t1", 1, "write_files", "Scrivo il file"))
    return presenter


async def test_progress_whose_send_crosses_with_the_end_is_handed_to_the_answer(
    presenter: Presenter, bot: SlowBot
) -> None:
    """The turn ends while the message is on its way, and another chat wakes the outbox."""
    await bot.sending.wait()
    ending = asyncio.create_task(presenter.end(CHAT))
    await asyncio.sleep(0)
    taking = asyncio.create_task(presenter.take_progress("t1"))
    await asyncio.sleep(0)

    bot.may_send.set()
    progress = await taking
    await ending

    assert progress is not None
    assert list(bot.standing) == [progress.message_id]
    assert await presenter.take_progress("t1") is None


async def test_progress_whose_note_takes_too_long_is_taken_away(
    presenter: Presenter, bot: SlowBot, stores: Stores
) -> None:
    """It was sent in time, but the store is busy beyond the end of the turn."""
    await bot.sending.wait()
    async with stores.main.write():
        bot.may_send.set()
        await _until(lambda: bot.sent == 1)
        await presenter.end(CHAT)
        assert await presenter.take_progress("t1") is None

    await _until(lambda: not bot.standing)


async def test_progress_whose_last_edit_takes_too_long_is_taken_away(
    presenter: Presenter, bot: SlowBot
) -> None:
    bot.may_send.set()
    await _until(lambda: bool(bot.standing))
    await presenter.show(CHAT, StepStarted("t1", 2, "read_files", "Leggo il file"))
    await bot.editing.wait()
    await presenter.end(CHAT)
    assert await presenter.take_progress("t1") is None

    bot.may_edit.set()

    await _until(lambda: not bot.standing)


async def test_progress_whose_send_takes_too_long_is_taken_away(
    presenter: Presenter, bot: SlowBot
) -> None:
    await bot.sending.wait()
    await presenter.end(CHAT)
    assert await presenter.take_progress("t1") is None

    bot.may_send.set()

    await _until(lambda: bot.sent == 1 and not bot.standing)


async def _until(test: Any) -> None:
    async with asyncio.timeout(45):
        while not test():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_growing_answer_in_a_group_is_an_edited_message_and_no_draft(
    presenter: Presenter, bot: SlowBot
) -> None:
    group = ChatAddress("telegram", "-100200", "7")
    bot.may_send.set()
    bot.may_edit.set()
    await presenter.end(CHAT)
    await presenter.show(group, TurnStarted("t2", "it"))
    await presenter.show(group, TextGrew("t2", "Una **prima** frase."))
    await _until(lambda: "Una prima frase." in bot.standing.values())
    await presenter.show(group, TextGrew("t2", "Una **prima** frase. Una seconda."))

    await _until(lambda: "Una prima frase. Una seconda." in bot.standing.values())
    await presenter.end(group)

    progress = await presenter.take_progress("t2")
    assert progress is not None
    assert bot.standing[progress.message_id].endswith("seconda.")
    assert not bot.drafts


async def test_growing_answer_beside_a_progress_message_goes_on_in_it(
    presenter: Presenter, bot: SlowBot
) -> None:
    """A draft would stay behind the answer, which takes the other's place by an edit."""
    bot.may_send.set()
    bot.may_edit.set()
    await _until(lambda: bool(bot.standing))
    await presenter.show(CHAT, TextGrew("t1", "Una prima frase."))

    await _until(lambda: list(bot.standing.values()) == ["Una prima frase."])
    await presenter.end(CHAT)

    assert not bot.drafts
