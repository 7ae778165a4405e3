"""Which level this machine offers, found out by running a program on each."""

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
    """Every level that might be had here, strongest first. A level is there when a program passes on it."""
    for level in levels():
        yield await _probe(level)


async def best_level(unsafe: bool = False) -> IsolationLevel:
    """The strongest level that works; raises where that is below the floor and not asked for in so many words."""
    findings = []
    async for finding in probe_levels():
        findings.append(finding)
        if finding.works and (finding.level.safe or unsafe):
            return finding.level
    raise SandboxUnavailableError(refusal(findings))


async def _probe(level: IsolationLevel) -> LevelProbe:
    try:
        async with Pool(level, workers=1) as pool:
            verdict = await pool.judge(_PROBE, _PROBE_LIMITS)
    except (WorkerError, OSError) as error:
        return LevelProbe(level, False, str(error))
    return LevelProbe(level, verdict.passed, verdict.detail)


def refusal(findings: list[LevelProbe]) -> str:
    """Why nothing can be contained here, and what to do about it."""
    if not sys.platform.startswith("linux"):
        return "The sandbox needs Linux. Elsewhere run programs in containers: --sandbox docker (or podman)."
    tried = "; ".join(f"{finding.level.name}: {finding.obstacle}" for finding in findings if not finding.works)
    cure = findings[0].cure if findings else ""
    return (
        f"Programs cannot be contained on this machine ({tried}). {cure}"
        " `proctor doctor` says more. To run them without protection, say --unsafe."
    )
