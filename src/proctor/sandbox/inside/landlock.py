"""Landlock: rules on files, ports and signals that a process imposes on itself for good."""

from __future__ import annotations

import ctypes
import os
import struct

from proctor.sandbox.inside import kernel

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_BENEATH = 1

_LIST = 1 << 3
_READ = 1 << 0 | 1 << 2 | _LIST  # execute, read a file, read a folder
_EVERYTHING = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}  # by version; ioctl from 5 on
_ON_FILES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # rights that apply to files
_TCP = 1 << 0 | 1 << 1  # bind, connect
_SCOPES = 1 << 0 | 1 << 1  # abstract sockets, signals

LENGTHS_SINCE = 3
SIGNALS_SINCE = 6


def version() -> int:
    """The ABI version; 0 if the kernel has no Landlock."""
    try:
        return kernel.system_call("landlock", _CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def confine(
    readable: list[str], listable: list[str], writable: list[str], devices: list[str], *, network: bool = False
) -> None:
    """Denies this process and its children other files, TCP, and signals to others.

    Python lists a `listable` folder to find modules in it that are readable.
    """
    abi = version()
    everything = _EVERYTHING.get(abi, (1 << 16) - 1)
    ports = _TCP if abi >= 4 and not network else 0
    attributes = struct.pack("QQQ", everything, ports, _SCOPES if abi >= SIGNALS_SINCE else 0)
    rules = _create(attributes[: 8 if abi < 4 else 16 if abi < SIGNALS_SINCE else 24])
    try:
        for paths, rights in (
            (readable, _READ),
            (listable, _LIST),
            (writable, everything),
            (devices, everything & _ON_FILES),
        ):
            for path in paths:
                _allow(rules, path, rights & everything)
        kernel.system_call("landlock", _RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)


def scope_signals() -> None:
    """Restricts signals to this process and its children."""
    rules = _create(struct.pack("QQQ", 0, 0, _SCOPES))
    try:
        kernel.system_call("landlock", _RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)


def _create(attributes: bytes) -> int:
    return kernel.system_call("landlock", _CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))


def _allow(rules: int, path: str, rights: int) -> None:
    if not os.path.exists(path):
        return
    if not os.path.isdir(path):
        rights &= _ON_FILES
    if not rights:
        return
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = struct.pack("=Qi", rights, descriptor)
        kernel.system_call("landlock", _ADD, ctypes.c_int(rules), ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)
