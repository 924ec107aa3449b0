"""Every card and question as a person sees it, in both languages, out of a running bot.

`python -m tests.journeys.transcripts` prints them as Markdown; `--lang it`, `--scene approval`
print a part. Nothing is written down here but what the people do: each word comes from the bot,
over the fake Bot API, out of real state. For reading with the eyes of somebody in a hurry; no
test depends on it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.executors.photon_server import photon_server
from tests.journeys.cards import SCENES, Scene, rules_of
from tests.journeys.stage import GUEST, HOST, LANGS, Stage, open_stage, token_of

_NAMES = {
    "it": {HOST: "Tu", GUEST: "Ospite"},
    "en": {HOST: "You", GUEST: "Guest"},
}
_MARKS = {"bold": "**", "italic": "_", "code": "`", "pre": "```", "strikethrough": "~~"}
_QUIET_S = 0.5
_AT_WORK = {
    "inbox": "('new', 'running')",
    "outbox": "('pending', 'sending')",
    "turns": "('running')",
}


class Player:
    """Plays one scene in one language, and tells what everybody sees."""

    def __init__(self, stage: Stage, lang: str, out: Callable[[str], None]) -> None:
        self.stage, self.lang, self._out = stage, lang, out
        self._at = len(stage.telegram.tg.events)

    # -- what people do -------------------------------------------------------------------------

    def say(self, text: str, name: str = HOST) -> None:
        self._out(f"> **{self._name(name)}** {text}\n")
        self.stage.telegram.say(name, text)
        self._hear()

    def press(self, label: str, name: str = HOST, **where: Any) -> None:
        """Press the newest button that fits."""
        try:
            button = self.stage.telegram.press(name, label, **where)
        except LookupError:
            self._out(f"> _(no button {label!r})_\n")
            return
        text = button["text"] if isinstance(button, Mapping) else button
        self._out(f"> **{self._name(name)}** 👆 `{text}`\n")
        self._hear()

    def press_as_guest(self, label: str) -> None:
        """The guest presses the host's newest card."""
        message = self.card()
        self.stage.telegram.tap(GUEST, token_of({"message": message}, label))
        self._out(f"> **{self._name(GUEST)}** 👆 (the host's button)\n")
        self._hear()

    def press_again(self, label: str, message: Mapping[str, Any]) -> None:
        """Press a button that is not there any more."""
        token = token_of({"message": message}, label)
        self.stage.telegram.tap(HOST, token, message=message)
        self._out(f"> **{self._name(HOST)}** 👆 (the same button once more)\n")
        self._hear()

    def expire(self) -> None:
        self._out("> _(the time runs out)_\n")
        self.stage.let_expire()
        self._hear(wait_s=8.0)

    def say_and_kill(self, request: str) -> None:
        """Agree to what is asked, and end the bot while it is at work on it."""
        self.say(request)
        self._out(f"> **{self._name(HOST)}** 👆 `✅`\n")
        self._out("> _(killed in the middle, and started again)_\n")
        self.stage.telegram.press(HOST, "^✅")
        self.stage.wait_for(
            lambda: self.stage.rows("SELECT 1 FROM effects WHERE state = 'started'"),
            timeout=30,
            what="the change",
        )
        self.stage.restart(kill=True)
        self._hear(wait_s=10.0)

    def card(self) -> dict[str, Any]:
        chat = self.stage.telegram.tg.chats[self.stage.telegram.names[HOST]]
        asked = [m for m in chat["messages"].values() if "inline_keyboard" in _markup(m)]
        return dict(asked[-1])

    # -- what they see --------------------------------------------------------------------------

    def _hear(self, wait_s: float = 0.0) -> None:
        """Tell all that comes until nothing is at work any more; wait for a first word, if it
        comes by itself."""
        events, begun, told = self.stage.telegram.tg.events, time.monotonic(), False
        quiet_since = begun
        while time.monotonic() - quiet_since < _QUIET_S or (
            not told and time.monotonic() - begun < wait_s
        ):
            while self._at < len(events):
                self._at += 1
                if self._tell(events[self._at - 1]):
                    quiet_since, told = time.monotonic(), True
            if self.is_busy():
                quiet_since = time.monotonic()
            time.sleep(0.05)

    def is_busy(self) -> bool:
        """Whether anything is on its way to the bot, in it, or out of it."""
        return bool(self.stage.telegram.tg.updates) or any(
            self.stage.rows(f"SELECT 1 FROM {table} WHERE state IN {states} LIMIT 1")
            for table, states in _AT_WORK.items()
        )

    def _tell(self, event: Mapping[str, Any]) -> bool:
        kind, message = event["kind"], event.get("message") or {}
        if kind == "answer" and event.get("text"):
            self._out(f"> 💬 _{event['text']}_ (over the chat, for two seconds)\n")
        elif kind == "delete":
            self._out("> 🗑 _(the message is gone from the chat)_\n")
        elif kind in {"send", "edit"}:
            becomes = " _(the message becomes)_" if kind == "edit" else ""
            name = self._whose(event["chat_id"])
            lines = _formatted(message).splitlines()
            lines += [_keyboard_row(row) for row in _rows(_markup(message) or event.get("markup"))]
            body = "\n".join(f"> {line}  " for line in lines)
            self._out(f"> **Metnos**{name}{becomes}  \n{body}\n")
        return kind in {"send", "edit", "answer", "delete"}

    def _name(self, name: str) -> str:
        return _NAMES[self.lang][name]

    def _whose(self, chat_id: int) -> str:
        guest = self.stage.telegram.names[GUEST] == chat_id
        return f" → {self._name(GUEST)}" if guest else ""


