"""Opening a folder beneath another one without being led away, in one question to the kernel.

openat2 with RESOLVE_BENEATH, NO_SYMLINKS and NO_MAGICLINKS refuses links, `..` and the doors of
/proc at every step. Where a kernel or its rules do not have it, the components are opened one by
one, never following a link: slower, and as tight.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_OPENAT2 = 437  # the same on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_AT_FDCWD = -100
# O_PATH needs no permission to read the folders on the way and opens nothing.
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_TRIES = 4


def open_root(path: str) -> int:
    """A descriptor of the folder at an absolute path that holds no link. Raises `OSError`: ELOOP
    for a link, wherever it stands."""
    fd = _ask_kernel(_AT_FDCWD, path, _NO_SYMLINKS | _NO_MAGICLINKS)
    if fd is not None:
        return fd
    top = os.open("/", _FOLDER)
    try:
        return _step_by_step(top, [part for part in path.split("/") if part])
    finally:
        os.close(top)


def open_folder(root_fd: int, parts: Sequence[str]) -> int:
    """A descriptor of the folder that `parts` lead to below an open one. Raises `OSError`: ELOOP
    for a link, ENOTDIR for what is no folder, ENOENT for nothing."""
    if not parts:
        return os.dup(root_fd)
    fd = _ask_kernel(root_fd, "/".join(parts), _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS)
    return _step_by_step(root_fd, parts) if fd is None else fd


def _step_by_step(root_fd: int, parts: Sequence[str]) -> int:
    fd = os.dup(root_fd)
    for part in parts:
        try:
            if part in ("", ".", ".."):
                raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
            # With O_NOFOLLOW and without O_DIRECTORY a link is opened as itself, and then seen.
            deeper = os.open(part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        finally:
            os.close(fd)
        fd = deeper
        kind = os.fstat(fd).st_mode & 0o170000
        if kind != 0o040000:
            os.close(fd)
            number = errno.ELOOP if kind == 0o120000 else errno.ENOTDIR
            raise OSError(number, os.strerror(number))
    return fd


def _ask_kernel(root_fd: int, path: str, resolve: int) -> int | None:
    """The descriptor, or None when the kernel cannot be asked."""
    global _openat2
    if _openat2 is None:
        _openat2 = _load()
    name = os.fsencode(path)
    if b"\0" in name:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    number = 0
    for _ in range(_TRIES):
        found = _openat2(root_fd, name, resolve)
        if found >= 0:
            return found
        number = -found
        if number not in (errno.EAGAIN, errno.EINTR):
            break
    if number in (errno.ENOSYS, errno.EPERM, errno.EAGAIN):
        return None  # an old kernel, a rule of a container, or a tree that is being moved about
    raise OSError(number, os.strerror(number), path)


def _absent(root_fd: int, name: bytes, resolve: int) -> int:
    return -errno.ENOSYS


def _load() -> Callable[[int, bytes, int], int]:
    """openat2 through the C library's `syscall`, without the cost of importing all of `ctypes`."""
    try:
        import _ctypes

        class Long(_ctypes._SimpleCData):  # type: ignore[type-arg]
            _type_ = "l"

        class Function(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
            _restype_ = Long

        address = _ctypes.dlsym(_ctypes.dlopen(None, 2), "syscall")  # type: ignore[arg-type]
        syscall = Function(address)
    except (ImportError, OSError, AttributeError):
        return _absent

    def openat2(root_fd: int, name: bytes, resolve: int) -> int:
        how = b"".join(n.to_bytes(8, "little") for n in (_FOLDER, 0, resolve))
        found = int(syscall(_OPENAT2, root_fd, name, how, len(how)))
        return found if found >= 0 else -_ctypes.get_errno()

    return openat2


_openat2: Callable[[int, bytes, int], int] | None = None
