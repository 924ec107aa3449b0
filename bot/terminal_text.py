"""A reply as lines for a terminal. Pure.

What comes from a model, a file or a page cannot move the cursor or colour anything: control
characters are spelt out, and the only escape sequences are ours, where the terminal has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.cli.lines import short_path, visible
from core.i18n import Texts
from core.messages import Block, Button, Reply
from core.turn_forget import COMMAND as FORGET
from core.turn_offers import UNDO_COMMAND
from core.turn_praxis import COMMAND as PRAXIS

LEAVING_WORDS = frozenset({"/exit", "/quit", "/esci"})
# In the order in which the help shows them.
_TAKEN = (UNDO_COMMAND, PRAXIS, FORGET)
_COMMAND = re.compile(r"/[a-z_]{2,32}", re.ASCII | re.IGNORECASE)

_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*")
_HEADING = re.compile(r"#{1,6}\s+(.*)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_INDENT = "  "


def named_command(text: str) -> str | None:
    """The command, in small letters, that a typed line is and that no turn takes: `/help`, or one
    that a terminal has not. None: it is a request, or a command that is carried out."""
    name = text.strip().casefold()
    return name if _COMMAND.fullmatch(name) and name not in _TAKEN else None


def help_blocks(texts: Texts, lang: str) -> tuple[Block, ...]:
    """What can be asked for, and the commands of a terminal, a line each."""
    lines = [
        f"{name} · {texts.say(f'telegram.menu.{name[1:]}', lang)}" for name in ("/help", *_TAKEN)
    ]
    lines.append(f"/exit · {texts.say('cli.chat.help.exit', lang)}")
    keys = texts.say("cli.chat.help.keys", lang)
    said = (texts.say("telegram.help.host", lang), "\n".join(lines), keys)
    return tuple(Block("text", text) for text in said)


def unknown_blocks(texts: Texts, lang: str, name: str) -> tuple[Block, ...]:
    """That a terminal has no such command."""
    return (Block("text", texts.say("cli.chat.unknown_command", lang, name=name)),)


def reply_lines(reply: Reply, *, styled: bool) -> Iterator[str]:
    """The lines of a reply. Blocks are apart by an empty line, small type only by a line break;
    code is indented, files that go along are named by their place. `styled`: bold and dim by
    escape sequences, else plain."""
    first = True
    for block in reply.blocks:
        if not block.text.strip("\n"):
            continue
        if not first and block.kind != "small":
            yield ""
        first = False
        yield from _block_lines(block, styled)
    for number, file in enumerate(reply.attachments, start=1):
        if number == 1:
            yield ""
        yield f"{_INDENT}📎 {short_path(visible(file.path))}"
    for number, button in enumerate(choices(reply), start=1):
        if number == 1:
            yield ""
        yield f"{_INDENT}{number}. {' '.join(visible(button.label).split())}"


def choices(reply: Reply) -> list[Button]:
    """What can be chosen by its number. Nothing where a text is expected, which may be a number
    itself; and a terminal shares no place."""
    if reply.expects == "text":
        return []
    return [button for row in reply.buttons for button in row if button.token]


def chosen(reply: Reply, text: str) -> str | None:
    """The token of the choice that a typed text names, by its number or its whole label; None:
    the text is an answer of its own, or a new request."""
    said = " ".join(text.split()).casefold()
    for number, button in enumerate(choices(reply), start=1):
        if said in {str(number), " ".join(button.label.split()).casefold()}:
            return button.token
    return None


def _block_lines(block: Block, styled: bool) -> Iterator[str]:
    lines = visible(block.text).strip("\n").split("\n")
    match block.kind:
        case "prose":
            yield from _prose(lines, styled)
        case "code":
            yield from (_indented(line) for line in lines)
        case "small":
            yield from (f"\x1b[2m{line}\x1b[0m" if styled else line for line in lines)
        case _:
            yield from lines


def _prose(lines: list[str], styled: bool) -> Iterator[str]:
    """Markdown as a terminal shows it: fences gone and their inside indented, the rest as it was
    written but for the signs of bold and headings."""
    inside = False
    for line in lines:
        if _FENCE.match(line):
            inside = not inside
        elif inside:
            yield _indented(line)
        else:
            heading = _HEADING.fullmatch(line)
            text = f"**{heading[1]}**" if heading and heading[1] else line
            yield _BOLD.sub("\x1b[1m\\1\x1b[0m" if styled else r"\1", text)


def _indented(line: str) -> str:
    return f"{_INDENT}{line}".rstrip()