def _markup(message: Mapping[str, Any]) -> dict[str, Any]:
    return dict(message.get("reply_markup") or {})


def _rows(markup: Mapping[str, Any] | None) -> Iterable[list[str]]:
    markup = markup or {}
    for row in markup.get("inline_keyboard") or ():
        yield [f"`{button['text']}`" for button in row]
    for row in markup.get("keyboard") or ():
        labels = [b if isinstance(b, str) else b["text"] for b in row]
        yield [f"⌨️ `{label}`" for label in labels]
    if markup.get("force_reply"):
        yield [f"✎ _{markup.get('input_field_placeholder', '')}_"]
    if markup.get("remove_keyboard"):
        yield ["_(the keyboard goes)_"]


def _keyboard_row(labels: Iterable[str]) -> str:
    return " ".join(labels)


def _formatted(message: Mapping[str, Any]) -> str:
    """The text with its marks as Markdown. Telegram counts in UTF-16."""
    text = str(message.get("text") or message.get("caption") or "")
    units = text.encode("utf-16-le")
    inserts: list[tuple[int, str]] = []
    for entity in message.get("entities") or ():
        mark = _MARKS.get(entity["type"])
        if mark:
            start = entity["offset"] * 2
            inserts += [(start, mark), (start + entity["length"] * 2, mark)]
    for at, mark in sorted(inserts, reverse=True):
        units = units[:at] + mark.encode("utf-16-le") + units[at:]
    if "document" in message:
        return f"📎 {message['document'].get('file_name')}\n" + units.decode("utf-16-le")
    return units.decode("utf-16-le")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.journeys.transcripts")
    parser.add_argument("--lang", choices=LANGS)
    parser.add_argument("--scene", help="only scenes whose name holds this")
    options = parser.parse_args()
    wanted = [scene for scene in SCENES if (options.scene or "") in scene.name]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metnos-scenes-")))
        photon = stack.enter_context(photon_server())
        env = {"METNOS_PHOTON_URL": photon.endpoint}
        stage = stack.enter_context(open_stage(folder, rules_of(SCENES), **env))
        for lang in LANGS:
            if options.lang in (None, lang):
                for scene in wanted:
                    _play(stage, scene, lang)
    return 0


def _play(stage: Stage, scene: Scene, lang: str) -> None:
    def out(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    stage.speak(lang, HOST, GUEST)
    scene.prepare(stage, lang)
    out(f"### {scene.title} ({lang})\n")
    scene.play(Player(stage, lang, out), scene.request[lang])
    stage.let_expire()
    stage.settle()


if __name__ == "__main__":
    sys.exit(main())
