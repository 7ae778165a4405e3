"""Empties the scratch folder after every program."""

from __future__ import annotations

import os

_MODE = 0o1777


def empty(folder: str, exclude: set[str]) -> None:
    """Removes everything except the names in `exclude`. No program may be running."""
    os.chmod(folder, _MODE)  # a program of the same user owns this folder, too
    os.chdir(folder)
    for name in os.listdir("."):
        if name not in exclude:
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
        except OSError:  # not empty
            _remove_folder(name)


def _remove_folder(name: str) -> None:
    """Removes a tree of any depth: without recursion, long paths or a descriptor per level.

    With Landlock an access costs more the deeper it is, so each folder is accessed twice:
    to list it and to remove it.
    """
    entered: list[str] = []
    left = [[name]]
    while True:
        if left[-1]:
            name = left[-1].pop()
            os.chmod(name, 0o700)
            os.chdir(name)
            entered.append(name)
            left.append(_delete_files())
        elif entered:
            left.pop()
            os.chdir("..")
            os.rmdir(entered.pop())
        else:
            return


def _delete_files() -> list[str]:
    """Deletes the files of the current folder; returns its subfolders."""
    with os.scandir(".") as entries:
        listed = list(entries)
    for entry in listed:
        if not entry.is_dir(follow_symlinks=False):
            os.unlink(entry.name)
    return [entry.name for entry in listed if entry.is_dir(follow_symlinks=False)]
