"""What an agent or an evaluator does to its environment, written down as it happens, from whatever process it is in."""

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
EVALUATOR = "evaluator"  # who has pressed or looked, where that was not the player
EVENTS = "events.jsonl"
KEYS = "keys.txt"  # what is written on a film, the keys that are held: replaced as a whole, it is read for every frame


class EventRecorder:
    """Lines of the log of the episode that is under way; none while there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._file: int | None = None
        self._pressed_keys: list[str] = []
        self._by_agent = True
        self._frame_ns = 0  # when the last picture was taken
        self.reactions = Lags()  # from the last picture to an input
        self.sink: Callable[[dict[str, Any]], None] | None = None  # takes the events where no file can be reached

    def begin(self, folder: str, by_agent: bool = True) -> None:
        """Whoever is no player writes to the log alone: what stands on the film is what the player holds."""
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
            self._frame_ns = 0  # what is pressed after that is no reaction to it, but to what was pressed before
        self._write({"ns": now, "event": "input", "kind": kind, "what": what, **facts})
        if kind in ("press", "release"):
            self._update_keys(what, kind == "press")

    def frame(self, fingerprint: str) -> None:
        now = self._frame_ns = time.monotonic_ns()
        self._write({"ns": now, "event": "frame", "hash": fingerprint})

    def note(self, event: str, **facts: Any) -> None:
        """What else there is to say about the episode."""
        self._write({"ns": time.monotonic_ns(), "event": event} | facts)

    def add(self, event: dict[str, Any]) -> None:
        """An event of somebody who cannot write it down."""
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
            with suppress(OSError):  # a film without its keys is better than an agent that is stopped for them
                fresh.write_text(" ".join(self._pressed_keys) or " ")
                fresh.replace(self._folder / KEYS)


recording = EventRecorder()
