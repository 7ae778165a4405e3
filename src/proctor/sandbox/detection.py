"""Detects the isolation levels of this machine by running a program at each."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

from msgspec import Struct

from proctor.core.errors import SandboxUnavailableError
from proctor.sandbox.isolation import CONFINED, FULL, IsolationLevel, NamespaceBackend, levels
from proctor.sandbox.pool import Pool
from proctor.sandbox.program import Limits, Program
from proctor.sandbox.worker import WorkerError

_PROBE = Program(source="def double(x):\n    return 2 * x\n", tests="assert double(21) == 42\n", entry_point="double")
_PROBE_LIMITS = Limits(seconds=20.0)


class LevelProbe(Struct, frozen=True):
    level: IsolationLevel
    works: bool
    obstacle: str = ""

    @property
    def cure(self) -> str:
        """What a user can do to get this level."""
        if self.works:
            return ""
        if self.level.namespace_backend is NamespaceBackend.BUBBLEWRAP:
            return "Update bubblewrap, or run without it."
        if self.level.name == FULL:
            return (
                "Install bubblewrap (Debian: apt-get install bubblewrap), or allow user namespaces:"
                " sysctl user.max_user_namespaces=10000, and on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0."
            )
        if self.level.name == CONFINED:
            return "Install Python where every user may read it, or run as an ordinary user."
        return ""


async def probe_levels() -> AsyncIterator[LevelProbe]:
    """Probes every level, strongest first: a level works if a program passes at it."""
    for level in levels():
        yield await _probe(level)


async def best_level(unsafe: bool = False) -> IsolationLevel:
    """The strongest level that works; raises if it is not safe, unless `unsafe`."""
    probes = []
    async for probe in probe_levels():
        probes.append(probe)
        if probe.works and (probe.level.safe or unsafe):
            return probe.level
    raise SandboxUnavailableError(refusal(probes))


async def _probe(level: IsolationLevel) -> LevelProbe:
    try:
        async with Pool(level, workers=1) as pool:
            verdict = await pool.judge(_PROBE, _PROBE_LIMITS)
    except (WorkerError, OSError) as error:
        return LevelProbe(level, False, str(error))
    return LevelProbe(level, verdict.passed, verdict.detail)


def refusal(probes: list[LevelProbe]) -> str:
    """The error message if no safe level works: why, and what to do."""
    if not sys.platform.startswith("linux"):
        return "The sandbox needs Linux. Elsewhere run programs in containers: --sandbox docker (or podman)."
    tried = "; ".join(f"{probe.level.name}: {probe.obstacle}" for probe in probes if not probe.works)
    cure = probes[0].cure if probes else ""
    return (
        f"Programs cannot be isolated on this machine ({tried}). {cure}"
        " Run `proctor doctor` for details. To run programs without isolation, pass --unsafe."
    )
