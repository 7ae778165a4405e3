"""Writes the events that an isolated agent reports into its event log. The reports are untrusted."""

from __future__ import annotations

import time
from typing import Any

from proctor.agents.runtime.recording import EventRecorder

MOST_BYTES = 64 * 1024 * 1024  # of one episode
MOST_FACTS = 16  # of an event
LONGEST_TEXT = 10_000
KINDS = {"input": "kind", "frame": "hash"}  # event -> its required field


class ReportedEvents:
    def __init__(self) -> None:
        self._recording = EventRecorder()
        self._left = self._begun_ns = 0
        self.dropped = 0  # events that were invalid, or too many

    def begin(self, folder: str) -> None:
        """Opens the log of another episode; none without a folder."""
        self._recording.begin(folder)
        self._left, self.dropped = MOST_BYTES if folder else 0, 0
        self._begun_ns = time.monotonic_ns()

    def take(self, message: dict[Any, Any]) -> None:
        size = _size(message)
        if size and size <= self._left:
            self._left -= size
            ns = min(max(message["ns"], self._begun_ns), time.monotonic_ns())
            message = {key: value for key, value in message.items() if key != "by"}  # only the evaluator sets it
            self._recording.add({**message, "ns": ns})
        else:
            self.dropped += 1


def _size(message: dict[Any, Any]) -> int:
    """The approximate length of its line; 0 if it is not a valid event."""
    event = message.get("event")
    said = KINDS.get(event) if isinstance(event, str) else None
    if said is None or not isinstance(message.get(said), str) or type(message.get("ns")) is not int:
        return 0
    if len(message) > MOST_FACTS:
        return 0
    size = 0
    for key, value in message.items():
        if not isinstance(key, str) or not isinstance(value, str | int | float | bool | None):
            return 0
        size += len(key) + (len(value) if isinstance(value, str) else 20)
    return size if size <= LONGEST_TEXT else 0
