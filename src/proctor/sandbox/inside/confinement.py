"""Isolates this process before the first program: namespaces, mounts, Landlock, seccomp.

Where bubblewrap has made the namespaces, only Landlock and seccomp are applied.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from typing import Any

from proctor.sandbox.inside import kernel, landlock, seccomp

_MOUNT_SETATTR = 442
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_READ_ONLY = 0x1 | 0x2 | 0x4  # read-only, no set-uid, no devices
DEVICES = ("null", "zero", "full", "random", "urandom")
DEVICE_LINKS = (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"))
_INODES = 16_384


def isolate(plan: dict[str, Any]) -> None:
    if plan["namespace_backend"] == "kernel":
        _enter_namespaces(plan["user_namespace"], plan.get("network", False))
        _build_root(plan)
    elif plan["namespace_backend"] == "bubblewrap":
        _finish_bubblewrap(plan)
    kernel.adopt_orphans()
    kernel.set_no_new_privileges()
    if plan["landlock"]:
        landlock.confine(
            plan["readable"],
            plan["listable"],
            [plan["scratch"]],
            devices(plan),
            network=plan.get("network", False),
        )
    if plan["seccomp"]:
        alone, network = plan["pid_namespace"], plan.get("network", False)
        seccomp.Filter(seccomp.base_filter(alone=alone, network=network)).install()


def devices(plan: dict[str, Any]) -> list[str]:
    return [*(f"/dev/{name}" for name in DEVICES), *plan.get("devices", ())]


def _enter_namespaces(as_ordinary_user: bool, network: bool) -> None:
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
    flags |= 0 if network else kernel.CLONE_NEWNET
    flags |= kernel.CLONE_NEWUTS | kernel.CLONE_NEWCGROUP
    user, group = os.getuid(), os.getgid()
    kernel.unshare(flags | (kernel.CLONE_NEWUSER if as_ordinary_user else 0))
    if as_ordinary_user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/gid_map", f"0 {group} 1")
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
    kernel.die_with_parent()


def _build_root(plan: dict[str, Any]) -> None:
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)  # only until pivot_root
    os.chdir("/tmp")
    os.mkdir("old")
    os.mkdir("new")
    kernel.pivot_root(".", "old")
    os.chdir("/")
    kernel.mount("tmpfs", "/new", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
    scratch = "/new" + plan["scratch"]
    os.makedirs(scratch)
    kernel.mount("tmpfs", scratch, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=1777,{_size(plan)}")
    for mount_point in plan["mount_points"]:
        os.mkdir(f"/new{mount_point}")
        kernel.mount("tmpfs", f"/new{mount_point}", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=1m")
    for folder in plan["folders"]:
        _bind_read_only(f"/old{folder}", f"/new{folder}")
    for source, target in plan.get("binds", ()):
        _bind_read_only(f"/old{source}", f"/new{target}")
    for path in plan["hidden"]:
        kernel.mount("tmpfs", f"/new{path}", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=755,size=4k")
    for link, target in plan["links"]:
        _make_parents(f"/new{link}")
        os.symlink(target, f"/new{link}")
    for name, content in plan["files"].items():
        _make_parents(f"/new{name}")
        _write(f"/new{name}", content)
    _make_devices(plan["scratch"], devices(plan))
    _make_proc(whole=bool(plan.get("devices")))  # GPU libraries read it
    for path in ("", *plan["mount_points"], *plan["hidden"]):
        _make_read_only(f"/new{path}")
    os.chdir("/new")
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")


def _finish_bubblewrap(plan: dict[str, Any]) -> None:
    if kernel.has_capability(kernel.CAP_SYS_ADMIN):  # bubblewrap has no option for nr_inodes
        flags = kernel.MS_REMOUNT | kernel.MS_NOSUID | kernel.MS_NODEV
        with contextlib.suppress(PermissionError):
            kernel.mount("tmpfs", plan["scratch"], "tmpfs", flags, _size(plan))
    elif plan["user_namespace"]:
        kernel.unshare(kernel.CLONE_NEWUSER)  # this bubblewrap keeps CAP_SYS_ADMIN


def _size(plan: dict[str, Any]) -> str:
    return f"size={plan['scratch_bytes']},nr_inodes={_INODES}"


def _make_read_only(path: str) -> None:
    flags = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", path, "", kernel.MS_REMOUNT | kernel.MS_BIND | flags)


def _bind_read_only(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        _make_parents(target)
        _write(target, "")
    kernel.mount(source, target, "", kernel.MS_BIND | kernel.MS_REC)
    _protect(target)


def _protect(target: str) -> None:
    attributes = struct.pack("QQQQ", _READ_ONLY, 0, 0, 0)
    kernel.system_call(
        f"mount_setattr {target}",
        _MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        target.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )


def _make_devices(scratch: str, names: list[str]) -> None:
    os.mkdir("/new/dev")
    for name in names:
        _make_parents(f"/new{name}")
        _write(f"/new{name}", "")
        kernel.mount(f"/old{name}", f"/new{name}", "", kernel.MS_BIND)
    for link, target in (*DEVICE_LINKS, ("shm", scratch)):
        os.symlink(target, f"/new/dev/{link}")


def _make_proc(whole: bool) -> None:
    os.mkdir("/new/proc")
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    if whole:
        kernel.mount("proc", "/new/proc", "proc", flags)
        return
    try:  # without hidepid: the supervisor reads other processes
        kernel.mount("proc", "/new/proc", "proc", flags, "subset=pid")
    except OSError:  # before Linux 5.8
        kernel.mount("proc", "/new/proc", "proc", flags)


def _make_parents(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
