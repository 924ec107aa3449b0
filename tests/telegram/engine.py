"""A stand-in for the engine behind the channel: the request itself says what the turn does.

echo WORDS            answers WORDS
slow SECONDS WORDS    answers after that time
work SECONDS          a step with progress twice a second, then an answer
prose TEXT            answers with the model's Markdown
code TEXT             answers with a block of code
grow SECONDS TEXT     answers with the model's Markdown, which grows word by word for so long
files FOLDER          answers with the files of that folder
boom                  raises in the middle
given…, or no words   says what came with the request
hush                  yields nothing at all
ask KIND              asks: approve, long, text, secret, place; the answer is then said back
expire                takes back what is asked, as a question that ran out
"""

from __future__ import annotations

import asyncio
import mimetypes
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from core.clock import SystemClock
from core.messages import (
    Attachment,
    Block,
    ChatAddress,
    FinalKind,
    Inbound,
    Reply,
    StepFinished,
    StepProgress,
    StepStarted,
    TextGrew,
    TurnClosed,
    TurnEvent,
    TurnStarted,
)
from core.store import outbox
from core.store.database import Database
from tests.telegram.dialogs import FakeDialogs


@dataclass
class Running:
    request: str
    started: float
    task: asyncio.Task | None

    @property
    def seconds(self) -> float:
        return SystemClock().monotonic() - self.started


def _given(inbound: Inbound) -> str:
    """What came with a request, in one line."""
    files = ", ".join(f"{f['name']} ({f['bytes']})" for f in inbound.data.get("files", ()))
    late = " (late)" if inbound.data.get("late") else ""
    return f"[{inbound.kind.value}] {inbound.text!r} «{inbound.quoted or ''}» {files}{late}"


class FakeTurns:
    """`core.turn.Turns` as the channel sees it: answers once per inbound id, also over restarts,
    and puts the answer into the outbox before it tells of the end."""

    def __init__(self, store: Database) -> None:
        self.store = store
        self.clock = SystemClock()
        self.running: dict[str, Running] = {}
        self.inbounds: list[Inbound] = []
        self.followed: list[Inbound] = []
        self.dialogs = FakeDialogs(store, self.clock)

    async def run(self, inbound: Inbound) -> AsyncIterator[TurnEvent]:
        self.inbounds.append(inbound)
        if (dialog := await self.dialogs.hear(inbound)) is not None:
            for event in dialog:
                yield event
            return
        turn_id = uuid.uuid5(uuid.NAMESPACE_URL, inbound.id).hex
        key = f"{turn_id}:final"
        lang = inbound.lang or "it"
        async with self.store.read() as tx:
            done = await outbox.find(tx, key)
        if done is not None:
            yield TurnClosed(turn_id, FinalKind.ANSWER, Reply.from_json(done.body), None, key)
            return
        text = inbound.text
        if inbound.text == "quoted":
            text = f"echo {inbound.quoted or inbound.data.get('told')}"
        elif not inbound.text or inbound.text.startswith("given"):
            text = f"echo {_given(inbound)}"
        work = asyncio.create_task(self._work(text))
        here = self.running[inbound.address.key] = Running(
            inbound.text, self.clock.monotonic(), work
        )
        try:
            yield TurnStarted(turn_id, lang, inbound.message_ref)
            word, _, rest = inbound.text.partition(" ")
            if word == "hush":
                return
            if word == "unkept":
                yield TurnClosed("", FinalKind.ERROR, Reply((Block("text", rest),), lang))
                return
            if word == "grow":
                seconds, _, said = rest.partition(" ")
                words = said.split(" ")
                for count in range(1, len(words) + 1):
                    yield TextGrew(turn_id, " ".join(words[:count]))
                    await asyncio.sleep(float(seconds) / len(words))
            if word == "work":
                yield StepStarted(turn_id, 1, "find_files", "🔎 Cerco i PDF…")
                for done_count in range(int(float(rest) * 2)):
                    yield StepProgress(turn_id, 1, done_count + 1, int(float(rest) * 2))
                    await asyncio.wait({work}, timeout=0.5)
                    if work.done():
                        break
                work.cancel()
                yield StepFinished(turn_id, 1, "find_files", True)
            try:
                blocks = await work
            except asyncio.CancelledError:
                blocks = (Block("text", "fermato" if word == "slow" else "fatto"),)
            reply = Reply(
                blocks,
                lang,
                turn_id,
                attachments=_attached(inbound.text),
                answers=inbound.message_ref,
            )
            async with self.store.write() as tx:
                await outbox.enqueue(tx, key, inbound.address, reply.to_json(), self.clock.now())
            yield TurnClosed(turn_id, FinalKind.ANSWER, reply, None, key)
        finally:
            work.cancel()
            if self.running.get(inbound.address.key) is here:
                del self.running[inbound.address.key]

    async def correct(self, inbound: Inbound) -> bool:
        return False

    async def make_way(self, inbound: Inbound) -> None:
        return None

    async def follow(self, inbound: Inbound) -> None:
        self.followed.append(inbound)

    async def answer_public(self, request: str, lang: str) -> Reply:
        return Reply((Block("text", f"pubblico: {request}"),), lang)

    async def stop(self, address: ChatAddress, sender_id: str | None = None) -> bool:
        found = self.running.get(address.key)
        return found is not None and found.task is not None and found.task.cancel()

    def status(self, address: ChatAddress) -> Running | None:
        return self.running.get(address.key)

    async def _work(self, text: str) -> tuple[Block, ...]:
        word, _, rest = text.partition(" ")
        match word:
            case "slow":
                seconds, _, words = rest.partition(" ")
                await asyncio.sleep(float(seconds))
                return (Block("text", words),)
            case "work":
                await asyncio.sleep(3600)
                return ()
            case "prose" | "code":
                return (Block(word, rest),)
            case "long":
                lines = "\n".join(f"line {n} {'x' * 40}" for n in range(int(rest)))
                return (
                    Block("prose", f"```python\n{lines}\n```\nend"),
                    Block("small", "rif. 7f3a"),
                )
            case "grow":
                return (Block("prose", rest.partition(" ")[2]),)
            case "files":
                return (Block("text", "Eccoli."),)
            case "boom":
                raise RuntimeError("a fault of the engine")
            case _:
                return (Block("text", rest or text),)


def _attached(text: str) -> tuple[Attachment, ...]:
    word, _, folder = text.partition(" ")
    paths = sorted(Path(folder).iterdir()) if word == "files" else []
    return tuple(
        Attachment(
            str(path),
            path.name,
            mimetypes.guess_type(path.name)[0] or "application/octet-stream",
            path.lstat().st_size,
        )
        for path in paths
    )
