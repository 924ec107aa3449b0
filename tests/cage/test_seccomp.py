"""The system call filter of both machines, read by a small interpreter of BPF."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from textwrap import dedent

import pytest

from core.execution.cage import seccomp, syscalls
from core.execution.cage.syscalls import AARCH64, X86_64

PID = 4242
ALLOWED = "allowed"
HEADERS = {
    X86_64: [
        Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
        Path("/usr/include/asm/unistd_64.h"),
    ],
    AARCH64: [Path("/usr/include/asm-generic/unistd.h")],
}
TABLES = (syscalls.ALLOWED, syscalls.CHECKED, syscalls.REFUSED, syscalls.UNSUPPORTED)
# Spelt otherwise in the generic header, where one number serves two word sizes.
SPELT = {"newfstatat": "fstatat"}


def decide(
    machine: str, name: str, *arguments: int, writing: bool = False, programs: bool = False
) -> str:
    number = {k: v for table in TABLES for k, v in syscalls.numbers(table, machine).items()}[name]
    program = seccomp.build(machine, PID, writing=writing, programs=programs)
    return interpret(program, seccomp.AUDIT_ARCH[machine], number, *arguments)


def interpret(program: list[seccomp.Instruction], arch: int, number: int, *arguments: int) -> str:
    words = [number, arch, 0, 0]
    for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]:
        words += [argument & 0xFFFFFFFF, (argument >> 32) & 0xFFFFFFFF]
    at = accumulator = 0
    while True:
        code, yes, no, k = program[at]
        at += 1
        match code:
            case 0x20:
                accumulator = words[k // 4]
            case 0x54:
                accumulator &= k
            case 0x15:
                at += yes if accumulator == k else no
            case 0x35:
                at += yes if accumulator >= k else no
            case 0x45:
                at += yes if accumulator & k else no
            case 0x06:
                if k == seccomp.ALLOW:
                    return ALLOWED
                if k == seccomp.KILL:
                    return "killed"
                return errno.errorcode[k & 0xFFFF].replace("EOPNOTSUPP", "ENOTSUP")


BOTH = pytest.mark.parametrize("machine", [X86_64, AARCH64])
THREAD = 0x003D0F00
CASES = [
    ("read", (), ALLOWED),
    ("openat", (), ALLOWED),
    ("clone", (THREAD,), ALLOWED),
    ("clone", (17,), "EPERM"),
    ("clone", (THREAD | 0x40000000,), "EPERM"),
    ("clone3", (), "ENOSYS"),
    ("execve", (), "EPERM"),
    ("ptrace", (), "EPERM"),
    ("mount", (), "EPERM"),
    ("keyctl", (), "EPERM"),
    ("io_uring_setup", (), "EPERM"),
    ("bpf", (), "EPERM"),
    ("userfaultfd", (), "EPERM"),
    ("perf_event_open", (), "EPERM"),
    ("kexec_load", (), "EPERM"),
    ("unshare", (), "EPERM"),
    ("setns", (), "EPERM"),
    ("chroot", (), "EPERM"),
    ("memfd_create", (), "EPERM"),
    ("process_vm_writev", (), "EPERM"),
    ("personality", (), "EPERM"),
    ("fchmodat", (), "EPERM"),
    ("fchownat", (), "EPERM"),
    ("getxattr", (), "ENOTSUP"),
    ("kill", (PID, 9), ALLOWED),
    ("kill", (PID + 1, 9), "EPERM"),
    ("kill", (0, 9), "EPERM"),
    ("kill", (-1 & 0xFFFFFFFFFFFFFFFF, 9), "EPERM"),
    ("tgkill", (PID, 7, 6), ALLOWED),
    ("tgkill", (1, 1, 6), "EPERM"),
    ("prlimit64", (0, 7), ALLOWED),
    ("prlimit64", (1, 7), "EPERM"),
    ("socket", (2, 1), "EPERM"),
    ("socket", (1, 1), "EPERM"),
    ("connect", (4,), "EPERM"),
    ("bind", (4,), "EPERM"),
    ("socketpair", (1, 1 | 0x80000), ALLOWED),
    ("socketpair", (1, 2), "EPERM"),
    ("socketpair", (2, 1), "EPERM"),
    ("sendto", (4, 1 << 40, 5, 0, 0, 0), ALLOWED),
    ("sendto", (4, 1 << 40, 5, 0, 1 << 40, 16), "EPERM"),
    ("sendto", (4, 1 << 40, 5, 0x20000000, 0, 0), "EPERM"),
    ("sendmsg", (4, 1 << 40, 0), ALLOWED),
    ("sendmsg", (4, 1 << 40, 0x20004000), "EPERM"),
    ("recvmsg", (4, 1 << 40, 0), ALLOWED),
    ("setsockopt", (4, 6, 1), ALLOWED),
    ("setsockopt", (4, 1, 26), "EPERM"),
    ("setsockopt", (4, 0, 1), "EPERM"),
    ("ioctl", (4, 0x5421), ALLOWED),
    ("ioctl", (4, 0x5412), "ENOTTY"),
    ("fcntl", (4, 3), ALLOWED),
    ("fcntl", (4, 8), "EPERM"),
    ("prctl", (15,), ALLOWED),
    ("prctl", (1, 0), "EPERM"),
    ("prctl", (22,), "EPERM"),
    ("utimensat", (4, 0), "EPERM"),
]


@BOTH
@pytest.mark.parametrize(("name", "arguments", "expected"), CASES)
def test_call_is_decided_by_its_number_and_arguments(machine, name, arguments, expected):
    assert decide(machine, name, *arguments) == expected


@BOTH
def test_times_are_set_over_a_descriptor_and_only_when_writing(machine: str):
    assert decide(machine, "utimensat", 4, 0, writing=True) == ALLOWED
    assert decide(machine, "utimensat", 4, 1 << 40, writing=True) == "EPERM"


@BOTH
def test_every_listed_call_and_every_number_has_an_answer(machine: str):
    program = seccomp.build(machine, PID)
    arch = seccomp.AUDIT_ARCH[machine]
    lists = [syscalls.numbers(table, machine) for table in TABLES]
    names = [name for one in lists for name in one]
    numbers = [number for one in lists for number in one.values()]

    assert len(names) == len(set(names))
    assert len(numbers) == len(set(numbers))
    for name, number in lists[0].items():
        assert interpret(program, arch, number) == ALLOWED, name
    for name, number in lists[2].items():
        assert interpret(program, arch, number) == "EPERM", name
    for number in set(range(600)) - set(numbers):
        assert interpret(program, arch, number) == "ENOSYS"
    assert len(program) < 4096
    assert all(0 <= jump < 256 for _, yes, no, _ in program for jump in (yes, no))


@BOTH
def test_program_made_once_becomes_that_of_any_process(machine: str):
    made_once = seccomp.encode(seccomp.build(machine, seccomp.ANY_PID))

    assert seccomp.for_process(made_once, PID) == seccomp.encode(seccomp.build(machine, PID))


def test_other_architectures_and_numbers_are_killed():
    program = seccomp.build(X86_64, PID)

    assert interpret(program, 0x40000003, 20) == "killed"  # 32 bits
    assert interpret(program, seccomp.AUDIT_ARCH[AARCH64], 63) == "killed"
    assert interpret(program, seccomp.AUDIT_ARCH[X86_64], 0x40000000 | 39) == "killed"  # x32
    with pytest.raises(ValueError, match="riscv64"):
        seccomp.build("riscv64", PID)


@pytest.mark.parametrize("machine", [X86_64, AARCH64])
def test_numbers_are_those_of_the_kernels_headers(machine: str):
    header = next((path for path in HEADERS[machine] if path.is_file()), None)
    if header is None:
        pytest.skip("no kernel headers here")
    text = header.read_text(encoding="utf-8")
    real = {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)
    }

    wrong = {
        name: number
        for table in TABLES
        for name, number in syscalls.numbers(table, machine).items()
        if real.get(name if name in real else SPELT.get(name, name), number) != number
    }

    assert wrong == {}


async def test_call_of_another_architecture_kills_the_executor(room):
    code = """
    import ctypes, mmap
    def run(c):
        body = bytes.fromhex("b814000000cd80c3")  # getpid, the 32-bit way
        page = mmap.mmap(-1, 4096, prot=7)
        page.write(body)
        address = ctypes.addressof(ctypes.c_char.from_buffer(page))
        return {"ok": True, "content": ctypes.CFUNCTYPE(ctypes.c_int)(address)()}
    """
    if os.uname().machine != X86_64:
        pytest.skip("x86-64 only")

    observation = await room.run(dedent(code))

    assert observation.error is not None
    assert observation.error.detail == "ended by SIGSYS"


@BOTH
def test_filter_for_programs_adds_making_and_starting_processes_and_nothing_else(machine: str):
    assert decide(machine, "clone", 17, programs=True) == ALLOWED
    assert decide(machine, "execve", programs=True) == ALLOWED
    for namespace in (0x00020000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(machine, "clone", 17 | namespace, programs=True) == "EPERM"
    names = {name for table in TABLES for name in syscalls.numbers(table, machine)}
    differ = {
        name
        for name in names
        if decide(machine, name, programs=True) != decide(machine, name, programs=False)
    }
    assert differ == {*syscalls.numbers(syscalls.PROGRAMS, machine), "clone"}
