"""Hearing Ctrl-C for certain while a line is typed.

`input` draws its prompt and then waits for keys. Python notes a signal that comes between the two,
but the wait goes on until Enter or the next signal: the first Ctrl-C would be lost.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

REPEAT_S = 0.1
LEAVING = (signal.SIGINT, signal.SIGTERM)


def typed(ask: Callable[[str], str], prompt: str) -> str:
    """What `ask`, like `input` or `getpass`, hears at the prompt.

    Raises what the handler of a SIGINT or SIGTERM raises, as a rule `KeyboardInterrupt`, and
    `EOFError` at the end of input. Only on the main thread, which alone hears signals.
    """
    with _signals_repeated():
        return ask(prompt)


@contextmanager
def _signals_repeated() -> Iterator[None]:
    """Inside, a signal to leave is sent again until its handler has run, which it does once."""
    heard = threading.Event()
    main = threading.get_ident()
    handlers = {number: signal.getsignal(number) for number in LEAVING}

    def hear(number: int, frame: FrameType | None) -> None:
        handler = handlers[signal.Signals(number)]
        if not heard.is_set() and callable(handler):
            heard.set()
            handler(number, frame)

    def repeat() -> None:
        while numbers := noted.recv(64):
            for number in set(numbers) & {n for n in LEAVING if callable(handlers[n])}:
                while not heard.wait(REPEAT_S):
                    signal.pthread_kill(main, number)

    # The number of a signal is written to the socket at once, whether or not its handler runs.
    noted, notes = socket.socketpair()
    notes.setblocking(False)
    repeater = threading.Thread(target=repeat, name="signals", daemon=True)
    with noted, notes:
        repeater.start()
        fd = signal.set_wakeup_fd(notes.fileno(), warn_on_full_buffer=False)
        try:
            for number, handler in handlers.items():
                if callable(handler):
                    signal.signal(number, hear)
            yield
        finally:
            try:
                heard.set()
            finally:  # even when a signal comes just now
                notes.shutdown(socket.SHUT_WR)
                repeater.join()
                # No repetition is on its way any more, so the handlers may have theirs back.
                for number, handler in handlers.items():
                    if callable(handler):
                        signal.signal(number, handler)
                signal.set_wakeup_fd(fd)
