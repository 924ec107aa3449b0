"""What `metnos setup` asks at a terminal: language, folders, bot token.

Each answer is written to the home's `.env` as soon as it is given, so that a run that breaks off
loses none. Enter keeps what is there.
"""

from __future__ import annotations

import asyncio
import getpass
import os
from pathlib import Path

from bot.cli import env_file
from bot.cli.lines import short_path
from bot.cli.output import Console, Session
from bot.prompt import typed
from core.config import LANGS, Settings


def ask(session: Session) -> Session:
    """Ask everything; the session in the language that was chosen. The end of input (Ctrl-D)
    leaves the rest as it is."""
    settings = session.settings
    path = settings.metnos_home / ".env"
    try:
        session = _ask_lang(session, path)
        _ask_folders(session.console, settings, path)
        _ask_token(session.console, settings, path)
    except EOFError:
        session.console.line()
    return session


def _ask_lang(session: Session, path: Path) -> Session:
    console = session.console
    while True:
        prompt = console.say("cli.setup.ask_lang", now=console.lang) + " "
        answer = typed(input, prompt).strip().lower()
        lang = answer[:2] or console.lang
        if lang in LANGS:
            env_file.update(path, {"METNOS_LANG": lang})
            return session.in_language(lang)
        console.tell("cli.setup.lang_unknown")


def _ask_folders(console: Console, settings: Settings, path: Path) -> None:
    """Folders that the assistant may read and write, one after the other."""
    now = settings.metnos_files_roots
    shown = [short_path(root) for root in now or ()]
    console.tell("cli.setup.folders")
    console.tell(
        "cli.setup.folders_now" if shown else "cli.setup.folders_none", folders=", ".join(shown)
    )
    chosen: list[Path] = []
    while answer := typed(input, "  > ").strip():
        folder = Path(answer).expanduser().absolute()
        if os.pathsep in answer:
            console.tell("cli.setup.folder_name")
        elif not folder.is_dir():
            console.tell("cli.setup.folder_missing", path=short_path(folder))
        else:
            chosen.append(folder)
    if chosen:
        value = os.pathsep.join(str(folder) for folder in dict.fromkeys(chosen))
        env_file.update(path, {"METNOS_FILES_ROOTS": value})


def _ask_token(console: Console, settings: Settings, path: Path) -> None:
    """A bot token, tried at once; never shown, not even while it is typed."""
    from bot.telegram.checks import TokenState, check_token

    console.tell("cli.setup.token")
    has_one = settings.telegram_bot_token is not None
    prompt = console.say("cli.setup.token_keep" if has_one else "cli.setup.token_skip")
    while token := typed(getpass.getpass, f"  {prompt} > ").strip():
        found = asyncio.run(check_token(token, settings))
        if found.state is TokenState.GOOD:
            console.tell("cli.setup.token_good", name=found.username)
        elif found.state is TokenState.UNREACHABLE:
            console.tell("cli.setup.token_untried")
        else:
            console.tell(f"cli.setup.token_{found.state.value}")
            continue
        env_file.update(path, {"TELEGRAM_BOT_TOKEN": token})
        return
