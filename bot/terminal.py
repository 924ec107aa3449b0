"""A terminal as a channel: the same engine, asked from a keyboard or from a pipe.

Runs on the main thread, beside the engine's, so that it hears Ctrl-C: at the prompt that leaves,
during a turn it stops the turn.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from getpass import getpass
from typing import Any

from bot.app import House
from bot.cli.lines import is_bar_wanted, visible
from bot.cli.output import Console
from bot.engine import Engine
from bot.prompt import typed
from bot.terminal_text import (
    LEAVING_WORDS,
    choices,
    chosen,
    help_blocks,
    named_command,
    reply_lines,
    unknown_blocks,
)
from core.messages import (
    ButtonsChanged,
    ChatAddress,
    FinalKind,
    Inbound,
    InboundKind,
    QuestionSettled,
    Reply,
    StepFinished,
    StepProgress,
    StepStarted,
    TurnClosed,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from core.redaction import MASK
from core.store import actors

HERE = ChatAddress(actors.LOCAL_CHANNEL, actors.LOCAL_SENDER)


@dataclass(slots=True)
class Answer:
    """The end of a turn and the steps that led there, in order: {number, tool, ok}."""

    closed: TurnClosed | TurnSuspended
    steps: list[dict[str, Any]] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    """What became of the questions that were answered, in words."""
    changed: Reply | None = None
    """The buttons that stand under an earlier answer from now on."""

    @property
    def question(self) -> Reply | None:
        """What the turn waits for; None: it has ended."""
        return self.closed.reply if isinstance(self.closed, TurnSuspended) else None

    @property
    def offer(self) -> Reply | None:
        """What can be chosen by its number now, besides anything else that may be said."""
        shown = self.changed if self.changed is not None else self.closed.reply
        return shown if choices(shown) else None

    @property
    def is_answered(self) -> bool:
        return isinstance(self.closed, TurnClosed) and self.closed.final_kind is FinalKind.ANSWER

    def to_json(self) -> dict[str, Any]:
        reply = self.closed.reply
        error = self.closed.error if isinstance(self.closed, TurnClosed) else None
        asked = self.question
        return {
            "turn_id": self.closed.turn_id or None,
            "final_kind": reply.final_kind.value,
            "lang": reply.lang,
            "text": reply.plain,
            "steps": self.steps,
            "error": None if error is None else {"code": error.code, "detail": error.detail},
            **({"files": [file.path for file in reply.attachments]} if reply.attachments else {}),
            **({} if asked is None else {"choices": [b.label for b in choices(asked)]}),
        }


class Terminal:
    """The conversation of the person at this machine, who is the host.

    `lang`: the language asked for, None to answer each request in its own. `interactive`: a person
    is at the keyboard.
    """

    def __init__(
        self,
        engine: Engine,
        house: House,
        console: Console,
        *,
        lang: str | None = None,
        interactive: bool = True,
    ) -> None:
        self._engine, self._house, self._console, self._lang = engine, house, console, lang
        self._interactive = interactive
        self._bar = is_bar_wanted(sys.stderr)
        self._drawn = False

    def ask(self, text: str, *, question: Reply | None = None) -> Answer:
        """Run one turn and wait for its end. Ctrl-C stops the turn, whose end says what had been
        done; a second Ctrl-C raises `KeyboardInterrupt`.

        `question`: what was asked or offered last and may be answered by this, also with a number.
        """
        if (told := self._told(text, question)) is not None:
            return told
        token = None if question is None else chosen(question, text)
        # Typed unseen at the question: its answer, and nobody's request whatever becomes of it.
        secret = question.turn_id if question is not None and question.secret else None
        future = self._engine.start(self._turn(text, token, secret))
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

    def _told(self, text: str, question: Reply | None) -> Answer | None:
        """What this channel says itself: its help, and that it has no such command. What is
        typed at a question that waits is an answer, but for `/help`."""
        texts, lang = self._console.texts, self._lang or self._console.lang
        match named_command(text):
            case "/help":
                reply = Reply(help_blocks(texts, lang), lang)
            case str(name) if question is None or question.expects is None:
                reply = Reply(unknown_blocks(texts, lang, name), lang, final_kind=FinalKind.ERROR)
            case _:
                return None
        return Answer(TurnClosed("", reply.final_kind, reply))

    def converse(self) -> None:
        """Prompt, answer, and again, until the end of input, Ctrl-C or a leaving word."""
        with suppress(ImportError):
            import readline  # noqa: F401 - gives `input` line editing and history
        prompt = self._console.say("cli.chat.prompt")
        offer = self.tell_cut_short()
        while True:
            try:
                text = typed(input, prompt)
            except (EOFError, KeyboardInterrupt):
                self._console.line()
                return
            if text.strip().lower() in LEAVING_WORDS:
                return
            if text.strip():
                self._console.line()
                answer = self.go_on(self.ask(text, question=offer))
                if answer.question is not None:
                    return
                offer = answer.offer
                self._console.line()

    def tell_cut_short(self) -> Reply | None:
        """Print the ends of turns that an earlier process left here; what the last one offers."""
        told = [closed.reply for address, closed in self._house.told if address == HERE]
        for reply in told:
            self.show(reply)
            self._console.line()
        return told[-1] if told else None

    def go_on(self, answer: Answer) -> Answer:
        """Show an answer; while it is a question, hear what is said to it and go on. Left with
        Ctrl-C, a leaving word or the end of input, the question stays open until it runs out."""
        while True:
            self.show_all(answer)
            if (question := answer.question) is None:
                return answer
            if (text := self._hear(question)) is None:
                return answer
            self._console.line()
            answer = self.ask(text, question=question)

    def answer_lines(self, lines: Iterable[str], *, as_json: bool = False) -> bool:
        """Answer one request a line, in order, each echoed before its answer (as JSON: one
        document a line). Whether all were answered."""
        well, question = True, None
        offer = None if as_json else self.tell_cut_short()
        for line in lines:
            text = line.strip()
            if not text:
                continue
            if text.lower() in LEAVING_WORDS:
                break
            said = MASK if question is not None and question.secret else text
            if not as_json:
                self._console.line(f"> {said}")
            answer = self.ask(text, question=question or offer)
            # A question counts by what becomes of it in the next line.
            well = well and (question is None or bool(answer.settled))
            question, offer = answer.question, answer.offer
            well = well and (answer.is_answered or question is not None)
            if as_json:
                self._console.json_line({"request": said, **answer.to_json()})
            else:
                self.show_all(answer)
                self._console.line()
        return well and question is None

    def show_all(self, answer: Answer) -> None:
        """Print what became of the questions, then the reply."""
        for line in answer.settled:
            self._console.line(visible(line))
        if answer.settled and answer.closed.reply.plain:
            self._console.line()
        self.show(answer.closed.reply)

    def show(self, reply: Reply, *, once: bool = False) -> None:
        """Print a reply on standard output; `once`: nothing can be said to it."""
        if once and reply.expects is None:
            reply = replace(reply, buttons=())
        if reply.repeated:
            self._console.line(self._console.texts.say("telegram.repeated", reply.lang))
        for line in reply_lines(reply, styled=is_bar_wanted(sys.stdout)):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def _hear(self, question: Reply) -> str | None:
        """What is typed at a question; None: the person leaves. A secret is not shown."""
        key = "cli.chat.choose" if choices(question) else "cli.chat.reply"
        prompt = self._console.say(key)
        while True:
            try:
                text = typed(getpass if question.secret else input, prompt)
            except (EOFError, KeyboardInterrupt):
                self._console.line()
                return None
            if text.strip().lower() in LEAVING_WORDS:
                return None
            if text.strip():
                return text

    async def _turn(
        self, text: str, token: str | None = None, secret: str | None = None
    ) -> Answer:
        clock = self._house.clock
        inbound = Inbound(
            id=f"{HERE.channel}:{clock.new_id()}",
            address=HERE,
            sender_id=actors.LOCAL_SENDER,
            kind=InboundKind.TEXT if token is None else InboundKind.CHOICE,
            text=text if token is None else "",
            received_at=clock.now(),
            lang=self._lang,
            data={
                **({} if self._lang is None else {"lang": self._lang}),
                **({} if token is None else {"token": token}),
                **({} if self._interactive else {"interactive": False}),
                **({} if secret is None else {"reply_to": secret, "secret": True}),
            },
        )
        answer: Answer | None = None
        steps: list[dict[str, Any]] = []
        settled: list[str] = []
        changed: Reply | None = None
        phrase = ""
        async for event in self._house.turns.run(inbound):
            match event:
                case StepFinished():
                    steps.append({"number": event.number, "tool": event.tool, "ok": event.ok})
                case TurnClosed() | TurnSuspended():
                    answer = Answer(event, steps, settled, changed)
                case QuestionSettled():
                    settled += [event.text] if event.text else []
                case ButtonsChanged():
                    changed = event.reply
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
