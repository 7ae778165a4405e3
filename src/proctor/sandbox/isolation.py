"""The levels of isolation, strongest first, and which of them this machine offers."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum

from msgspec import Struct

from proctor.sandbox.inside import landlock, seccomp


class NamespaceBackend(StrEnum):
    """Who builds the room around the warden."""

    BUBBLEWRAP = "bubblewrap"
    KERNEL = "kernel"
    NONE = "none"


class IsolationLevel(Struct, frozen=True):
    name: str
    namespace_backend: NamespaceBackend
    seccomp: bool
    landlock: int
    """The version of it, 0 where it is not used."""

    @property
    def namespaces(self) -> bool:
        return self.namespace_backend is not NamespaceBackend.NONE

    @property
    def safe(self) -> bool:
        """Whether programs that nobody has read may run here without being asked for in so many words."""
        return self.seccomp and (self.namespaces or self.landlock > 0)

    def __str__(self) -> str:
        """What holds a program at this level; stored with every run."""
        parts = []
        if self.namespaces:
            parts.append(
                "namespaces by bubblewrap" if self.namespace_backend is NamespaceBackend.BUBBLEWRAP else "namespaces"
            )
            parts.append("own user" if os.getuid() == 0 else "own user namespace")
        parts += ["seccomp"] if self.seccomp else []
        parts += [f"Landlock {self.landlock}"] if self.landlock else []
        return f"{self.name}: {', '.join([*parts, 'limits'])}"


FULL, CONFINED, LIMITS = "full", "confined", "limits"


def levels() -> list[IsolationLevel]:
    """What a Linux machine might offer, strongest first; whether this one does is found out by trying."""
    if sys.platform != "linux":
        return []
    filtered = seccomp.SUPPORTED
    locked = landlock.version()
    found = [IsolationLevel(FULL, NamespaceBackend.KERNEL, filtered, locked)]
    if shutil.which("bwrap"):
        found.insert(0, IsolationLevel(FULL, NamespaceBackend.BUBBLEWRAP, filtered, locked))
    if locked and filtered:
        found.append(IsolationLevel(CONFINED, NamespaceBackend.NONE, filtered, locked))
    return [*found, IsolationLevel(LIMITS, NamespaceBackend.NONE, seccomp=False, landlock=0)]
