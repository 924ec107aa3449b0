"""System calls by name and number, and calling them: what Landlock and seccomp are made of.

Runs inside the cage's processes, so it imports neither `core` nor anything slow. The numbers are
those of the kernel's headers for x86-64 and arm64; `-` stands for a call that one of them lacks.
A call in none of the four lists does not exist for an executor (ENOSYS), which is what a C
library expects of an older kernel, and what becomes of calls that are invented after us.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

X86_64 = "x86_64"
AARCH64 = "aarch64"

# Harmless by themselves, or bounded by Landlock and the limits.
ALLOWED = """
read 0 63; write 1 64; open 2 -; close 3 57; stat 4 -; fstat 5 80; lstat 6 -; poll 7 -; lseek 8
62; mmap 9 222; mprotect 10 226; munmap 11 215; brk 12 214; rt_sigaction 13 134; rt_sigprocmask
14 135; rt_sigreturn 15 139; pread64 17 67; pwrite64 18 68; readv 19 65; writev 20 66; access 21
-; pipe 22 -; select 23 -; sched_yield 24 124; mremap 25 216; msync 26 227; mincore 27 232;
madvise 28 233; dup 32 23; dup2 33 -; pause 34 -; nanosleep 35 101; getitimer 36 102; alarm 37 -;
setitimer 38 103; getpid 39 172; sendfile 40 71; recvfrom 45 207; recvmsg 47 212; recvmmsg 299
243; shutdown 48 210; getsockname 51 204; getpeername 52 205; getsockopt 55 209; exit 60 93;
wait4 61 260; uname 63 160; flock 73 32; fsync 74 82; fdatasync 75 83; ftruncate 77 46; getdents
78 -; getcwd 79 17; chdir 80 49; fchdir 81 50; rename 82 -; mkdir 83 -; rmdir 84 -; creat 85 -;
link 86 -; unlink 87 -; symlink 88 -; readlink 89 -; umask 95 166; gettimeofday 96 169; getrlimit
97 163; getrusage 98 165; sysinfo 99 179; times 100 153; getuid 102 174; getgid 104 176; geteuid
107 175; getegid 108 177; getppid 110 173; getpgrp 111 -; getresuid 118 148; getresgid 120 150;
getgroups 115 158; getpgid 121 155; getsid 124 156; rt_sigpending 127 136; rt_sigtimedwait 128
137; rt_sigsuspend 130 133; sigaltstack 131 132; statfs 137 43; fstatfs 138 44; getpriority 140
141; sched_getparam 143 121; sched_getscheduler 145 120; sched_get_priority_max 146 125;
sched_get_priority_min 147 126; sched_rr_get_interval 148 127; arch_prctl 158 -; gettid 186 178;
readahead 187 213; time 201 -; futex 202 98; sched_getaffinity 204 123; epoll_create 213 -;
getdents64 217 61; set_tid_address 218 96; restart_syscall 219 128; fadvise64 221 223;
clock_gettime 228 113; clock_getres 229 114; clock_nanosleep 230 115; exit_group 231 94;
epoll_wait 232 -; epoll_ctl 233 21; waitid 247 95; openat 257 56; openat2 437 437; mkdirat 258
34; newfstatat 262 79; unlinkat 263 35; renameat 264 38; linkat 265 37; symlinkat 266 36;
readlinkat 267 78; faccessat 269 48; faccessat2 439 439; pselect6 270 72; ppoll 271 73;
set_robust_list 273 99; sync_file_range 277 84; epoll_pwait 281 22; epoll_pwait2 441 441;
timerfd_create 283 85; timerfd_settime 286 86; timerfd_gettime 287 87; eventfd 284 -; eventfd2
290 19; fallocate 285 47; signalfd 282 -; signalfd4 289 74; epoll_create1 291 20; dup3 292 24;
pipe2 293 59; preadv 295 69; pwritev 296 70; preadv2 327 286; pwritev2 328 287; renameat2 316
276; getrandom 318 278; membarrier 324 283; copy_file_range 326 285; statx 332 291; rseq 334 293;
close_range 436 436; futex_waitv 449 449; timer_create 222 107; timer_settime 223 110;
timer_gettime 224 108; timer_getoverrun 225 109; timer_delete 226 111; getcpu 309 168; capget 125
90
"""

# Allowed or refused by their arguments: see `seccomp`.
CHECKED = """
clone 56 220; clone3 435 435; kill 62 129; tkill 200 130; tgkill 234 131; rt_sigqueueinfo 129
138; rt_tgsigqueueinfo 297 240; prlimit64 302 261; socket 41 198; socketpair 53 199; sendto 44
206; sendmsg 46 211; sendmmsg 307 269; ioctl 16 29; fcntl 72 25; prctl 157 167; setsockopt 54
208; connect 42 203; bind 49 200; listen 50 201; accept 43 202; accept4 288 242; utimensat 280 88
"""

# Extended attributes: said not to be supported, which copying functions take calmly.
UNSUPPORTED = """
getxattr 191 8; lgetxattr 192 9; fgetxattr 193 10; listxattr 194 11; llistxattr 195 12;
flistxattr 196 13
"""

# Refused with EPERM. Changes of mode, owner and attributes are here because Landlock cannot bind
# them to folders; path `truncate` because ABI 1 and 2 cannot.
REFUSED = """
fork 57 -; vfork 58 -; execve 59 221; execveat 322 281; ptrace 101 117; process_vm_readv 310 270;
process_vm_writev 311 271; process_madvise 440 440; process_mrelease 448 448; pidfd_open 434 434;
pidfd_getfd 438 438; pidfd_send_signal 424 424; kcmp 312 272; get_robust_list 274 100; chmod 90
-; fchmod 91 52; fchmodat 268 53; fchmodat2 452 452; chown 92 -; fchown 93 55; lchown 94 -;
fchownat 260 54; utime 132 -; utimes 235 -; futimesat 261 -; setxattr 188 5;
lsetxattr 189 6; fsetxattr 190 7; removexattr 197 14; lremovexattr 198 15; fremovexattr 199 16;
truncate 76 45; mknod 133 -; mknodat 259 33; mount 165 40; umount2 166 39; mount_setattr 442 442;
open_tree 428 428; move_mount 429 429; fsopen 430 430; fsconfig 431 431; fsmount 432 432; fspick
433 433; pivot_root 155 41; chroot 161 51; unshare 272 97; setns 308 268; swapon 167 224; swapoff
168 225; quotactl 179 60; quotactl_fd 443 443; acct 163 89; open_by_handle_at 304 -;
name_to_handle_at 303 -; fanotify_init 300 262; fanotify_mark 301 263; inotify_init 253 -;
inotify_init1 294 26; inotify_add_watch 254 27; inotify_rm_watch 255 28; bpf 321 280;
perf_event_open 298 241; userfaultfd 323 282; io_uring_setup 425 425; io_uring_enter 426 426;
io_uring_register 427 427; io_setup 206 0; io_submit 209 2; io_cancel 210 3; io_destroy 207 1;
io_getevents 208 4; io_pgetevents 333 292; seccomp 317 277; landlock_create_ruleset 444 444;
landlock_add_rule 445 445; landlock_restrict_self 446 446; personality 135 92; modify_ldt 154 -;
iopl 172 -; ioperm 173 -; keyctl 250 219; add_key 248 217; request_key 249 218; memfd_create 319
279; memfd_secret 447 447; shmget 29 194; shmat 30 196; shmctl 31 195; shmdt 67 197; semget 64
190; semop 65 193; semtimedop 220 192; semctl 66 191; msgget 68 186; msgsnd 69 189; msgrcv 70
188; msgctl 71 187; mq_open 240 180; mq_unlink 241 181; mq_timedsend 242 182; mq_timedreceive 243
183; mq_notify 244 184; mq_getsetattr 245 185; kexec_load 246 104; kexec_file_load 320 294;
init_module 175 105; finit_module 313 273; delete_module 176 106; reboot 169 142; syslog 103 116;
sethostname 170 161; setdomainname 171 162; settimeofday 164 170; clock_settime 227 112;
clock_adjtime 305 266; adjtimex 159 171; vhangup 153 58; lookup_dcookie 212 18; setuid 105 146;
setgid 106 144; setreuid 113 145; setregid 114 143; setresuid 117 147; setresgid 119 149;
setfsuid 122 151; setfsgid 123 152; setgroups 116 159; capset 126 91; setsid 112 157; setpgid 109
154; setrlimit 160 164; setpriority 141 140; ioprio_set 251 30; sched_setaffinity 203 122;
sched_setscheduler 144 119; sched_setparam 142 118; sched_setattr 314 274; mbind 237 235;
migrate_pages 256 238; move_pages 279 239; set_mempolicy 238 237; set_mempolicy_home_node 450
450; sync 162 81; syncfs 306 267; vmsplice 278 75; splice 275 76; tee 276 77; mlock 149 228;
mlock2 325 284; mlockall 151 230
"""

# What stands among the refused, and is allowed to an executor that starts programs.
PROGRAMS = """
fork 57 -; vfork 58 -; execve 59 221
"""

_MACHINES = (X86_64, AARCH64)


def numbers(table: str, machine: str) -> dict[str, int]:
    """Name → number of one list for one machine; calls that it lacks are left out."""
    column = 1 + _MACHINES.index(machine)
    rows = [entry.split() for entry in table.split(";")]
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}


class Kernel:
    """Calls the kernel by number through the C library."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._syscall = self._libc.syscall
        self._syscall.restype = ctypes.c_long

    def call(self, number: int, *arguments: Any) -> int:
        """One system call; whole numbers are passed as long, bytes as their address.

        Raises `OSError` with the kernel's number.
        """
        passed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
        result: int = self._syscall(ctypes.c_long(number), *passed)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def prctl(self, option: int, value: int = 0, third: int = 0) -> int:
        """`prctl(2)`. Raises `OSError`."""
        passed = [ctypes.c_ulong(a) for a in (value, third, 0, 0)]
        result: int = self._libc.prctl(ctypes.c_int(option), *passed)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result

    def share_one_heap(self) -> None:
        """Keep threads from reserving 64 MiB of address space each, which the limit counts.

        Only glibc does and can be told not to.
        """
        if hasattr(self._libc, "mallopt"):
            self._libc.mallopt(ctypes.c_int(-8), ctypes.c_int(1))  # M_ARENA_MAX
