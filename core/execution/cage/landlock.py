"""The files an executor may touch: Landlock, through its three system calls.

By hand, because importing a binding costs more than a whole call; it is a screenful.
Rules only ever open: what no rule names is closed. Runs inside the cage's processes.
"""

from __future__ import annotations

import os
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from core.execution.cage.syscalls import Kernel

# The same numbers on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REMOVE_DIR, REMOVE_FILE = (1 << n for n in range(6))
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (
    1 << n for n in range(6, 13)
)
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15

# Nothing gets EXECUTE: libraries load without it, programs are not started.
READ = READ_FILE | READ_DIR
# Links, pipes and sockets may be moved; making new pipes and devices is seccomp's to refuse.
WRITE = (
    READ
    | WRITE_FILE
    | REMOVE_DIR
    | REMOVE_FILE
    | MAKE_DIR
    | MAKE_REG
    | MAKE_SOCK
    | MAKE_FIFO
    | MAKE_SYM
    | REFER
    | TRUNCATE
)
LIST = READ_DIR
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_PATH_BENEATH = 1
_TCP = 0x3  # bind, connect
_SCOPES = 0x3  # abstract unix sockets, signals


def abi(kernel: Kernel) -> int:
    """The kernel's Landlock version, 0 when it has none or it is switched off."""
    try:
        return kernel.call(CREATE_RULESET, 0, 0, 1)
    except OSError:
        return 0


def handled(version: int) -> int:
    """Every right on files that this version can withhold."""
    rights = (1 << 13) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if version >= since:
            rights |= right
    return rights


Rule = tuple[int, int]  # a descriptor of a file or folder, the rights on it and what is below


def rule(fd: int, rights: int) -> Rule:
    """The rule with the rights that make sense for what `fd` is. Raises `OSError`."""
    return fd, rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _OF_FILES


class Ruleset:
    """A set of rules that is being made; `restrict` puts it on this process for ever."""

    def __init__(self, kernel: Kernel, version: int) -> None:
        """Raises `OSError`."""
        self._kernel = kernel
        self._rights = handled(version)
        fields = [self._rights]
        if version >= 4:
            fields.append(_TCP)
        if version >= 6:
            fields.append(_SCOPES)
        attributes = struct.pack(f"={len(fields)}Q", *fields)
        self._fd = kernel.call(CREATE_RULESET, attributes, len(attributes), 0)

    def add(self, opened: Rule) -> None:
        """Open what the rule names, as far as this kernel can withhold it. Raises `OSError`."""
        fd, rights = opened[0], opened[1] & self._rights
        if rights:
            self._kernel.call(ADD_RULE, self._fd, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)

    def restrict(self) -> None:
        """Needs no_new_privs. Raises `OSError`."""
        self._kernel.call(RESTRICT_SELF, self._fd, 0)
        os.close(self._fd)


def open_without_links(path: str) -> int:
    """A descriptor that names the file or folder at an absolute path, no link on the way.

    The path was canonical when it was decided on; a link now means that somebody changed it since.
    Raises `OSError`.
    """
    fd = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path.strip("/").split("/"):
        if not part:
            continue
        try:
            deeper = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        finally:
            os.close(fd)
        fd = deeper
    if stat.S_ISLNK(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(40, os.strerror(40))
    return fd
