"""EventRecorder, with which agents and evaluators write their inputs and frames into the event log."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.agents.runtime.lags import Lags

RELEASE = "release"
EVALUATOR = "evaluator"  # `by` of events that are not the agent's
EVENTS = "events.jsonl"
KEYS = "keys.txt"  # the held keys that the video shows: ffmpeg reads it for every frame, so it is replaced as a whole


class EventRecorder:
    """Writes into the log of the current episode, if there is one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._file: int | None = None
        self._pressed_keys: list[str] = []
        self._by_agent = True
        self._frame_ns = 0  # when the last frame was taken
        self.reactions = Lags()  # from the last frame to an input
        self.sink: Callable[[dict[str, Any]], None] | None = None  # takes the events where no file can be reached

    def begin(self, folder: str, by_agent: bool = True) -> None:
        """Starts an episode. The video shows the keys of the agent, not those of the evaluator."""
        with self._lock:
            self._close()
            self._by_agent = by_agent
            self.reactions = Lags()
            self._frame_ns = 0
            if folder:
                self._folder = Path(folder)
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC  # others write to it, too: whole lines
                self._file = os.open(self._folder / EVENTS, flags, 0o644)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self._folder, self._pressed_keys = None, None, []

    def input(self, kind: str, what: str = "", **facts: Any) -> None:
        now = time.monotonic_ns()
        if self._frame_ns and kind != RELEASE:
            self.reactions.add(now - self._frame_ns)
            self._frame_ns = 0  # only the first input after a frame is a reaction to it
        self._write({"ns": now, "event": "input", "kind": kind, "what": what, **facts})
        if kind in ("press", "release"):
            self._update_keys(what, kind == "press")

    def frame(self, fingerprint: str) -> None:
        now = self._frame_ns = time.monotonic_ns()
        self._write({"ns": now, "event": "frame", "hash": fingerprint})

    def note(self, event: str, **facts: Any) -> None:
        """Writes any other event."""
        self._write({"ns": time.monotonic_ns(), "event": event} | facts)

    def add(self, event: dict[str, Any]) -> None:
        """Writes the event of a process that cannot reach the log."""
        self._write(event)
        if event.get("kind") in ("press", "release"):
            self._update_keys(str(event.get("what", "")), event["kind"] == "press")

    def _write(self, event: dict[str, Any]) -> None:
        if not self._by_agent:
            event["by"] = EVALUATOR
        if self.sink is not None:
            self.sink(event)
            return
        with self._lock:
            if self._file is not None:
                os.write(self._file, msgspec.json.encode(event) + b"\n")

    def _update_keys(self, what: str, is_pressed: bool) -> None:
        with self._lock:
            if self._folder is None or not self._by_agent:
                return
            self._pressed_keys = [key for key in self._pressed_keys if key != what] + [what] * is_pressed
            fresh = self._folder / f"{KEYS}.{os.getpid()}"
            with suppress(OSError):  # a video without keys is better than a failed agent
                fresh.write_text(" ".join(self._pressed_keys) or " ")
                fresh.replace(self._folder / KEYS)


recording = EventRecorder()
