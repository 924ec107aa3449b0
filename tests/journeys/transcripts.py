"""Every card and question as a person sees it, in both languages, out of a running bot.

`python -m tests.journeys.transcripts` prints them as Markdown; `--lang it`, `--scene approval`
print a part. Nothing is written down here but what the people do: each word comes from the bot,
over the fake Bot API, out of real state. For reading with the eyes of somebody in a hurry; no
test depends on it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.executors.photon_server import photon_server
from tests.journeys.cards import BY_LANG, SCENES, Scene, rules_of
from tests.journeys.crowd_cards import CROWD_SCENES
from tests.journeys.stage import GUEST, HOST, LANGS, Stage, open_stage, token_of
from tests.support.executors import signed_home
from tests.support.mail import add_mail

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

    def say(
        self,
        text: str,
        name: str = HOST,
        *,
        chat: str | None = None,
        thread: int | None = None,
        waits: bool = True,
    ) -> dict[str, Any]:
        """Write in private or in a group; the message. `waits` for what comes of it."""
        self.says(name, text, self._place(self._chat(chat or name), thread))
        message: dict[str, Any] = self.stage.telegram.say(name, text, chat=chat, thread=thread)
        if waits:
            self.hear()
        return message

    def says(self, name: str, text: str, where: str = "") -> None:
        """Tell that somebody writes."""
        self._out(f"> **{self._name(name)}**{f' ({where})' if where else ''} {text}\n")

    def edit(self, text: str, message: Mapping[str, Any]) -> None:
        """The host corrects what they wrote."""
        self._out(f"> **{self._name(HOST)}** ✏️ {text}\n")
        self.stage.telegram.edit(HOST, text, message_id=message["message_id"])
        self.hear(wait_s=2.0)

    def note(self, text: BY_LANG) -> None:
        """Tell what happens beside the words."""
        self._out(f"> _({text[self.lang]})_\n")

    def stranger(self, first_name: str) -> str:
        """Somebody the bot does not know; the name."""
        name = f"{first_name}-{self.lang}"
        if name not in self.stage.telegram.names:
            who = {"first_name": first_name, "language_code": self.lang}
            self.stage.telegram.user(name, **who)
        return name

    def press(self, label: str, name: str = HOST, **where: Any) -> None:
        """Press the newest button that fits."""
        try:
            where["chat"] = self.stage.telegram.names[where.get("chat") or name]
            button = self.stage.telegram.press(name, label, **where)
        except LookupError:
            self._out(f"> _(no button {label!r})_\n")
            return
        text = button["text"] if isinstance(button, Mapping) else button
        self._out(f"> **{self._name(name)}** 👆 `{text}`\n")
        self.hear()

    def press_as_guest(self, label: str) -> None:
        """The guest presses the host's newest card."""
        message = self.card()
        self.stage.telegram.tap(GUEST, token_of({"message": message}, label))
        self._out(f"> **{self._name(GUEST)}** 👆 (the host's button)\n")
        self.hear()

    def tap(self, name: str, message: Mapping[str, Any], label: str, *, chat: str) -> None:
        """Somebody presses a button that all in a group see."""
        token = token_of({"message": message}, label)
        self._out(f"> **{self._name(name)}** 👆 (the same button)\n")
        self.stage.telegram.tap(name, token, chat=chat, message=message)
        self.hear()

    def press_again(self, label: str, message: Mapping[str, Any]) -> None:
        """Press a button that is not there any more."""
        token = token_of({"message": message}, label)
        self.stage.telegram.tap(HOST, token, message=message)
        self._out(f"> **{self._name(HOST)}** 👆 (the same button once more)\n")
        self.hear()

    def expire(self) -> None:
        self._out("> _(the time runs out)_\n")
        self.stage.let_expire()
        self.hear(wait_s=8.0)

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
        self.hear(wait_s=10.0)

    def card(self, chat_name: str = HOST) -> dict[str, Any]:
        """The newest message with buttons in a chat."""
        chat = self.stage.telegram.tg.chats[self.stage.telegram.names[chat_name]]
        asked = [m for m in chat["messages"].values() if "inline_keyboard" in _markup(m)]
        return dict(asked[-1])

    # -- what they see --------------------------------------------------------------------------

    def hear(self, wait_s: float = 0.0) -> None:
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
        elif kind == "error":
            self._out(f"> ⚠️ _(Telegram: {event['code']} {event['text']})_\n")
        elif kind in {"send", "edit", "guest"}:
            becomes = " _(the message becomes)_" if kind == "edit" else ""
            name = self._whose(event["chat_id"], message.get("message_thread_id"))
            lines = _formatted(message).splitlines()
            lines += [_keyboard_row(row) for row in _rows(_markup(message) or event.get("markup"))]
            body = "\n".join(f"> {line}  " for line in lines)
            self._out(f"> **Metnos**{name}{becomes}  \n{body}\n")
        return kind in {"send", "edit", "answer", "delete", "guest", "error"}

    def _name(self, name: str) -> str:
        return _NAMES[self.lang].get(name) or name.partition("-")[0]

    def _chat(self, name: str) -> dict[str, Any]:
        chat: dict[str, Any] = self.stage.telegram.tg.chats[self.stage.telegram.names[name]]
        return chat

    def _place(self, chat: Mapping[str, Any], thread: int | None) -> str:
        """A group and its topic; empty for a private chat."""
        if chat["type"] == "private":
            return ""
        topic = chat["topics"].get(thread)
        return f"{chat['info'].get('title')}{f' › {topic}' if topic else ''}"

    def _whose(self, chat_id: int, thread: int | None) -> str:
        """Where it is said, when that is not in the host's chat."""
        names = {number: name for name, number in self.stage.telegram.names.items()}
        if chat_id == self.stage.telegram.names[HOST]:
            return ""
        chat = self.stage.telegram.tg.chats[chat_id]
        return f" → {self._place(chat, thread) or self._name(names.get(chat_id, '?'))}"


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
    parser.add_argument("--scene", help="only scenes whose name fits this expression")
    options = parser.parse_args()
    scenes = (*SCENES, *CROWD_SCENES)
    wanted = [scene for scene in scenes if re.search(options.scene or "", scene.name)]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="metnos-scenes-")))
        photon = stack.enter_context(photon_server())
        env = {"METNOS_PHOTON_URL": photon.endpoint, "METNOS_GUEST_MODE": "1"}
        add_mail(signed_home(folder))
        stage = stack.enter_context(open_stage(folder, rules_of(scenes), **env))
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
