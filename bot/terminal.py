"""A terminal as a channel: the same engine, asked from a keyboard or from a pipe.

The engine lives on a thread of its own with its event loop, so that the main thread can wait at
the prompt and hear Ctrl-C: at the prompt it leaves, during a turn it stops the turn.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import shutil
import sys
import threading
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from bot.app import House, open_house, warm
from bot.cli.lines import is_bar_wanted, visible
from bot.cli.output import Console
from bot.terminal_text import reply_lines
from core.config import Settings
from core.messages import (
    ChatAddress,
    FinalKind,
    Inbound,
    InboundKind,
    Reply,
    StepFinished,
    StepProgress,
    StepStarted,
    TurnClosed,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from core.store import actors

HERE = ChatAddress(actors.LOCAL_CHANNEL, actors.LOCAL_SENDER)
LEAVING_WORDS = frozenset({"/exit", "/quit", "/esci"})
_CLOSE_S = 20.0
T = TypeVar("T")


@dataclass(slots=True)
class Answer:
    """The end of a turn and the steps that led there, in order: {number, tool, ok}."""

    closed: TurnClosed | TurnSuspended
    steps: list[dict[str, Any]] = field(default_factory=list)

    @property
    def is_answered(self) -> bool:
        return isinstance(self.closed, TurnClosed) and self.closed.final_kind is FinalKind.ANSWER

    def to_json(self) -> dict[str, Any]:
        reply = self.closed.reply
        error = self.closed.error if isinstance(self.closed, TurnClosed) else None
        return {
            "turn_id": self.closed.turn_id or None,
            "final_kind": reply.final_kind.value,
            "lang": reply.lang,
            "text": reply.plain,
            "steps": self.steps,
            "error": None if error is None else {"code": error.code, "detail": error.detail},
        }


class Engine:
    """A house on a thread. Entering opens it and raises what `open_house` raises; leaving closes
    it in order, and a turn that still runs is taken up at the next start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._opened: concurrent.futures.Future[House] = concurrent.futures.Future()
        self._leave = asyncio.Event()
        self._life: concurrent.futures.Future[None] | None = None

    def __enter__(self) -> House:
        self._thread.start()
        self._life = self.start(self._live())
        either: list[concurrent.futures.Future[Any]] = [self._opened, self._life]
        done, _ = concurrent.futures.wait(either, return_when=concurrent.futures.FIRST_COMPLETED)
        if self._opened not in done:
            try:
                self._life.result()
            finally:
                self._end_thread()
        return self._opened.result()

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._leave.set)
        try:
            if self._life is not None:
                with suppress(concurrent.futures.TimeoutError):
                    self._life.result(_CLOSE_S)
        finally:
            self._end_thread()

    def start(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run something on the engine's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _live(self) -> None:
        async with open_house(self._settings, "chat") as house:
            async with house.stores.main.write() as tx:
                await actors.ensure_local_host(tx, house.clock)
            warming = asyncio.create_task(warm(house))
            self._opened.set_result(house)
            await self._leave.wait()
            warming.cancel()
            await asyncio.wait([warming])

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(2)
        if not self._thread.is_alive():
            self._loop.close()


class Terminal:
    """The conversation of the person at this machine, who is the host.

    `lang`: the language asked for, None to answer each request in its own.
    """

    def __init__(
        self, engine: Engine, house: House, console: Console, *, lang: str | None = None
    ) -> None:
        self._engine, self._house, self._console, self._lang = engine, house, console, lang
        self._bar = is_bar_wanted(sys.stderr)
        self._drawn = False

    def ask(self, text: str) -> Answer:
        """Run one turn and wait for its end. Ctrl-C stops the turn, whose end says what had been
        done; a second Ctrl-C raises `KeyboardInterrupt`."""
        future = self._engine.start(self._turn(text))
        try:
            return future.result()
        except KeyboardInterrupt:
            self._draw(self._console.say("cli.chat.stopping"))
            stopping = self._engine.start(self._stop(future))
        try:
            stopping.result()
            return future.result()
        finally:
            self._clear()

    def converse(self) -> None:
        """Prompt, answer, and again, until the end of input, Ctrl-C or a leaving word."""
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` line editing and history
        prompt = self._console.say("cli.chat.prompt")
        while True:
            try:
                text = input(prompt)
            except (EOFError, KeyboardInterrupt):
                self._console.line()
                return
            if text.strip().lower() in LEAVING_WORDS:
                return
            if text.strip():
                self._console.line()
                self.show(self.ask(text).closed.reply)
                self._console.line()

    def answer_lines(self, lines: Iterable[str], *, as_json: bool = False) -> bool:
        """Answer one request a line, in order, each echoed before its answer (as JSON: one
        document a line). Whether all were answered."""
        well = True
        for line in lines:
            text = line.strip()
            if not text:
                continue
            if not as_json:
                self._console.line(f"> {text}")
            answer = self.ask(text)
            well = well and answer.is_answered
            if as_json:
                self._console.json_line({"request": text, **answer.to_json()})
            else:
                self.show(answer.closed.reply)
                self._console.line()
        return well

    def show(self, reply: Reply) -> None:
        """Print a reply on standard output."""
        if reply.repeated:
            self._console.line(self._console.texts.say("telegram.repeated", reply.lang))
        for line in reply_lines(reply, styled=is_bar_wanted(sys.stdout)):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()

    async def _turn(self, text: str) -> Answer:
        clock = self._house.clock
        inbound = Inbound(
            id=f"{HERE.channel}:{clock.new_id()}",
            address=HERE,
            sender_id=actors.LOCAL_SENDER,
            kind=InboundKind.TEXT,
            text=text,
            received_at=clock.now(),
            lang=self._lang,
            data={} if self._lang is None else {"lang": self._lang},
        )
        answer: Answer | None = None
        steps: list[dict[str, Any]] = []
        phrase = ""
        async for event in self._house.turns.run(inbound):
            match event:
                case StepFinished():
                    steps.append({"number": event.number, "tool": event.tool, "ok": event.ok})
                case TurnClosed() | TurnSuspended():
                    answer = Answer(event, steps)
                case _:
                    phrase = self._progress(event, phrase)
        self._clear()
        if answer is None:
            raise RuntimeError("a turn ended without its last event")
        return answer

    async def _stop(self, turn: concurrent.futures.Future[Answer]) -> None:
        # A turn that is only just being opened cannot be stopped yet, and nothing tells when.
        while not turn.done() and not await self._house.turns.stop(HERE):  # noqa: ASYNC110
            await asyncio.sleep(0.05)

    # -- progress: one line, drawn over, on standard error and only on a terminal ---------------

    def _progress(self, event: TurnEvent, phrase: str) -> str:
        """Draw what is happening; the phrase of the running step."""
        match event:
            case TurnStarted():
                phrase = self._house.texts.say("progress.working", event.lang)
                self._draw(phrase)
            case StepStarted():
                phrase = event.phrase
                self._draw(f"{phrase}…" if not phrase.endswith("…") else phrase)
            case StepProgress() if event.done is not None:
                total = f"/{event.total}" if event.total else ""
                self._draw(f"{phrase.rstrip('…')}… {event.done}{total}")
            case _:
                pass
        return phrase

    def _draw(self, text: str) -> None:
        if not self._bar:
            return
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{visible(text)[:width]}")
        sys.stderr.flush()
        self._drawn = True

    def _clear(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
            self._drawn = False
