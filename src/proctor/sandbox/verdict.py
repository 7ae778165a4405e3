"""How a program fared."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    OUTPUT = "output"
    CRASHED = "crashed"
    EXITED = "exited early"
    ERROR = "sandbox error"
    """Says nothing about the program: the sandbox or the toolchain failed."""


class Mode(StrEnum):
    """Where the tests ran, which says what a pass is worth."""

    SPLIT = "split"
    """In a process apart from the program; only plain data passed between them. A pass cannot be faked."""
    IN_PROCESS = "in-process"
    """In the program's own process, because the tests need more than calls. A hostile program could fake a pass."""
    NONE = "exit status"
    """The program was run as it is; its exit status decided."""


class Verdict(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    detail: str = ""
    """Why: the assertion and the end of the traceback, the signal, the limit that was hit."""
    testing: Mode = Mode.NONE
    level: str = ""
    """The sandbox's level, see `proctor.sandbox.isolation`."""
    stdout: str = ""
    stderr: str = ""
    """What the program wrote, up to the limit."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    memory_mib: float = 0.0
    """The largest resident size of its largest process."""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED
