"""Programs under a guardian: they end with all that they started when they are told to, or when we are dead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from proctor.agents.hosting import guardian


class Guarded:
    """A running program. Its `control` is the line to the guardian; closed, it is the end."""

    def __init__(
        self, command: list[str], handed: tuple[int, ...], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.control, theirs = socket.socketpair()
        with theirs:
            files = ",".join(map(str, handed))
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-S", guardian.__file__, str(theirs.fileno()), str(log), files, *command],
                pass_fds=(theirs.fileno(), *handed),
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
            )

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def end(self, grace: float = 0.0) -> None:
        """With a grace, the program is asked first: seconds in which it may put its things in order."""
        if grace and self.is_alive:
            with suppress(OSError, subprocess.TimeoutExpired):
                self.control.send(guardian.TERMINATE)
                self.process.wait(grace)
        self.control.close()
        self.process.wait()
