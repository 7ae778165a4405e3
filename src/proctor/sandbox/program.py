"""What is run and how much it may use."""

from __future__ import annotations

from msgspec import Struct


class Program(Struct, frozen=True, kw_only=True):
    """One untrusted source, with the trusted tests that judge it.

    With ``tests``, which are Python, the source is loaded as a module and the tests are run against it: in a process
    of their own whenever plain data is all that passes between the two, else beside it.
    Without tests the source is a whole program: it passes when it ends with exit status 0. With ``ends_with_tests`` it
    also has to come to its end: one that exits in the middle of its tests, or before them, has not passed them.
    """

    source: str
    language: str = "python"
    tests: str = ""
    entry_point: str = ""
    """What the tests call. Not needed where the tests themselves name what only the source defines."""
    prelude: str = ""
    """Trusted code that the tests may use, such as the prompt with its helper functions."""
    stdin: str = ""
    beside: bool = False
    """The tests run in the source's own process in any case: that is where they execute what they test."""
    ends_with_tests: bool = False
    """The source brings its tests along, as its last part."""
    control: str = ""
    """The source with tests that expect what is wrong: if this passes too, nothing was judged, and the source fails."""
    reference_control: str = ""
    """The reference with those tests: if this passes as well, they expect nothing wrong, and the source has passed."""


class Limits(Struct, frozen=True, kw_only=True):
    """What one program may use before it is stopped."""

    seconds: float = 3.0
    """Of its own time: the wall clock without the waiting for a processor, so that a busy machine changes nothing."""
    wall_seconds: float | None = None
    """Of the wall clock, for a machine too busy to finish anything. Default: ten times `seconds`, at least 60."""
    memory_mib: int = 1024
    output_kib: int = 1024
    """On stdout, and the same on stderr."""
    disk_mib: int = 256
    processes: int = 64

    @property
    def ceiling(self) -> float:
        return max(60.0, 10 * self.seconds) if self.wall_seconds is None else self.wall_seconds
