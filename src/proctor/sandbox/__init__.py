"""Runs untrusted programs: contained, judged, fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.core.lazy import lazy_exports

if TYPE_CHECKING:
    from proctor.sandbox.containers import ContainerPool
    from proctor.sandbox.detection import best_level
    from proctor.sandbox.pool import Pool
    from proctor.sandbox.program import Limits, Program
    from proctor.sandbox.running import open_sandbox, run
    from proctor.sandbox.sandbox import Sandbox
    from proctor.sandbox.verdict import Mode, Outcome, Verdict

__all__ = [
    "ContainerPool",
    "Limits",
    "Mode",
    "Outcome",
    "Pool",
    "Program",
    "Sandbox",
    "Verdict",
    "best_level",
    "open_sandbox",
    "run",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ContainerPool": "containers",
        "Limits": "program",
        "Outcome": "verdict",
        "Pool": "pool",
        "Program": "program",
        "Sandbox": "sandbox",
        "Mode": "verdict",
        "Verdict": "verdict",
        "best_level": "detection",
        "open_sandbox": "running",
        "run": "running",
    },
)
