"""When each frame of an episode's video was taken."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

NS = 10**9
READING = 120.0  # seconds in which ffprobe reads a video


class VideoFrames:
    """Of a video and the log of the ffmpeg that wrote it, which says when it began."""

    def __init__(self, path: Path, log: Path, size: tuple[int, int]) -> None:
        self.path, self.size, self._log = path, size, log

    @property
    def start_ns(self) -> int:
        """Of the first frame, in nanoseconds since the epoch."""
        found = re.search(r"Duration: N/A, start: (\d+)\.(\d{6})", self._log.read_text(errors="replace"))
        if found is None:
            raise OSError(f"{self._log.name} does not say when the video began")
        return int(found[1]) * NS + int(found[2]) * 1000

    def read_times(self) -> list[int]:
        """Of all frames, in nanoseconds of the video's own time: never before the frame is shown."""
        program = shutil.which("ffprobe")
        if program is None:
            raise OSError("ffprobe, which comes with ffmpeg, was not found")
        entries = "stream=time_base:packet=pts"
        options = ["-v", "error", "-select_streams", "v:0", "-show_entries", entries, "-of", "json"]
        try:
            done = subprocess.run([program, *options, str(self.path)], capture_output=True, timeout=READING, check=True)
        except subprocess.SubprocessError as error:
            raise OSError(f"ffprobe could not read {self.path.name}: {error}") from error
        told = json.loads(done.stdout)
        unit = Fraction(told["streams"][0]["time_base"]) * NS
        return sorted(math.ceil(packet["pts"] * unit) for packet in told["packets"])
