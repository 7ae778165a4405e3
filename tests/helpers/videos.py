"""Videos, as tests look at them."""

from __future__ import annotations

import subprocess
from pathlib import Path


def frames(video: Path) -> int:
    """How many frames a video has."""
    entries = ["-show_entries", "stream=nb_read_frames", "-of", "csv=p=0", str(video)]
    done = subprocess.run(
        ["ffprobe", "-v", "error", "-count_frames", *entries], capture_output=True, text=True, check=True
    )
    return int(done.stdout)
