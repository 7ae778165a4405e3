"""seccomp filters: refuse system calls that no program needs.

`base_filter` is installed in the supervisor and applies to all its children.
`program_filter` is installed in the zygote, and so applies to every program: it refuses
namespaces, memory that no limit counts, and what would outlive the program: persistent
kernel objects, and processes that are not its children.

Without a PID namespace, further filters refuse calls on other processes and, for programs
of the same user, on their files.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct

from proctor.sandbox.inside import kernel

# name: (x86_64, aarch64); None if the architecture has no such call. Numbers from 424 on
# are the same on all architectures.
_REFUSED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
    "vmsplice": (278, 75),
}
_NUMBERS = {
    "clone": (56, 220),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "ioprio_set": (251, 30),
    "kill": (62, 129),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "openat": (257, 56),
    "prlimit64": (302, 261),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semget": (64, 190),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "tgkill": (234, 131),
    "tkill": (200, 130),
    "truncate": (76, 45),
    "unshare": (272, 97),
}
# Changes of mode, times, owner and attributes, which Landlock does not cover, with the error
# that each call returns. 0: the call does nothing and succeeds, because honest programs that
# copy or unpack files would fail otherwise.
_FILES = {
    "chmod": (90, None, 0),
    "chown": (92, None, errno.EPERM),
    "fchmod": (91, 52, 0),
    "fchmodat": (268, 53, 0),
    "fchmodat2": (452, 452, 0),
    "fchown": (93, 55, errno.EPERM),
    "fchownat": (260, 54, errno.EPERM),
    "fremovexattr": (199, 16, errno.ENOTSUP),
    "fsetxattr": (190, 7, errno.ENOTSUP),
    "futimesat": (261, None, 0),
    "lchown": (94, None, errno.EPERM),
    "lremovexattr": (198, 15, errno.ENOTSUP),
    "lsetxattr": (189, 6, errno.ENOTSUP),
    "removexattr": (197, 14, errno.ENOTSUP),
    "setxattr": (188, 5, errno.ENOTSUP),
    "setxattrat": (463, 463, errno.ENOTSUP),
    "utime": (132, None, 0),
    "utimensat": (280, 88, 0),
    "utimes": (235, None, 0),
}
_SET_FILE_FLAGS = (0x4008_6602, 0x401C_5820)  # by ioctl
_OPEN_X86 = 2
_OPENAT2 = 437  # its flags are in memory, too
_CLONE3 = 435  # filters cannot read its flags; the C library falls back to clone
_PIDFD_SEND_SIGNAL = 424
_SETOWN_EX = 15
_SETOWN_BY_IOCTL = (0x8901, 0x8902)
_LAST_KNOWN = 463  # newer calls return ENOSYS until they are reviewed

_COLUMN = {"x86_64": 0, "aarch64": 1}.get(os.uname().machine)
_AUDIT = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}.get(os.uname().machine, 0)

_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER_AT, _MACHINE_AT, _ARGUMENT_AT = 0, 4, 16
_ALLOW, _REFUSE, _KILL = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_SET_FILTER = 1

SUPPORTED = _COLUMN is not None


def number_of(name: str) -> int:
    assert _COLUMN is not None
    number = (_NUMBERS.get(name) or _REFUSED[name])[_COLUMN]
    assert number is not None
    return number


def base_filter(alone: bool, network: bool = False) -> bytes:
    """`alone`: in its own namespaces, where local sockets reach no other process."""
    program = _head()
    program += [(_ABOVE, 0, 1, _LAST_KNOWN), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    program += _on_call(_CLONE3, _REFUSE | errno.ENOSYS)
    for numbers in _REFUSED.values():
        if (number := numbers[_COLUMN or 0]) is not None:
            program += _on_call(number, _REFUSE | errno.EPERM)
    refused = _REFUSE | errno.EACCES
    if alone:  # no internet, no vsock to a host
        outside = (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK) if network else ()
        program += _allow_values("socket", 0, (socket.AF_UNIX, *outside), refused)
        program += _allow_values("socketpair", 0, (socket.AF_UNIX,), refused)
    else:  # local sockets reach services of the machine; socket pairs do not
        program += _on_call(number_of("socket"), refused)
        flags = (0, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        kinds = tuple(kind | flag for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET) for flag in flags)
        program += _allow_values("socketpair", 0, (socket.AF_UNIX,), refused) + _allow_values(
            "socketpair", 1, kinds, refused
        )
    return _pack(program)


def program_filter() -> bytes:
    program = _head()
    # Memory that no limit counts, and objects that outlive the program.
    for name in ("memfd_create", "memfd_secret", "msgget", "semget", "shmget"):
        program += _on_call(number_of(name), _REFUSE | errno.ENOSYS)
    return _pack([*program, *_without_namespaces()])


def namespaces_filter() -> bytes:
    """For a process alone in its namespaces: it creates no others."""
    return _pack([*_head(), *_without_namespaces()])


def _without_namespaces() -> list[tuple[int, int, int, int]]:
    program = _on_call(number_of("unshare"), _REFUSE | errno.EPERM)
    program += _on_call(number_of("setns"), _REFUSE | errno.EPERM)
    return [
        *program,
        (_EQUAL, 0, 4, number_of("clone")),
        (_LOAD, 0, 0, _ARGUMENT_AT),
        (_ANY_BIT, 0, 1, kernel.ALL_NAMESPACES | kernel.CLONE_PARENT),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def other_processes_filter(process: int) -> bytes:
    """Without a PID namespace: protects limits and priorities of other processes."""
    refused = _REFUSE | errno.EPERM
    program = _head() + _on_call(number_of("ioprio_set"), refused) + _on_call(number_of("mq_open"), refused)
    for name in ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"):
        program += _allow_values(name, 0, (0, process), refused)
    program += _on_call(number_of("setpriority"), refused)
    return _pack(program)


def own_signals_filter(process: int) -> bytes:
    """Without a PID namespace and Landlock scopes: signals only to the first process."""
    refused = _REFUSE | errno.EPERM
    program = _head() + _on_call(_PIDFD_SEND_SIGNAL, refused)
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        program += _allow_values(name, 0, (process,), refused)
    for name, words in (("fcntl", (fcntl.F_SETOWN, _SETOWN_EX)), ("ioctl", _SETOWN_BY_IOCTL)):
        program += _refuse_values(name, 1, words, refused)  # a file's signals may go to any process
    return _pack(program)


def files_filter(lengths_are_safe: bool) -> bytes:
    """For programs that run as the harness's user, whose files only Landlock protects.

    `lengths_are_safe`: Landlock covers truncation.
    """
    program = _head() + _refuse_values("ioctl", 1, _SET_FILE_FLAGS, _REFUSE | errno.EPERM)
    for *numbers, error in _FILES.values():
        if (number := numbers[_COLUMN or 0]) is not None:
            program += _on_call(number, _REFUSE | error)
    if not lengths_are_safe:
        refused = _REFUSE | errno.EACCES
        program += _on_call(number_of("truncate"), refused) + _on_call(_OPENAT2, _REFUSE | errno.ENOSYS)
        reading_and_truncating = [
            (_ANY_BIT, 0, 2, os.O_TRUNC),
            (_ANY_BIT, 1, 0, os.O_ACCMODE),
            (_RETURN, 0, 0, refused),
        ]
        program += _on_argument(number_of("openat"), 2, reading_and_truncating)
        if os.uname().machine == "x86_64":
            program += _on_argument(_OPEN_X86, 1, reading_and_truncating)
    return _pack(program)


class Filter:
    """A filter, prepared once and installed in many processes."""

    def __init__(self, program: bytes) -> None:
        self._code = ctypes.create_string_buffer(program, len(program))
        self._header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(self._code))

    def install(self) -> None:
        """Installs it on the calling thread and its children; needs no_new_privs."""
        kernel.system_call("seccomp", number_of("seccomp"), ctypes.c_long(_SET_FILTER), ctypes.c_long(0), self._header)


def _head() -> list[tuple[int, int, int, int]]:
    """Checks the architecture, then loads the number of the call."""
    return [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_EQUAL, 1, 0, _AUDIT),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]


def _on_call(number: int, answer: int) -> list[tuple[int, int, int, int]]:
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, answer)]


def _allow_values(name: str, argument: int, allowed: tuple[int, ...], answer: int) -> list[tuple[int, int, int, int]]:
    """Refuses the call unless the argument has one of these values."""
    compare = [(_EQUAL, len(allowed) - index, 0, value) for index, value in enumerate(allowed)]
    return _on_argument(number_of(name), argument, [*compare, (_RETURN, 0, 0, answer)])


def _refuse_values(name: str, argument: int, refused: tuple[int, ...], answer: int) -> list[tuple[int, int, int, int]]:
    """Refuses the call if the argument has one of these values."""
    *first, last = refused
    compare = [(_EQUAL, len(first) - index, 0, value) for index, value in enumerate(first)]
    return _on_argument(number_of(name), argument, [*compare, (_EQUAL, 0, 1, last), (_RETURN, 0, 0, answer)])


def _on_argument(number: int, argument: int, steps: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    """Applies steps to an argument of one call; then the rest of the filter follows."""
    body = [(_LOAD, 0, 0, _ARGUMENT_AT + 8 * argument), *steps, (_LOAD, 0, 0, _NUMBER_AT)]
    return [(_EQUAL, 0, len(body), number), *body]


def _pack(program: list[tuple[int, int, int, int]]) -> bytes:
    program = [*program, (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)
