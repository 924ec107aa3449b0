"""`metnos model`: the bundled model, for people who have none of their own."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from bot.cli.lines import is_bar_wanted, own_command, short_path
from bot.cli.output import FAULT, INTERRUPTED, Console, Session

if TYPE_CHECKING:
    from core.config import Settings

_BAR_EVERY_S = 0.2
_LINE_EVERY_PERCENT = 10


def what_is_missing(settings: Settings) -> str | None:
    """The one command that brings the bundled model nearer, None when it can be served."""
    from core.llm.local_model import find_model
    from core.llm.local_server import runtime_missing

    if find_model(settings.metnos_home) is None:
        return own_command("model pull")
    return runtime_missing()


def pull(
    ctx: typer.Context, if_needed: Annotated[bool, typer.Option("--if-needed")] = False
) -> int:
    """Fetch it. Said beforehand, resumable, verified; 0 when it is there afterwards."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.llm.local_model import find_model, missing_bytes, model_path, pull_model
    from core.llm.local_server import runtime_missing
    from core.llm.tiers import needs_bundled

    home = settings.metnos_home
    if if_needed and not needs_bundled(settings):
        return 0
    mend = runtime_missing()
    if mend is not None:
        console.note("cli.model.no_runtime", command=mend)
        if if_needed:
            return FAULT
    if find_model(home) is not None:
        if not if_needed:
            console.tell("cli.model.here", path=short_path(model_path(home)))
        return 0
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    console.tell(
        "cli.model.announce",
        size=console.size(missing_bytes(home)),
        free=console.size(shutil.disk_usage(home).free),
        path=short_path(model_path(home)),
    )
    show = _Progress(console)
    try:
        path = pull_model(home, show.draw)
    except KeyboardInterrupt:
        show.end()
        console.note("cli.model.interrupted", command=own_command("model pull"))
        return INTERRUPTED
    finally:
        show.end()
    console.tell("cli.model.done", path=short_path(path))
    return 0


def serve(ctx: typer.Context) -> int:
    """Serve it to other programs of this machine until Ctrl-C or SIGTERM."""
    session: Session = ctx.obj
    if (command := what_is_missing(session.settings)) is not None:
        session.console.note("cli.model.not_ready", command=command)
        return FAULT
    asyncio.run(_serve(session))
    return 0


def status(ctx: typer.Context, as_json: Annotated[bool, typer.Option("--json")] = False) -> int:
    """Which models are set and whether the bundled one is ready. 0 when there is one to ask."""
    session: Session = ctx.obj
    console, settings = session.console, session.settings
    from core.llm.local_model import find_model, missing_bytes, model_path
    from core.llm.local_server import runtime_missing
    from core.llm.tiers import needs_bundled

    home = settings.metnos_home
    wanted, missing = needs_bundled(settings), what_is_missing(settings)
    ready = not wanted or missing is None
    if as_json:
        console.json(
            {
                "ready": ready,
                "tiers": _tiers(settings),
                "bundled": {
                    "wanted": wanted,
                    "present": find_model(home) is not None,
                    "path": str(model_path(home)),
                    "missing_bytes": missing_bytes(home),
                    "runtime": runtime_missing() is None,
                },
            }
        )
        return 0 if ready else FAULT
    for tier in _tiers(settings):
        console.tell("cli.model.tier", **tier)
    key = "cli.model.bundled_ready" if missing is None else "cli.model.bundled_missing"
    console.tell(key, path=short_path(model_path(home)), command=missing or "")
    if not wanted:
        console.tell("cli.model.bundled_unused")
    return 0 if ready else FAULT


def _tiers(settings: Settings) -> list[dict[str, Any]]:
    """The tiers that are set, without their keys."""
    from core.errors import ModelMissing
    from core.llm.tiers import ROLES, Tiers

    tiers = Tiers.from_settings(settings)
    found: dict[str, dict[str, Any]] = {}
    for role in ROLES:
        try:
            name, tier = tiers.tier_of(role), tiers.settings_of(role)
        except ModelMissing:
            continue
        url = urlsplit(tier.base_url)  # without a password that may stand in it
        address = f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"
        known = {"tier": name, "provider": tier.provider, "address": address}
        found.setdefault(name, {**known, "model": tier.model or "?"})
    return list(found.values())


async def _serve(session: Session) -> None:
    from core.llm.local_model import model_path
    from core.llm.local_server import LocalServer

    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    home = session.settings.metnos_home
    async with LocalServer(model_path(home), log_file=home / "model.log") as server:
        tier = server.settings
        key = tier.api_key.get_secret_value() if tier.api_key else ""
        # Whoever runs this command wants to reach the model: the key lives as long as it does.
        session.console.line(f"METNOS_LLM_BASE_URL={tier.base_url}")
        session.console.line(f"METNOS_LLM_MODEL={tier.model}")
        session.console.line(f"METNOS_LLM_API_KEY={key}")
        session.console.note("cli.model.serving")
        await told.wait()


class _Progress:
    """A bar on a terminal; elsewhere a line every tenth."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = is_bar_wanted(sys.stderr)
        self._drawn_at = 0.0
        self._told = -1
        self._open = False
        self._most, self._source = 0, ""

    def draw(self, done: int, total: int, source: str) -> None:
        # A part counts while it comes and again when it is unpacked, smaller: never go back.
        done = self._most = max(done, self._most if source == self._source else 0)
        self._source = source
        percent = 100 * done // max(total, 1)
        text = self._console.say(
            f"cli.model.from_{source}",
            percent=percent,
            done=self._console.size(done),
            total=self._console.size(total),
        )
        if not self._bar:
            step = percent // _LINE_EVERY_PERCENT if source != "verifying" else 11
            if step != self._told:
                self._told = step
                self._console.note_line(text)
            return
        now = time.monotonic()
        if now - self._drawn_at < _BAR_EVERY_S and source != "verifying":
            return
        self._drawn_at = now
        filled = percent * 24 // 100
        bar = "█" * filled + "░" * (24 - filled)
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(f"\r\x1b[2K{f'{bar} {text}'[:width]}")
        sys.stderr.flush()
        self._open = True

    def end(self) -> None:
        if self._open:
            sys.stderr.write("\n")
            self._open = False
