"""A signal that comes when the prompt is drawn and the wait for keys has not begun."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path

import pytest

from tests.cli.test_processes import ROOT
from tests.support.processes import Typist

# Called by readline in that very moment. Not a function of Python: after one of those, the handler
# of the signal would run at once.
AT_THE_MOMENT = textwrap.dedent(
    """
    import ctypes, functools, os, readline, signal, sys
    from bot.prompt import typed

    def leave(*_):
        raise SystemExit(7)

    signal.signal(signal.SIGTERM, leave)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    send = functools.partial(ctypes.CDLL(None).kill, os.getpid())
    readline.set_pre_input_hook(functools.partial(send, signal.SIGINT))
    try:
        typed(input, "You: ")
    except KeyboardInterrupt:
        print("interrupted")
    readline.set_pre_input_hook()
    print("heard", typed(input, "And: "), flush=True)
    print(before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)])
    print(signal.set_wakeup_fd(-1))
    readline.set_pre_input_hook(functools.partial(send, signal.SIGTERM))
    typed(input, "Last: ")
    """
)


AT_A_QUESTION = textwrap.dedent(
    """
    import ctypes, functools, os, readline, signal, sys
    from bot.cli import main

    send = functools.partial(ctypes.CDLL(None).kill, os.getpid(), signal.SIGINT)
    readline.set_pre_input_hook(send)
    sys.argv = ["metnos", "setup"]
    sys.exit(main())
    """
)


def test_signal_as_a_question_of_setup_is_drawn_is_heard(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "TERM": "xterm",
        "PYTHONPATH": str(ROOT),
        "METNOS_HOME": str(tmp_path / "home"),
        "METNOS_LANG": "en",
    }
    person = Typist(env, [sys.executable, "-c", AT_A_QUESTION])

    person.until("Which language")

    assert person.leave() == 130
    assert "Traceback" not in person.seen


@pytest.fixture
def person() -> Typist:
    env = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(ROOT)}
    return Typist(env, [sys.executable, "-c", AT_THE_MOMENT])


def test_signal_between_prompt_and_wait_is_heard_once(person: Typist) -> None:
    person.until("You: ")
    person.until("interrupted")
    person.until("And: ")

    person.type("words\n")

    person.until("heard words")
    person.until("True")
    person.until("-1")
    person.until("Last: ")
    assert person.leave() == 7
    assert "Traceback" not in person.seen
