"""Programs and their limits."""

from __future__ import annotations

from msgspec import Struct


class Program(Struct, frozen=True, kw_only=True):
    """One untrusted source, with the trusted tests that judge it.

    With ``tests``, in Python, the source is loaded as a module and the tests call it: from
    the test runner if only plain data passes between the two, else in-process.
    Without tests the source is a script: it passes if it exits with status 0. With
    ``ends_with_tests`` it must also reach its end: an exit before or within its tests fails.
    """

    source: str
    language: str = "python"
    tests: str = ""
    entry_point: str = ""
    """What the tests call. Only needed if it has the name of a built-in."""
    prelude: str = ""
    """Trusted code for the tests, such as the prompt with its helper functions."""
    stdin: str = ""
    beside: bool = False
    """Runs the tests in-process in any case, because they execute the source themselves."""
    ends_with_tests: bool = False
    """The source ends with its own tests."""
    control: str = ""
    """The source with tests that expect wrong answers: the source fails if this passes."""
    reference_control: str = ""
    """The reference with the same tests: if it passes, too, ``control`` is ignored."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one program."""

    seconds: float = 3.0
    """Its own time: wall time without waiting for a CPU, so that load does not matter."""
    wall_seconds: float | None = None
    """Wall time, a ceiling on busy machines. Default: ten times `seconds`, at least 60."""
    memory_mib: int = 1024
    output_kib: int = 1024
    """For stdout and stderr each."""
    disk_mib: int = 256
    processes: int = 64

    @property
    def ceiling(self) -> float:
        return max(60.0, 10 * self.seconds) if self.wall_seconds is None else self.wall_seconds
