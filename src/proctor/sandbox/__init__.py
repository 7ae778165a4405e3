"""Runs untrusted programs: contained, judged, fast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

_HOMES = {
    "ContainerPool": "containers",
    "Limits": "program",
    "Outcome": "verdict",
    "Pool": "pool",
    "Program": "program",
    "Sandbox": "sandbox",
    "Mode": "verdict",
    "Verdict": "verdict",
    "best_level": "survey",
    "open_sandbox": "running",
    "run": "running",
}


def __getattr__(name: str) -> Any:
    # Loaded on first use: the warden imports this package too, and has to stay small.
    if name not in _HOMES:
        raise AttributeError(f"module 'proctor.sandbox' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"proctor.sandbox.{_HOMES[name]}"), name)
