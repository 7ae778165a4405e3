"""F10 ends what is under way on a display, whoever presses it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from proctor.agents.desktop.interface import answers
from proctor.agents.desktop.messages import KeyboardEvent
from proctor.agents.desktop.vk import VK
from proctor.agents.desktop.x11 import XDesktop


class StopKey:
    """Listens on a display until it is closed; tells, from a thread of its own, whoever wants to know at that time."""

    def __init__(self, display: str, authority: Path | None = None) -> None:
        self.pressed: Callable[[], object] = lambda: None
        self.desktop = XDesktop(display, authority)
        self._listens = True
        self._stop = self.desktop.listen(self._heard, lambda event: None, ended=self._end)

    def is_listening(self) -> bool:
        """Whether both its connections are there: an agent may have ended them."""
        return self._listens and answers(self.desktop)

    def _end(self) -> None:
        self._listens = False

    def _heard(self, event: KeyboardEvent) -> None:
        if event.vk == VK.F10 and event.event_type == "press":
            self.pressed()

    def close(self) -> None:
        self._stop()
        self.desktop.close()
