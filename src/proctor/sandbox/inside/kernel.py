"""System calls for isolation, through the C library."""

from __future__ import annotations

import ctypes
import os
import struct

CLONE_PARENT = 0x0000_8000
CLONE_NEWTIME = 0x0000_0080
CLONE_NEWNS = 0x0002_0000
CLONE_NEWCGROUP = 0x0200_0000
CLONE_NEWUTS = 0x0400_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000
ALL_NAMESPACES = (
    CLONE_NEWTIME | CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID
) | CLONE_NEWNET

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000
MNT_DETACH = 0x2
CAP_SYS_ADMIN = 21
CHANGE_USER = 1 << 6 | 1 << 7  # CAP_SETGID, CAP_SETUID

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SIGKILL = 9
_CAPABILITIES_V3 = 0x2008_0522

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def system_call(what: str, number: int, *arguments: object) -> int:
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments), what)


def prctl(option: int, *arguments: int) -> int:
    values = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return _checked(_libc.prctl(ctypes.c_int(option), *values), f"prctl({option})")


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), f"unshare({flags:#x})")


def setns(descriptor: int, kind: int) -> None:
    _checked(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _checked(result, f"mount {kind or source} on {target}")


def unmount(target: str) -> None:
    _checked(_libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    number = 155 if os.uname().machine == "x86_64" else 41
    system_call("pivot_root", number, new.encode(), old.encode())


def current_processor() -> int:
    return _checked(_libc.sched_getcpu(), "sched_getcpu")


def set_no_new_privileges() -> None:
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_undumpable() -> None:
    """Prevents processes of the same user from tracing this one."""
    prctl(_PR_SET_DUMPABLE, 0)


def die_with_parent() -> None:
    prctl(_PR_SET_PDEATHSIG, _SIGKILL)


def adopt_orphans() -> None:
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def has_capability(number: int) -> bool:
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    data = ctypes.create_string_buffer(24)
    _checked(_libc.capget(header, data), "capget")
    effective = struct.unpack("6I", data.raw)
    return bool((effective[0] | effective[3] << 32) >> number & 1)


def drop_capabilities(but: int = 0) -> None:
    """Drops all other capabilities for good; no_new_privs keeps programs from regaining them."""
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = struct.pack("Ii", _CAPABILITIES_V3, 0)
    _checked(_libc.capset(header, struct.pack("6I", but, but, 0, 0, 0, 0)), "capset")
