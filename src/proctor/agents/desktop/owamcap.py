"""An episode as OWAMcap: what happened on its display, and which frame of the video shows what time."""

from __future__ import annotations

import io
import json
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor import __version__
from proctor.agents.desktop.messages import OWAMessage
from proctor.agents.desktop.screen import MediaRef, ScreenCaptured
from proctor.agents.desktop.states import keyboard_state, mouse_state
from proctor.agents.desktop.video_frames import VideoFrames
from proctor.core.extras import import_extra

if TYPE_CHECKING:
    from proctor.agents.desktop.x11 import XDesktop

NAME = "episode.mcap"
EXTRA = "owamcap"
FEATURE = "an episode as OWAMcap"
CHUNK = 64 * 1024  # bytes that are written at once
STATE_INTERVAL = 1.0  # seconds between two messages that tell a state
WINDOW_INTERVAL = 0.1  # seconds between two looks at whether another window is active


def require_mcap() -> Any:
    return import_extra("mcap.writer", FEATURE, EXTRA)


class OWAMcapWriter:
    """Messages by topic, as mcap-owa-support writes and reads them. May be used by several threads."""

    def __init__(self, path: Path) -> None:
        mcap = require_mcap()
        self._file = path.open("wb")
        self._writer = mcap.Writer(self._file, chunk_size=CHUNK)
        self._writer.start(profile="owa", library=f"proctor {__version__}; {mcap.LIBRARY_IDENTIFIER}")
        self._schemas: dict[str, int] = {}
        self._channels: dict[str, int] = {}
        self._lock = threading.Lock()

    def write(self, topic: str, message: OWAMessage, time_ns: int) -> None:
        """At a time in nanoseconds since the epoch."""
        data = io.BytesIO()
        message.serialize(data)
        with self._lock:
            self._writer.add_message(self._channel(topic, message), time_ns, data.getvalue(), time_ns)

    def _channel(self, topic: str, message: OWAMessage) -> int:
        if topic not in self._channels:
            kind = message._type
            if kind not in self._schemas:
                schema = json.dumps(message.get_schema()).encode()
                self._schemas[kind] = self._writer.register_schema(kind, "jsonschema", schema)
            self._channels[topic] = self._writer.register_channel(topic, "json", self._schemas[kind])
        return self._channels[topic]

    def write_metadata(self, name: str, data: dict[str, str]) -> None:
        with self._lock:
            self._writer.add_metadata(name, data)

    def close(self) -> None:
        with self._lock, self._file:
            self._writer.finish()


class EpisodeRecorder:
    """Listens on a display until it is closed, in the process of the referee: a crash of the agent does not end it."""

    def __init__(self, desktop: XDesktop, folder: Path) -> None:
        self._desktop, self._folder = desktop, folder
        self._trouble = ""
        self._over = threading.Event()
        self._writer = OWAMcapWriter(folder / NAME)
        try:
            width, height = desktop.size
            self._writer.write_metadata("display_config", {"resolution": f"{width}x{height}"})
            self._writer.write_metadata("os_version", {"os_version": platform.platform()})
            self._stop = desktop.listen(
                partial(self._tell, "keyboard"), partial(self._tell, "mouse"), partial(self._tell, "mouse/raw")
            )
        except BaseException:
            self._writer.close()
            raise
        self._states = threading.Thread(target=self._tell_states, daemon=True, name="proctor-owamcap")
        self._states.start()

    def _tell(self, topic: str, message: OWAMessage) -> None:
        self._write(topic, message, time.time_ns())

    def _write(self, topic: str, message: OWAMessage, time_ns: int) -> None:
        if not self._trouble:
            try:
                self._writer.write(topic, message, time_ns)
            except OSError as error:
                self._trouble = f"{NAME} breaks off: {error}"

    def _tell_states(self) -> None:
        """At the start, every second and at the end, until the display is gone; the window also when it changes."""
        shown, due = None, time.monotonic()
        with suppress(Exception):
            while True:
                is_over = self._over.wait(WINDOW_INTERVAL)
                window, is_due = self._desktop.active_window(), is_over or time.monotonic() >= due
                if window is not None and (is_due or window != shown):
                    self._tell("window", window)
                shown = window
                if is_due:
                    due += STATE_INTERVAL
                    self._tell("keyboard/state", keyboard_state(self._desktop))
                    self._tell("mouse/state", mouse_state(self._desktop))
                if is_over:
                    return

    def close(self, frames: VideoFrames | None) -> str:
        """With the video, if there is one and it is complete. Gives what went wrong, if anything did."""
        self._over.set()
        self._stop()
        self._states.join()
        try:
            for message, time_ns in self._screens(frames):
                self._write("screen", message, time_ns)
        except OSError as error:
            self._trouble = self._trouble or f"{NAME} has no frames: {error}"
        try:
            self._writer.close()
        except OSError as error:
            self._trouble = self._trouble or f"{NAME} breaks off: {error}"
        return self._trouble

    def _screens(self, frames: VideoFrames | None) -> Iterator[tuple[ScreenCaptured, int]]:
        if frames is None:
            return
        start_ns = frames.start_ns
        for pts_ns in frames.read_times():
            reference = MediaRef(uri=frames.path.name, pts_ns=pts_ns)
            at = start_ns + pts_ns
            yield ScreenCaptured(utc_ns=at, source_shape=frames.size, shape=frames.size, media_ref=reference), at
