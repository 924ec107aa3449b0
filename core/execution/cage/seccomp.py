"""The system calls an executor may make: a BPF program, built by hand.

By hand, because the one living binding needs a C library that a machine may lack and takes longer
to import than a whole call lasts; the program is thirty lines. It is an allow-list: what stands in
no list of `syscalls` answers ENOSYS. Another architecture or the x32 numbers end the process.
Nobody makes or connects a socket: the broker passes in connected ones, if the call has a broker.
Runs inside the cage's processes.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from core.execution.cage import syscalls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from core.execution.cage.syscalls import Kernel

# Stands in a program that is made once for what each process puts in its place.
ANY_PID = 0x7FFFFFF1

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, k

AUDIT_ARCH = {syscalls.X86_64: 0xC000003E, syscalls.AARCH64: 0xC00000B7}
SYS_SECCOMP = {syscalls.X86_64: 317, syscalls.AARCH64: 277}

ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000
REFUSE = _ERRNO | errno.EPERM
NO_SUCH_CALL = _ERRNO | errno.ENOSYS
NOT_SUPPORTED = _ERRNO | errno.EOPNOTSUPP
NO_TERMINAL = _ERRNO | errno.ENOTTY

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER_AT, _ARCH_AT = 0, 4
_X32 = 0x40000000
_LAST = 0x3FFFFFFF

_CLONE_THREAD = 0x00010000
_CLONE_NEW = 0x7E020080  # every namespace
_FASTOPEN = 0x20000000
_AF_UNIX, _STREAM = 1, 1
# FIONREAD, FIONBIO, FIONCLEX, FIOCLEX, TCGETS, TIOCGWINSZ
_IOCTLS = (0x541B, 0x5421, 0x5450, 0x5451, 0x5401, 0x5413)
# DUPFD, GETFD, SETFD, GETFL, SETFL, GETLK, SETLK, SETLKW, the OFD locks, DUPFD_CLOEXEC,
# GETPIPE_SZ, GET_SEALS. Missing on purpose: SETOWN and SETSIG, which make the kernel signal
# another process.
_FCNTLS = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032, 1034)
# GET_DUMPABLE, SET_NAME, GET_NAME, CAPBSET_READ, GET_NO_NEW_PRIVS, SET_VMA
_PRCTLS = (3, 15, 16, 23, 39, 0x53564D41)
_SOL_SOCKET, _IPPROTO_TCP = 1, 6
# ATTACH_FILTER and kin, TCP_REPAIR, TCP_FASTOPEN_CONNECT, TCP_ULP
_NO_OPTIONS = (19, 26, 27, 30, 31, 50, 51, 52)


def build(
    machine: str, pid: int, *, writing: bool = False, programs: bool = False
) -> list[Instruction]:
    """The program for the process `pid`, which may signal itself alone.

    `writing`: it may set the times of a file that it has open, as moving to another disk needs.
    `programs`: it may make processes, in no namespace but its own, and start programs in them.

    Raises `ValueError` for a machine without a table.
    """
    if machine not in AUDIT_ARCH:
        raise ValueError(f"no table of system calls for {machine}")
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, AUDIT_ARCH[machine]),
        _give(KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        _give(KILL),
    ]
    checked = syscalls.numbers(syscalls.CHECKED, machine)
    for name, body in _checks(pid, writing=writing, programs=programs).items():
        if name in checked:
            program += [(_EQUAL, 0, len(body), checked.pop(name)), *body]
    started = syscalls.numbers(syscalls.PROGRAMS, machine) if programs else {}
    return program + _flat(machine, frozenset(checked.values()), frozenset(started.values()))


def _checks(pid: int, *, writing: bool, programs: bool) -> dict[str, list[Instruction]]:
    """What each call of `CHECKED` depends on. A body always returns."""
    own = _only(0, (pid,))
    thread_only = [] if programs else _some_bit(_CLONE_THREAD)
    checks = {
        "clone": [_low(0), *_none_of_bits(_CLONE_NEW), *thread_only, _give(ALLOW)],
        # Its flags lie in memory, where no filter can look; C libraries then use `clone`.
        "clone3": [_give(NO_SUCH_CALL)],
        "kill": own,
        "tkill": own,
        "tgkill": own,
        "rt_sigqueueinfo": own,
        "rt_tgsigqueueinfo": own,
        "prlimit64": _only(0, (0, pid)),
        # A datagram pair could send to any address; a stream pair is connected once and for all.
        "socketpair": [*_must_be(0, _AF_UNIX), *_kind(1, _STREAM), _give(ALLOW)],
        "ioctl": _only(1, _IOCTLS, NO_TERMINAL),
        "fcntl": _only(1, _FCNTLS),
        "prctl": _only(0, _PRCTLS),
        "utimensat": [*_no_pointer(1), _give(ALLOW)] if writing else [_give(REFUSE)],
    }
    sending = {
        "sendto": [*_no_pointer(4), *_no_flag(3, _FASTOPEN), _give(ALLOW)],
        "sendmsg": [*_no_flag(2, _FASTOPEN), _give(ALLOW)],
        "sendmmsg": [*_no_flag(3, _FASTOPEN), _give(ALLOW)],
        "setsockopt": [
            *_one_of(1, (_SOL_SOCKET, _IPPROTO_TCP)),
            _low(2),
            *[step for option in _NO_OPTIONS for step in _never(option)],
            _give(ALLOW),
        ],
    }
    refused = ("socket", "connect", "bind", "listen", "accept", "accept4")
    return {**checks, **sending, **{name: [_give(REFUSE)] for name in refused}}


def _flat(
    machine: str, left_over: frozenset[int], also_allowed: frozenset[int]
) -> list[Instruction]:
    """Every other number, as stretches of the number line with one answer each.

    Kernels remember calls that are always allowed, so that the length costs them nothing.
    """
    answers = dict.fromkeys(left_over, REFUSE)
    for table, answer in (
        (syscalls.ALLOWED, ALLOW),
        (syscalls.REFUSED, REFUSE),
        (syscalls.UNSUPPORTED, NOT_SUPPORTED),
    ):
        answers.update(dict.fromkeys(syscalls.numbers(table, machine).values(), answer))
    answers.update(dict.fromkeys(also_allowed, ALLOW))
    stretches: list[tuple[int, int]] = []  # last number, answer
    for number in range(max(answers) + 1):
        answer = answers.get(number, NO_SUCH_CALL)
        if stretches and stretches[-1][1] == answer:
            stretches.pop()
        stretches.append((number, answer))
    program: list[Instruction] = []
    for last, answer in stretches:
        program += [(_AT_LEAST, 1, 0, last + 1), _give(answer)]
    return [*program, _give(NO_SUCH_CALL)]


def _low(argument: int) -> Instruction:
    return (_LOAD, 0, 0, 16 + 8 * argument)


def _give(answer: int) -> Instruction:
    return (_RETURN, 0, 0, answer)


def _only(argument: int, values: tuple[int, ...], answer: int = REFUSE) -> list[Instruction]:
    return [*_one_of(argument, values, answer), _give(ALLOW)]


def _one_of(argument: int, values: tuple[int, ...], answer: int = REFUSE) -> list[Instruction]:
    tests: list[Instruction] = [
        (_EQUAL, len(values) - index, 0, value) for index, value in enumerate(values)
    ]
    return [_low(argument), *tests, _give(answer)]


def _must_be(argument: int, value: int) -> list[Instruction]:
    return _one_of(argument, (value,))


def _kind(argument: int, value: int) -> list[Instruction]:
    """The kind of a socket, without the flags that stand beside it."""
    return [_low(argument), (_AND, 0, 0, 0xF), (_EQUAL, 1, 0, value), _give(REFUSE)]


def _some_bit(bits: int) -> list[Instruction]:
    return [(_ANY_BIT, 1, 0, bits), _give(REFUSE)]


def _none_of_bits(bits: int) -> list[Instruction]:
    return [(_ANY_BIT, 0, 1, bits), _give(REFUSE)]


def _no_flag(argument: int, bits: int) -> list[Instruction]:
    return [_low(argument), *_none_of_bits(bits)]


def _never(value: int) -> list[Instruction]:
    return [(_EQUAL, 0, 1, value), _give(REFUSE)]


def _no_pointer(argument: int) -> list[Instruction]:
    high = (_LOAD, 0, 0, 16 + 8 * argument + 4)
    return [
        _low(argument),
        (_EQUAL, 1, 0, 0),
        _give(REFUSE),
        high,
        (_EQUAL, 1, 0, 0),
        _give(REFUSE),
    ]


def encode(program: list[Instruction]) -> bytes:
    """The program as the kernel reads it."""
    return b"".join(struct.pack("=HBBI", code, yes, no, k) for code, yes, no, k in program)


def for_process(encoded: bytes, pid: int) -> bytes:
    """A program that was built for `ANY_PID`, for this process."""
    return encoded.replace(struct.pack("=I", ANY_PID), struct.pack("=I", pid))


def install(kernel: Kernel, machine: str, filter_bytes: bytes) -> None:
    """Put the filter on this process, for ever. Needs no_new_privs. Raises `OSError`."""
    buffer = ctypes.create_string_buffer(filter_bytes, len(filter_bytes))
    head = struct.pack("=HxxxxxxQ", len(filter_bytes) // 8, ctypes.addressof(buffer))
    kernel.call(SYS_SECCOMP[machine], 1, 0, head)
