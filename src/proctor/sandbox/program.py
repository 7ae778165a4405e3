"""What is run and how much it may use."""

from __future__ import annotations

from msgspec import Struct


class Program(Struct, frozen=True, kw_only=True):
    """One untrusted source, with the trusted tests that judge it.

    With ``tests`` in Python the source is loaded as a module and the tests are run against it: in a process of their
    own whenever they call it by name (``entry_point``, or any name that only the source defines), else beside it.
    Without tests the source is a whole program: it passes when it ends with exit status 0.
    """

    source: str
    language: str = "python"
    tests: str = ""
    entry_point: str = ""
    prelude: str = ""
    """Trusted code that the tests may use, such as the prompt with its helper functions."""
    stdin: str = ""


class Limits(Struct, frozen=True, kw_only=True):
    """What one program may use before it is stopped."""

    seconds: float = 3.0
    """Of its own time: the wall clock without the waiting for a processor, so that a busy machine changes nothing."""
    wall_seconds: float = 60.0
    """Of the wall clock: the ceiling, for machines that are too busy to finish anything."""
    memory_mib: int = 1024
    output_kib: int = 1024
    disk_mib: int = 256
    processes: int = 64
