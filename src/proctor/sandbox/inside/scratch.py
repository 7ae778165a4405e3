"""The working folder, made as new after every program."""

from __future__ import annotations

import os

_MODE = 0o1777
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def empty(place: str, kept: set[str]) -> None:
    """Removes whatever programs left, but for the names kept. No process that could interfere is alive any more."""
    os.chmod(place, _MODE)  # where all are one user, a program owns this folder too
    folder = os.open(place, _FOLDER)
    try:
        for name in os.listdir(folder):
            if name not in kept and not _remove(name, folder):
                _remove_folder(name, folder)
        for attribute in os.listxattr(folder):
            if attribute.startswith(("system.posix_acl_", "user.")):
                os.removexattr(folder, attribute)
    finally:
        os.close(folder)


def _remove(name: str, folder: int) -> bool:
    """False for a folder that is not empty."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError:
            return False
    return True


def _remove_folder(name: str, parent: int) -> None:
    """However deep it is: without recursion, and with one folder open at a time."""
    here = os.dup(parent)
    entered: list[str] = []
    left = [[name]]
    while left:
        if left[-1]:
            name = left[-1].pop()
            if not _remove(name, here):
                os.chmod(name, 0o700, dir_fd=here)
                here = _move(here, name)
                entered.append(name)
                left.append(os.listdir(here))
        else:
            left.pop()
            if entered:
                here = _move(here, "..")
                os.rmdir(entered.pop(), dir_fd=here)
    os.close(here)


def _move(here: int, name: str) -> int:
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there
