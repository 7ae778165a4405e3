"""A video of a display: with the pointer, and with the keys that are held written on it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from proctor.agents.desktop.authority import VARIABLE
from proctor.agents.desktop.interface import DesktopError
from proctor.agents.runtime.hosting.guarded import Guarded
from proctor.agents.runtime.recording import KEYS

FPS = 30
NAME = "film.mp4"
LOG = "film.log"
STARTING = 30.0  # seconds in which ffmpeg writes its first bytes, on a busy machine
ENDING = 30.0  # seconds in which it writes the rest
LOOK_AGAIN = 0.01


def even(size: tuple[int, int]) -> tuple[int, int]:
    """The format has no odd sides."""
    return size[0] - size[0] % 2, size[1] - size[1] % 2


class VideoRecorder:
    """One film. A film that breaks off can be played as far as it goes."""

    def __init__(self, display: str, size: tuple[int, int], folder: Path, authority: Path | None = None) -> None:
        program = shutil.which("ffmpeg")
        if program is None:
            raise DesktopError("a film needs ffmpeg: apt-get install ffmpeg; or leave it out with --no-film")
        (folder / NAME).unlink(missing_ok=True)  # of an attempt that was cut short
        (folder / KEYS).write_text(" ")  # ffmpeg wants a file with something in it
        width, height = even(size)
        style = "x=8:y=h-th-8:fontsize=18:fontcolor=white:box=1:boxcolor=black@0.5"
        command = [
            *(program, "-nostdin", "-hide_banner", "-nostats", "-y"),
            *("-f", "x11grab", "-draw_mouse", "1", "-framerate", str(FPS)),
            *("-video_size", f"{width}x{height}", "-i", display),
            *("-vf", f"drawtext=textfile={KEYS}:reload=1:{style}", "-c:v", "libx264", "-preset", "ultrafast"),
            *("-pix_fmt", "yuv420p", "-threads", "1", "-g", str(FPS)),
            *("-movflags", "+frag_keyframe+empty_moov", NAME),
        ]
        environment = {VARIABLE: str(authority)} if authority else None
        # Guarded, as it does not notice the end of a display; there, as names in its filters must not contain any of
        # its many signs.
        self._ffmpeg = Guarded(command, (), folder / LOG, environment, folder=folder)
        self._has_begun = self._wait_for_start(folder / NAME)

    def _wait_for_start(self, file: Path) -> bool:
        """An episode that begins before ffmpeg records is not in the video, and a short one leaves no video at all."""
        deadline = time.monotonic() + STARTING
        while self._ffmpeg.is_alive and time.monotonic() < deadline:
            if file.exists() and file.stat().st_size:
                return True
            time.sleep(LOOK_AGAIN)
        return False

    def close(self) -> str:
        """What went wrong with it, if anything did."""
        if not self._ffmpeg.is_alive:
            self._ffmpeg.end()
            return "the film broke off: ffmpeg ended before the episode"
        in_order = self._ffmpeg.end(ENDING)
        if not self._has_begun:
            return f"the video lacks its beginning: ffmpeg wrote nothing in the first {STARTING:g} s"
        return "" if in_order else "the film lacks its end: ffmpeg did not come to it"
