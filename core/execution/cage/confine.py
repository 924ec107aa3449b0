"""Closing the cage around this process: what a fork does before any executor code, in one order.

New session, parent-death signal, limits, capabilities dropped, no_new_privs, Landlock, seccomp.
None of it can be taken back. Runs inside the cage's processes.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys

from core.execution.cage import landlock, seccomp, syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PDEATHSIG, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 38, 47
_CAPGET, _CAPSET = {"x86_64": 125, "aarch64": 90}, {"x86_64": 126, "aarch64": 91}
_CAP_VERSION_3 = 0x20080522
# An engine that runs as root serves folders of other users; everything else root may do goes.
_KEPT = 1 << 1  # CAP_DAC_OVERRIDE
_DEVICES = (("/dev/null", landlock.READ_FILE | landlock.WRITE_FILE), ("/dev/urandom", 4))
ALSO_READ = (
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/usr/share/zoneinfo",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
)


class Confinement:
    """What every call of one zygote shares: the kernel's abilities and the base of what is read.

    `programs`: the folders whose programs a call may start; only inside namespaces of its own,
    where `/tmp` is its own too. Raises `OSError` when this machine cannot confine: no Landlock, or
    no table for it.
    """

    def __init__(self, *, programs: Iterable[str] = ()) -> None:
        started = [(path, landlock.READ | landlock.EXECUTE) for path in programs]
        own = [("/tmp", landlock.WRITE)] if started else []  # noqa: S108 - an empty one, see above
        self.kernel = syscalls.Kernel()
        self.machine = os.uname().machine
        self.abi = landlock.abi(self.kernel)
        if not self.abi:
            raise OSError("no Landlock")
        if self.machine not in seccomp.AUDIT_ARCH:
            raise OSError(f"no seccomp table for {self.machine}")
        self._programs = {
            writing: seccomp.encode(
                seccomp.build(
                    self.machine, seccomp.ANY_PID, writing=writing, programs=bool(started)
                )
            )
            for writing in (False, True)
        }
        self._base: list[landlock.Rule] = []
        read = [(path, landlock.READ) for path in base_paths()]
        for path, rights in [*_DEVICES, *read, *started, *own]:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            self._base.append(landlock.rule(fd, rights))

    def enter_session(self, parent: int) -> bool:
        """A session of its own, and no life after the parent; False when it has gone already."""
        os.setsid()
        self.kernel.prctl(_PDEATHSIG, signal.SIGKILL)
        return os.getppid() == parent

    def close(self) -> None:
        """Let go of the base."""
        for fd, _ in self._base:
            os.close(fd)
        self._base.clear()

    def apply(self, scope: Mapping[str, Iterable[str]], *, first_free_fd: int) -> None:
        """Close the cage around this process. Raises `OSError` when any part of it fails.

        `scope`: canonical paths by kind of right, "read", "list" and "write". A path that is not
        there, or leads over a link by now, stays closed. Every descriptor from `first_free_fd` on
        is closed.
        """
        drop_capabilities(self.kernel, self.machine)
        self.kernel.prctl(_NO_NEW_PRIVS, 1)
        rules = landlock.Ruleset(self.kernel, self.abi)
        for rule in self._base:
            rules.add(rule)
        kinds = {"read": landlock.READ, "list": landlock.LIST, "write": landlock.WRITE}
        wanted = [(path, rights) for kind, rights in kinds.items() for path in scope.get(kind, ())]
        for path, rights in wanted:
            try:
                fd = landlock.open_without_links(path)
            except OSError:
                continue
            try:
                rules.add(landlock.rule(fd, rights))
            finally:
                os.close(fd)
        rules.restrict()
        os.closerange(first_free_fd, 4096)
        program = self._programs[bool(scope.get("write"))]
        seccomp.install(self.kernel, self.machine, seccomp.for_process(program, os.getpid()))


def base_paths() -> list[str]:
    """What any program of this interpreter reads: its library, shared objects, zones, anchors."""
    found = dict.fromkeys(path for path in sys.path if path.startswith("/"))
    found.update(dict.fromkeys(ALSO_READ))
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
            names = [line.split(None, 5)[5].strip() for line in maps if line.count(" /")]
    except (OSError, IndexError):
        names = []
    for name in names:
        if ".so" in os.path.basename(name):  # noqa: PTH119
            found[os.path.dirname(name)] = None  # noqa: PTH120
    return list(found)


def drop_capabilities(kernel: syscalls.Kernel, machine: str) -> None:
    """Give up what root may do, but for reading and writing others' files. Raises `OSError`."""
    head = struct.pack("=Ii", _CAP_VERSION_3, 0)
    data = bytearray(24)
    buffer = (ctypes.c_char * 24).from_buffer(data)
    kernel.call(_CAPGET[machine], head, buffer)
    permitted = struct.unpack("=6I", data)[1] & _KEPT
    kernel.call(_CAPSET[machine], head, struct.pack("=6I", permitted, permitted, 0, 0, 0, 0))
    kernel.prctl(_CAP_AMBIENT, 4)  # clear all
