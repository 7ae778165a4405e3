"""Verdicts on programs."""

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
    """The sandbox or the toolchain failed; says nothing about the program."""


class Mode(StrEnum):
    """Where the tests ran, which says whether a pass can be faked."""

    SPLIT = "split"
    """In the test runner; only plain data passed to and from the program. A pass cannot be faked."""
    IN_PROCESS = "in-process"
    """In the program's process, because the tests need more than calls. A pass can be faked."""
    NONE = "exit status"
    """The exit status of the program decided."""


class Verdict(Struct, frozen=True, kw_only=True):
    outcome: Outcome
    detail: str = ""
    """Why: the assertion and the end of the traceback, the signal, the limit that was hit."""
    testing: Mode = Mode.NONE
    level: str = ""
    """The isolation level, see `proctor.sandbox.isolation`."""
    stdout: str = ""
    stderr: str = ""
    """The output of the program, up to the limit."""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    memory_mib: float = 0.0
    """The peak resident size of its largest process."""

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.PASSED
