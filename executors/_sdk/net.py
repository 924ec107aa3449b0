"""The one way out: `socket.create_connection` asks the engine's broker for a connected socket.

Whatever connects through `socket.create_connection` (httpx, imaplib, smtplib, urllib) then works
unchanged, TLS with the name asked for included. The broker looks the name up, checks it and hands
over the connected socket; nothing here opens one. Of an executor without a right to the network
every connection is denied.
"""

from __future__ import annotations

import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_QUESTION_BYTES = 1024
MAX_ANSWER_BYTES = 4096
TIMEOUT_S = 30.0
_UNSET: Any = getattr(socket, "_GLOBAL_DEFAULT_TIMEOUT", None)


class HostDenied(OSError):
    """The engine's rules do not allow this host, address or port. The code is `host_denied`."""

    metnos_code = "host_denied"


class Asker:
    """Talks to the broker over the descriptor `fd`; threads may ask at the same time."""

    def __init__(self, fd: int) -> None:
        import threading  # whoever connects has it already

        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=fd)
        self._line.set_inheritable(False)
        self._turn = threading.Condition()
        self._reading = False
        self._last = 0
        self._waiting: set[int] = set()
        self._answers: dict[int, tuple[dict[str, Any], list[int]]] = {}

    def create_connection(
        self,
        address: tuple[Any, ...],
        timeout: Any = _UNSET,
        source_address: Any = None,
        *,
        all_errors: bool = False,
    ) -> socket.socket:
        """As `socket.create_connection`; where the connection comes from cannot be chosen.

        Raises `HostDenied`, `socket.gaierror` for an unknown name, `TimeoutError`, `OSError`.
        """
        seconds = socket.getdefaulttimeout() if timeout is _UNSET else timeout
        answer, fds = self._ask(address[0], address[1], seconds or TIMEOUT_S)
        error = answer.get("error")
        if error is None and len(fds) == 1:
            connection = socket.socket(fileno=fds[0])
            connection.settimeout(seconds)
            return connection
        for fd in fds:
            socket.close(fd)
        raise _failure(error if isinstance(error, dict) else {})

    def close(self) -> None:
        """Hang up: nothing can be asked any more."""
        self._line.close()

    def _ask(self, host: object, port: object, seconds: float) -> tuple[dict[str, Any], list[int]]:
        import json

        if isinstance(host, bytes):
            host = host.decode("ascii", "replace")
        if isinstance(port, str) and port.isascii() and port.isdecimal():
            port = int(port[:6])
        deadline = time.monotonic() + seconds
        with self._turn:
            self._last += 1
            number = self._last
            self._waiting.add(number)
        try:
            question = {"id": number, "host": host, "port": port, "timeout_s": seconds}
            try:
                data = json.dumps(question).encode()
            except (TypeError, ValueError):
                data = b""
            if not 0 < len(data) <= MAX_QUESTION_BYTES:
                raise HostDenied("not a host name")
            self._line.send(data)
            return self._wait(number, deadline)
        except ConnectionError:
            raise HostDenied("no connection is given any more") from None
        finally:
            with self._turn:
                self._waiting.discard(number)
                late = self._answers.pop(number, None)
            for fd in late[1] if late else ():
                socket.close(fd)

    def _wait(self, number: int, deadline: float) -> tuple[dict[str, Any], list[int]]:
        """The answer of this number. One thread at a time reads, for all of them."""
        while True:
            with self._turn:
                while self._reading and number not in self._answers:
                    if not self._turn.wait(_left(deadline)):
                        _left(deadline)
                if number in self._answers:
                    return self._answers.pop(number)
                self._reading = True
            try:
                answer, fds = self._receive(deadline)
            finally:
                with self._turn:
                    self._reading = False
                    self._turn.notify_all()
            with self._turn:
                whose = answer.get("id")
                if whose == number:
                    return answer, fds
                if whose in self._waiting:
                    self._answers[whose] = (answer, fds)
                    self._turn.notify_all()
                    continue
            for fd in fds:  # of one who has stopped waiting
                socket.close(fd)

    def _receive(self, deadline: float) -> tuple[dict[str, Any], list[int]]:
        import json

        self._line.settimeout(_left(deadline))
        data, fds, _, _ = socket.recv_fds(self._line, MAX_ANSWER_BYTES, 4)
        if not data:
            raise BrokenPipeError
        answer = json.loads(data)
        if answer.get("id") == 0:
            raise BrokenPipeError
        return answer, list(fds)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("no connection in time")
    return left


def _failure(error: dict[str, Any]) -> OSError:
    detail = str(error.get("detail", ""))
    match error.get("code"):
        case "host_denied":
            return HostDenied(detail)
        case "host_not_found":
            return socket.gaierror(socket.EAI_NONAME, detail)
        case "timeout":
            return TimeoutError(detail)
        case _:
            return OSError(
                int(error.get("errno") or 101), detail or "no connection"
            )  # ENETUNREACH


def _denied(*args: Any, **kwargs: Any) -> socket.socket:
    raise HostDenied("this tool has no right to the network")


def _own_name(name: str = "") -> str:
    """smtplib greets with it; asking the name server for it is no right of an executor."""
    return name or "localhost"


def install(fd: int | None) -> None:
    """Put the broker behind `fd` in the place of `socket.create_connection` of this process; None:
    nobody to ask. The cage does it as soon as `socket` is imported; again replaces the former."""
    socket.create_connection = _denied if fd is None else Asker(fd).create_connection
    socket.getfqdn = _own_name
