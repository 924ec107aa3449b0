"""What an executor that turned against its host would try. Each `attack(a)` returns something true
when it got through, and raises or returns something false when it was stopped.

`a` tells where the targets are (see `attack_run`). `root`: works outside a cage only as root.
`broker`: goes over the broker, which outside the cage connects to wherever it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

PRELUDE = """
import ctypes, os, resource, signal, socket, stat, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == "aarch64"
def call(x86, arm, *arguments):
    number = arm if ARM else x86
    passed = [ctypes.c_long(n) if isinstance(n, int) else n for n in arguments]
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(ctypes.c_long(number), *passed)
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result
def read(path):
    with open(path) as file:
        return "canary" in file.read()
def ask_broker(host, port, fds=()):
    for fd in range(3, 64):
        try:
            line = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        if line.type == socket.SOCK_SEQPACKET:
            break
    question = '{"id": 1, "host": "%s", "port": %d}' % (host, port)
    socket.send_fds(line, [question.encode()], list(fds))
    return socket.recv_fds(line, 4096, 4)[1]
"""

CLOSING = """
def run(c):
    try:
        return {"ok": True, "content": bool(attack(c.args))}
    except (OSError, ValueError, AttributeError) as exc:
        return {"ok": True, "content": False, "metadata": {"stopped": type(exc).__name__}}
