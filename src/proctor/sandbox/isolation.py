"""The isolation levels, strongest first, that this kernel may support."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum

from msgspec import Struct

from proctor.sandbox.inside import landlock, seccomp


class NamespaceBackend(StrEnum):
    """What creates the namespaces and mounts of a supervisor."""

    BUBBLEWRAP = "bubblewrap"
    KERNEL = "kernel"
    NONE = "none"


class IsolationLevel(Struct, frozen=True):
    name: str
    namespace_backend: NamespaceBackend
    seccomp: bool
    landlock: int
    """Its ABI version; 0 if it is not used."""

    @property
    def namespaces(self) -> bool:
        return self.namespace_backend is not NamespaceBackend.NONE

    @property
    def safe(self) -> bool:
        """Whether untrusted programs may run here without `unsafe`."""
        return self.seccomp and (self.namespaces or self.landlock > 0)

    def __str__(self) -> str:
        """Describes the isolation; stored with every run."""
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
    """The levels of a Linux machine, strongest first; a probe shows which ones work."""
    if sys.platform != "linux":
        return []
    filtered = seccomp.SUPPORTED
    locked = landlock.version()
    candidates = [IsolationLevel(FULL, NamespaceBackend.KERNEL, filtered, locked)]
    if shutil.which("bwrap"):
        candidates.insert(0, IsolationLevel(FULL, NamespaceBackend.BUBBLEWRAP, filtered, locked))
    if locked and filtered:
        candidates.append(IsolationLevel(CONFINED, NamespaceBackend.NONE, filtered, locked))
    return [*candidates, IsolationLevel(LIMITS, NamespaceBackend.NONE, seccomp=False, landlock=0)]
