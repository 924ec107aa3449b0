"""`metnos`: the command line. Commands live in the modules beside this one and load what they
need when they run, so that the help and the short ones start at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0 done, 1 something failed, 2 a wrong setting or a wrong word, 69 Telegram answers but nothing
    comes from it, 75 another engine holds the home, 130 interrupted. A person never sees a
    traceback.
    """
    # httpx, typer and structlog load it when it is there, and nothing here draws with it: seventy
    # modules that would stay in memory as long as the bot runs.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    try:
        return _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        # The reader has left; what Python still wants to flush goes nowhere, silently.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def _main(arguments: list[str]) -> int:
    from typer.exceptions import Abort, TyperException

    from bot.cli import output
    from bot.cli.commands import build_command
    from bot.cli.lines import short_path
    from bot.cli.speech import say_usage
    from core.catalog.release import shipped_root
    from core.errors import MetnosError

    output.prepare_streams()
    session = output.open_session(shipped_root())
    output.report_unexpected(session)
    try:
        status = build_command().main(
            arguments, prog_name="metnos", standalone_mode=False, obj=session
        )
    except MetnosError as exc:
        return session.console.failed(exc)
    except TyperException as exc:
        return say_usage(session.console, exc)
    except Abort:
        return _interrupted()
    except BrokenPipeError:
        raise
    except OSError as exc:
        place = short_path(exc.filename) if isinstance(exc.filename, str) else ""
        session.console.note("cli.os_error", reason=exc.strerror or type(exc).__name__, file=place)
        return output.FAULT
    return status if isinstance(status, int) else 0


def _interrupted() -> int:
    if sys.stderr.isatty():
        sys.stderr.write("\n")  # the shell's prompt begins on a line of its own
    return 130