"""


@dataclass(frozen=True)
class Attack:
    name: str
    body: str
    root: bool = False
    broker: bool = False

    @property
    def code(self) -> str:
        body = "\n".join(f"    {line}" for line in dedent(self.body).strip().splitlines())
        return f"{PRELUDE}\ndef attack(a):\n{body}\n{CLOSING}"


def _of(root: bool = False, *, broker: bool = False, **bodies: str) -> list[Attack]:
    return [Attack(name, body, root, broker) for name, body in bodies.items()]


FILES = _of(
    reads_a_file_outside="return read(a['secret'])",
    reads_the_list_of_users="return open('/etc/passwd').read()",
    reads_over_dots="return read(a['root'] + '/../outside/secret.txt')",
    reads_over_a_link_that_stands_there="return read(a['root'] + '/link')",
    reads_over_a_link_of_its_own="""
        os.symlink(a['secret'], a['root'] + '/mine')
        return read(a['root'] + '/mine')
    """,
    reads_over_its_own_root="return read('/proc/self/root' + a['secret'])",
    reads_over_its_own_folder="""
        os.chdir(a['outside'])
        return read('/proc/self/cwd/secret.txt')
    """,
    reads_relative_to_a_folder_outside="""
        os.chdir(a['outside'])
        return read('secret.txt')
    """,
    reads_through_a_path_descriptor="""
        fd = os.open(a['secret'], os.O_PATH)
        return read(f'/proc/self/fd/{fd}')
    """,
    reads_the_environment_of_another="return open('/proc/%d/environ' % a['victim']).read()",
    reads_the_command_of_another="return open('/proc/%d/cmdline' % a['victim']).read()",
    reads_its_own_maps="return open('/proc/self/maps').read()",
    lists_a_folder_outside="return os.listdir(a['outside'])",
    lists_the_root="return os.listdir('/')",
    lists_the_processes="return os.listdir('/proc')",
    makes_a_file_outside="return open(a['outside'] + '/new.txt', 'w').write('x')",
    writes_over_a_file_outside="return open(a['secret'], 'r+').write('x')",
    empties_a_file_outside="return os.truncate(a['victim_file'], 0) is None",
    removes_a_file_outside="return os.unlink(a['outside'] + '/removable') is None",
    makes_a_folder_outside="return os.mkdir(a['outside'] + '/folder') is None",
    moves_a_file_out="return os.rename(a['root'] + '/own.txt', a['outside'] + '/x') is None",
    moves_a_file_in="""
        os.rename(a['outside'] + '/movable', a['root'] + '/moved')
        return read(a['root'] + '/moved')
    """,
    takes_a_second_name_of_a_file_outside="""
        os.link(a['secret'], a['root'] + '/second')
        return read(a['root'] + '/second')
    """,
    changes_the_mode_of_a_visible_file="return os.chmod(a['secret'], 0o666) is None",
    changes_the_mode_over_a_descriptor="""
        fd = os.open(a['root'] + '/own.txt', os.O_RDONLY)
        return os.fchmod(fd, 0o777) is None
    """,
    changes_the_times_of_a_visible_file="return os.utime(a['secret'], (1, 1)) is None",
    changes_the_owner_of_a_visible_file="return os.chown(a['secret'], -1, os.getgid()) is None",
    takes_a_handle_of_a_file="""
        handle = ctypes.create_string_buffer(struct.pack('=Ii', 128, 0) + bytes(128))
        mount = ctypes.c_int()
        path = a['secret'].encode()
        return call(303, 264, -100, path, handle, ctypes.byref(mount), 0) == 0
    """,
    watches_a_folder_outside="""
        fd = libc.inotify_init()
        return fd >= 0 and libc.inotify_add_watch(fd, a['outside'].encode(), 0xFFF) >= 0
    """,
)
FILES += _of(
    True,
    changes_the_mode_of_the_library="""
        return os.chmod(os.__file__, stat.S_IMODE(os.stat(os.__file__).st_mode)) is None
    """,
    makes_a_device="""
        os.mknod(a['root'] + '/device', stat.S_IFCHR | 0o600, os.makedev(1, 5))
        return open(a['root'] + '/device', 'rb').read(1)
    """,
)
NETWORK = _of(
    connects_over_tcp="""
        with socket.socket() as s:
            s.settimeout(2)
            return s.connect(('127.0.0.1', a['tcp'])) is None
    """,
    sends_over_udp="""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            return s.sendto(b'x', ('127.0.0.1', a['udp']))
    """,
    listens="""
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            return s.listen() is None
    """,
    connects_to_an_abstract_socket="""
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect('\\0' + a['abstract']) is None
    """,
    sends_from_a_pair_to_an_abstract_socket="""
        one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        return one.sendto(b'x', '\\0' + a['abstract'] + '-datagram')
    """,
    connects_to_a_socket_in_a_folder="""
        with socket.socket(socket.AF_UNIX) as s:
            return s.connect(a['socket']) is None
    """,
    asks_the_kernel_over_netlink="return socket.socket(16, socket.SOCK_RAW, 0)",
    reconnects_a_socket_it_was_given="""
        one, two = socket.socketpair()
        fds = [s.fileno() for s in (one, two)] + [a.get('broker', 4)]
        for fd in fds:
            address = struct.pack('=H', 1) + b'\\0' + a['abstract'].encode()
            if libc.connect(fd, address, len(address)) == 0:
                return True
        with socket.socket() as s:
            return s.connect(('127.0.0.1', a['tcp'])) is None
    """,
)
NETWORK += _of(
    True,
    opens_a_raw_socket="return socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    opens_a_packet_socket="return socket.socket(17, socket.SOCK_RAW, 0)",
)
NETWORK += _of(
    broker=True,
    is_connected_to_an_inner_address="return socket.create_connection(('127.0.0.1', a['tcp']))",
    is_connected_to_an_inner_name="return socket.create_connection(('localhost', a['tcp']))",
    is_connected_to_an_inner_address_as_a_number="""
        return socket.create_connection(('2130706433', a['tcp']))
    """,
    is_connected_to_an_inner_address_in_two_parts="""
        return socket.create_connection(('127.1', a['tcp']))
    """,
    asks_the_broker_past_the_hook="return ask_broker('127.0.0.1', a['tcp'])",
    hands_the_broker_descriptors="""
        fd = os.open(a['root'] + '/own.txt', os.O_RDONLY)
        return ask_broker('127.0.0.1', a['tcp'], [fd, fd])
    """,
)
PROCESSES = _of(
    forks="""
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        return pid
    """,
    starts_a_program="return os.posix_spawn('/bin/true', ['true'], {})",
    becomes_another_program="""
        os.execv('/bin/echo', ['echo', '{"ok":true,"content":true}'])
    """,
    starts_a_program_from_memory="""
        fd = os.memfd_create('program')
        with open('/bin/echo', 'rb') as file:
            os.write(fd, file.read())
        os.execve(f'/proc/self/fd/{fd}', ['echo', '{"ok":true,"content":true}'], {})
    """,
    signals_its_parent="return os.kill(os.getppid(), 0) is None",
    signals_another="return os.kill(a['victim'], 0) is None",
    signals_everybody_in_its_group="return os.kill(0, 0) is None",
    signals_another_over_a_descriptor="""
        return signal.pidfd_send_signal(os.pidfd_open(a['victim']), 0) is None
    """,
    signals_a_thread_of_another="return call(234, 131, a['victim'], a['victim'], 0) == 0",
    lets_the_kernel_signal_another="""
        import fcntl
        one, two = socket.socketpair()
        return fcntl.fcntl(one, 8, a['victim']) == 0
    """,
    traces_another="""
        libc.ptrace.restype = ctypes.c_long
        return libc.ptrace(0x4206, a['victim'], None, None) == 0
    """,
    reads_the_memory_of_another="return open('/proc/%d/mem' % a['victim'], 'rb')",
    changes_the_limits_of_another="""
        return resource.prlimit(a['victim'], resource.RLIMIT_CORE, (0, 0))
    """,
    slows_another="return os.setpriority(os.PRIO_PROCESS, a['victim'], 19) is None",
    pins_another="return os.sched_setaffinity(a['victim'], os.sched_getaffinity(0)) is None",
    outlives_its_parent="return libc.prctl(1, 0, 0, 0, 0) == 0",
)
KERNEL = _of(
    makes_a_user_namespace="return call(272, 97, 0x10000000) == 0",
    makes_anonymous_memory_files="return os.memfd_create('x') >= 0",
    takes_shared_memory="""
        segment = call(29, 194, 0, 4096, 0o1600)
        return call(31, 195, segment, 0, 0) == 0
    """,
    changes_its_personality="return call(135, 92, 0x0040000) >= 0",
    sets_up_a_ring="""
        return call(425, 425, 4, ctypes.create_string_buffer(256)) >= 0
    """,
    keeps_a_key="return call(248, 217, b'user', b'metnos', b'x', 1, -2) > 0",
    waits_for_page_faults="return call(323, 282, 1) >= 0",
    sends_over_a_queue="""
        name = b'metnos-%d' % os.getpid()
        return call(240, 180, name, 0o102, 0o600, 0) >= 0 and call(241, 181, name) == 0
    """,
)
KERNEL += _of(
    True,
    mounts="""
        done = libc.mount(b'none', a['root'].encode(), b'tmpfs', 0, None) == 0
        return done and libc.umount(a['root'].encode()) == 0
    """,
    changes_its_root="return os.chroot(a['root']) is None",
    enters_a_namespace="""
        return call(308, 268, os.open('/proc/%d/ns/uts' % a['victim'], 0), 0) == 0
    """,
    reads_the_kernels_log="return libc.klogctl(10, None, 0) >= 0",
    becomes_another_user="return os.setuid(1) is None",
    names_the_machine="return socket.sethostname(socket.gethostname()) is None",
    counts_events="""
        attributes = struct.pack('=IIQ', 1, 128, 0) + bytes(112)
        return call(298, 241, attributes, 0, -1, -1, 0) >= 0
    """,
    makes_a_map_for_filters="""
        return call(321, 280, 0, struct.pack('=IIII', 2, 4, 4, 1) + bytes(56), 72) >= 0
    """,
)
ATTACKS = [*FILES, *NETWORK, *PROCESSES, *KERNEL]
