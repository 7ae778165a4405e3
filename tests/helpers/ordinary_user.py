"""Runs a command as an ordinary user in a PID namespace of its own: python -m helpers.ordinary_user COMMAND…

For root only. Folders that other users cannot enter but the command needs (this Python, this checkout) are made
visible to it in a mount namespace that nobody else sees.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from helpers.paths import CHECKOUT
from proctor.sandbox.inside import kernel

USER = 61_234


def main(command: list[str]) -> None:
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWPID)
    if child := os.fork():
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    kernel.die_with_parent()
    kernel.mount("none", "/", "", kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", "proc", 0)
    open_folders([Path(sys.prefix), Path(sys.base_prefix), CHECKOUT])
    os.setgroups([])
    os.setresgid(USER, USER, USER)
    os.setresuid(USER, USER, USER)
    os.environ["HOME"] = "/tmp"
    os.execv(command[0], command)


def open_folders(needed: list[Path]) -> None:
    closed = {top for folder in needed if (top := _first_closed(folder))}
    kept = {folder: os.open(folder, os.O_PATH) for folder in needed if _first_closed(folder)}
    for top in closed:
        kernel.mount("tmpfs", str(top), "tmpfs", 0, "mode=755")
    for folder, descriptor in kept.items():
        folder.mkdir(parents=True, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{descriptor}", str(folder), "", kernel.MS_BIND | kernel.MS_REC)


def _first_closed(folder: Path) -> Path | None:
    return next((place for place in reversed([folder, *folder.parents]) if not place.stat().st_mode & 0o001), None)


if __name__ == "__main__":
    main(sys.argv[1:])
