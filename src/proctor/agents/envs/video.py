"""Records a video of a logged episode by replaying its actions and rendering each step.

So rendering does not slow down the episode. A replay that differs gives no video.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy

from proctor.agents.envs.event_log import read_events
from proctor.agents.envs.observations import fingerprint
from proctor.agents.envs.referee import ENVIRONMENT, end_env
from proctor.agents.envs.step_play import Environment
from proctor.agents.runtime.hosting.host import Host
from proctor.agents.runtime.hosting.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import RuntimeLimits
from proctor.agents.runtime.shielding import run_to_completion

ROLE = f"{__name__}:HostedVideo"
NAME = "film.mp4"
NO_FFMPEG = "no videos: ffmpeg was not found: apt-get install ffmpeg; or leave them out with --no-film"
FPS = 30.0  # where an environment does not say how many frames it shows in a second
MOST_FRAMES = 20_000
VIDEO_TIMEOUT = 300.0  # seconds for one video
ENDING = 30.0  # seconds in which ffmpeg writes the rest


class VideoError(Exception):
    """Says why there is no video of an episode."""


class Videos:
    """Records one video after the other, in a process that is started for the first."""

    def __init__(self, env: Recipe, log: Path, limits: RuntimeLimits | None = None) -> None:
        self._env, self._log, self._limits = env, log, limits
        self._process: HostProcess | None = None
        self._one_at_a_time = asyncio.Lock()

    async def make(self, log: Path) -> None:
        """Writes the video beside the log. Raises VideoError if it fails."""
        if shutil.which("ffmpeg") is None:
            raise VideoError(NO_FFMPEG)
        async with self._one_at_a_time:
            try:
                async with asyncio.timeout(VIDEO_TIMEOUT):
                    if self._process is None:
                        self._process = await HostProcess.start(ROLE, self._env, self._log, ENVIRONMENT, self._limits)
                    await self._process.call("make", str(log))
            except TimeoutError:
                await self.close()
                raise VideoError(f"no video: it was not made within {VIDEO_TIMEOUT:g} s") from None
            except HostDiedError as error:
                await self.close()
                raise VideoError(f"no video: {error}") from error
            except HostedFaultError as error:
                raise VideoError(f"no video: {error.fault.message}") from error

    async def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await run_to_completion(asyncio.create_task(end_env(process)))


class HostedVideo:
    """Hosts an environment that can be rendered."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        self._wrapped = recipe.build()
        self._env = Environment(self._wrapped)
        self._take = self._env.actions.take
        metadata = getattr(self._wrapped, "metadata", None) or {}
        self._fps = float(metadata.get("render_fps") or FPS)

    def make(self, name: str) -> None:
        log = Path(name)
        played = read_events(log)
        observation, _ = self._wrapped.reset(seed=played.header.seed)
        video = log.with_name(NAME)
        image = self._render()
        ffmpeg = _start_ffmpeg(video, image.shape, self._fps)
        try:
            for number, state in enumerate(played.states[:MOST_FRAMES]):
                if number:
                    observation, *_ = self._wrapped.step(self._take(state.action))
                    image = self._render()
                if fingerprint(observation) != state.frame:
                    raise VideoError(f"played again, the environment did something else in step {number}")
                _write(ffmpeg, image)
            _finish(ffmpeg)
        except BaseException:
            ffmpeg.kill()
            video.unlink(missing_ok=True)
            raise
        finally:
            _close(ffmpeg)

    def close_env(self) -> None:
        self._env.close()

    def _render(self) -> numpy.ndarray[Any, Any]:
        drawn = self._wrapped.render()
        image = numpy.asarray(drawn)
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != numpy.uint8:
            raise VideoError(f"the environment draws no picture: {type(drawn).__name__}")
        return image


def _start_ffmpeg(video: Path, shape: tuple[int, ...], fps: float) -> subprocess.Popen[bytes]:
    height, width = shape[:2]
    command = [
        *("ffmpeg", "-nostdin", "-loglevel", "error", "-y"),
        *("-f", "rawvideo", "-pix_fmt", "rgb24", "-video_size", f"{width}x{height}"),
        *("-framerate", f"{fps:g}", "-i", "-"),
        *("-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"),
        *("-threads", "1", "-movflags", "+faststart", str(video)),
    ]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _write(ffmpeg: subprocess.Popen[bytes], image: numpy.ndarray[Any, Any]) -> None:
    assert ffmpeg.stdin is not None
    try:
        ffmpeg.stdin.write(numpy.ascontiguousarray(image).tobytes())
    except BrokenPipeError:
        _finish(ffmpeg)


def _finish(ffmpeg: subprocess.Popen[bytes]) -> None:
    """Raises the error of ffmpeg, if any."""
    _, errors = ffmpeg.communicate(timeout=ENDING)
    if ffmpeg.returncode:
        raise VideoError(f"ffmpeg: {errors.decode(errors='replace').strip()[-500:]}")


def _close(ffmpeg: subprocess.Popen[bytes]) -> None:
    ffmpeg.wait()
    for pipe in (ffmpeg.stdin, ffmpeg.stderr):
        if pipe is not None:
            pipe.close()
