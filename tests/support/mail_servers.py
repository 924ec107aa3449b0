"""Real mail servers on loopback: Dovecot (Debian's `dovecot-imapd`) and aiosmtpd.

Dovecot runs with a configuration and folders of its own below a temporary folder; nothing of the
machine's is touched. Without the package the tests that need it are skipped, counted by name.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword

DOVECOT = shutil.which("dovecot") or "/usr/sbin/dovecot"
HAS_DOVECOT = os.access(DOVECOT, os.X_OK) and os.getuid() == 0
# Dovecot keeps no mail for root.
NOBODY = 65534
USER, PASSWORD = "ada@mail.example", "canary-Pärola-9"
_CONF = """\
protocols = imap
base_dir = {root}/run
log_path = {root}/dovecot.log
listen = 127.0.0.1
ssl = {ssl}
{certificate}
disable_plaintext_auth = no
{settings}
auth_mechanisms = plain login
mail_location = maildir:{root}/mail/%u
mail_uid = {uid}
mail_gid = {gid}
first_valid_uid = 0
auth_failure_delay = 0 secs
service anvil {{
  chroot =
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service stats {{
  chroot =
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid={uid} gid={gid} home={root}/home/%u
}}
namespace inbox {{
  inbox = yes
  separator = /
  mailbox Sent {{
    auto = create
    special_use = \\Sent
  }}
  mailbox Trash {{
    auto = create
    special_use = \\Trash
  }}
}}
"""


@dataclass
class MailHost:
    """Where the servers are. `sent` is what the SMTP server took, newest last."""

    root: Path
    imap_port: int
    smtp_port: int = 0
    sent: list[Envelope] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def account(self, **values: Any) -> dict[str, Any]:
        """The account as a child reads it."""
        return {
            "name": "Casa",
            "kind": "mail",
            "address": USER,
            "user": USER,
            "imap_host": "127.0.0.1",
            "imap_port": self.imap_port,
            "imap_safety": "none",
            "smtp_host": "127.0.0.1",
            "smtp_port": self.smtp_port,
            "smtp_safety": "none",
            "password": PASSWORD,
            **values,
        }

    def deliver(self, raw: bytes, *, folder: str = "", seen: bool = False, at: int = 0) -> None:
        """Put a message into a folder of the mailbox, as a delivery agent does."""
        box = self.root / "mail" / USER / (f".{folder}" if folder else "")
        for part in ("cur", "new", "tmp"):
            (box / part).mkdir(parents=True, exist_ok=True)
            os.chown(box / part, NOBODY, NOBODY)
        os.chown(box, NOBODY, NOBODY)
        number = next(self._numbers)  # Dovecot knows a message by its name, also a gone one
        name = f"{1700000000 + number}.M{number}P1.host"
        place = box / "cur" / f"{name}:2,{'S' if seen else ''}"
        place.write_bytes(raw.replace(b"\r\n", b"\n"))
        os.chown(place, NOBODY, NOBODY)
        if at:
            os.utime(place, (at, at))

    def folder(self, name: str = "") -> list[bytes]:
        """The messages in a folder."""
        box = self.root / "mail" / USER / (f".{name}" if name else "")
        paths = [p for part in ("cur", "new") for p in (box / part).glob("*")]
        return [path.read_bytes() for path in sorted(paths)]

    def empty(self, name: str = "") -> None:
        """Take every message out of a folder."""
        box = self.root / "mail" / USER / (f".{name}" if name else "")
        for path in [p for part in ("cur", "new") for p in (box / part).glob("*")]:
            path.unlink()


@contextmanager
def mail_host(
    *, certificate: tuple[Path, Path] | None = None, settings: str = ""
) -> Iterator[MailHost]:
    """Both servers, running, in a folder of their own: Dovecot's unprivileged processes must be
    able to pass through it, as they are not through pytest's. `settings`: further lines for
    Dovecot's configuration."""
    with tempfile.TemporaryDirectory(prefix="metnos-mail-") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        with _serving(root, certificate, settings) as host:
            yield host


@contextmanager
def _serving(
    root: Path, certificate: tuple[Path, Path] | None, settings: str
) -> Iterator[MailHost]:
    (root / "run").mkdir()
    for name in ("mail", f"mail/{USER}", "home"):
        (root / name).mkdir()
        os.chown(root / name, NOBODY, NOBODY)
    host = MailHost(root, _free_port())
    conf = root / "dovecot.conf"
    secure = f"ssl_cert = <{certificate[0]}\nssl_key = <{certificate[1]}" if certificate else ""
    conf.write_text(
        _CONF.format(
            root=root,
            port=host.imap_port,
            ssl="yes" if certificate else "no",
            certificate=secure,
            settings=settings,
            uid=NOBODY,
            gid=NOBODY,
            password=PASSWORD,
        ),
        encoding="utf-8",
    )
    process = subprocess.Popen(
        [DOVECOT, "-F", "-c", str(conf)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    smtp = _Smtp(host)
    controller = Controller(
        smtp,
        hostname="127.0.0.1",
        port=_free_port(),
        authenticator=smtp.authenticate,
        auth_require_tls=False,
        data_size_limit=40 << 20,
    )
    controller.start()
    host.smtp_port = controller.port
    try:
        _wait(host.imap_port, process, root)
        yield host
    finally:
        controller.stop()
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)
        if process.stderr:
            process.stderr.close()


class _Smtp:
    def __init__(self, host: MailHost) -> None:
        self._host = host

    def authenticate(
        self, server: Any, session: Any, envelope: Any, mechanism: str, data: Any
    ) -> Any:
        good = isinstance(data, LoginPassword) and data.password == PASSWORD.encode()
        return AuthResult(success=good)

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Envelope, address: str, options: Any
    ) -> str:
        if address in self._host.refuses:
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        self._host.sent.append(envelope)
        return "250 taken"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes], root: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if process.poll() is not None:
            said = process.stderr.read() if process.stderr else b""
            log = root / "dovecot.log"
            raise RuntimeError(
                f"dovecot ended: {said!r} {log.read_text() if log.exists() else ''}"
            )
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("dovecot does not answer")
