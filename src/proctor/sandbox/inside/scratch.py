"""The working folder, made as new after every program."""

from __future__ import annotations

import os

_MODE = 0o1777


def empty(place: str, kept: set[str]) -> None:
    """Removes whatever programs left, but for the names kept. No process that could interfere is alive any more."""
    os.chmod(place, _MODE)  # where all are one user, a program owns this folder too
    os.chdir(place)
    for name in os.listdir("."):
        if name not in kept:
            _remove(name)
    for attribute in os.listxattr("."):
        if attribute.startswith(("system.posix_acl_", "user.")):
            os.removexattr(".", attribute)


def _remove(name: str) -> None:
    try:
        os.unlink(name)
    except (IsADirectoryError, PermissionError):
        try:
            os.rmdir(name)
        except OSError:  # there is something in it
            _remove_folder(name)


def _remove_folder(name: str) -> None:
    """However deep it is: without recursion, and without a path or a descriptor for every level.

    Landlock makes each access dearer the deeper it is, so there are few: one to list a folder, one to remove it.
    """
    entered: list[str] = []
    left = [[name]]
    while True:
        if left[-1]:
            name = left[-1].pop()
            os.chmod(name, 0o700)
            os.chdir(name)
            entered.append(name)
            left.append(_folders_left())
        elif entered:
            left.pop()
            os.chdir("..")
            os.rmdir(entered.pop())
        else:
            return


def _folders_left() -> list[str]:
    """Those in the current folder, of which nothing else is left."""
    with os.scandir(".") as entries:
        found = list(entries)
    for entry in found:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name)
    return [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
