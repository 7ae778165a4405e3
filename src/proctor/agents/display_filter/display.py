"""FilteredDisplay, the socket of a display through which an isolated agent can see and press."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from proctor.agents.desktop.interface import DesktopError
from proctor.agents.display_filter.relay import MOST_CONNECTIONS, SOCKET
from proctor.agents.runtime.hosting.guarded import Guarded

STARTING = 60.0  # seconds, on a busy machine
_MODULE = "proctor.agents.display_filter.relay"


class FilteredDisplay:
    """Started by its constructor; the filter is a process that dies with this one."""

    def __init__(self, display: str, log: Path, environment: Mapping[str, str] | None = None) -> None:
        """For a display of this machine, named :N. The environment says where its cookie is."""
        self.name = display
        self._number = display.lstrip(":").partition(".")[0]
        if not display.startswith(":") or not self._number.isdigit():
            raise DesktopError(f"{display} is not a display of this machine")
        self._folder = tempfile.TemporaryDirectory(prefix="proctor-x-")
        self.socket = Path(self._folder.name) / "socket"
        self._notes = Path(self._folder.name) / "refused"
        self._notes.touch(mode=0o600)
        self._read = 0
        try:
            self._guarded = self._start(log, environment)
        except BaseException:
            self._folder.cleanup()
            raise

    def _start(self, log: Path, environment: Mapping[str, str] | None) -> Guarded:
        told, telling = os.pipe()
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.socket))
            listening.listen(2 * MOST_CONNECTIONS)
            self.socket.chmod(0o666)  # the agent may be another user; the folder around it is ours alone
            handed = (listening.fileno(), telling)
            command = [
                sys.executable, "-m", _MODULE, str(handed[0]), self._number, str(self._notes), str(telling)
            ]  # fmt: skip
            try:
                guarded = Guarded(command, handed, log, environment)
            finally:
                os.close(telling)
        watchdog = threading.Timer(STARTING, guarded.control.close)
        watchdog.start()
        try:
            with open(told, "rb") as file:
                ready = file.read()
        finally:
            watchdog.cancel()
            watchdog.join()
        if ready != b"ready":
            guarded.end()
            raise DesktopError(f"the display {self.name} could not be handed to the agent: see {log}")
        return guarded

    @property
    def inside(self) -> str:
        """The path of the socket in a sandbox, where the display has the same name."""
        return SOCKET.format(self._number)

    @property
    def is_alive(self) -> bool:
        return self._guarded.is_alive

    def refused(self) -> str:
        """The requests that were refused since the last call; empty if none."""
        with self._notes.open("rb") as file:
            file.seek(self._read)
            lines = file.read().decode(errors="replace").splitlines()
            self._read = file.tell()
        found = Counter(lines)
        return ", ".join(f"{name} {n}" for name, n in sorted(found.items()))

    def close(self) -> None:
        self._guarded.end()
        self._folder.cleanup()
