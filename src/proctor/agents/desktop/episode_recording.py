"""What is recorded of an episode on a display: a video, and what happened as OWAMcap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from proctor.agents.desktop.owamcap import EpisodeRecorder
from proctor.agents.desktop.video import LOG, NAME, VideoRecorder, even
from proctor.agents.desktop.video_frames import VideoFrames

if TYPE_CHECKING:
    from proctor.agents.desktop.x11 import XDesktop


class EpisodeRecording:
    """Runs until it is closed."""

    def __init__(self, desktop: XDesktop, folder: Path, video: bool, owamcap: bool) -> None:
        size = desktop.size
        self._frames = VideoFrames(folder / NAME, folder / LOG, even(size)) if video else None
        self._film = VideoRecorder(desktop.name, size, folder, desktop.authority) if video else None
        try:
            self._recorder = EpisodeRecorder(desktop, folder) if owamcap else None
        except BaseException:
            if self._film is not None:
                self._film.close()
            raise

    def close(self) -> str:
        """What went wrong with it, if anything did. The video ends first: its frames go into the other file."""
        troubles = [] if self._film is None else [self._film.close()]
        if self._recorder is not None:
            troubles.append(self._recorder.close(self._frames))
        return "; ".join(filter(None, troubles))
