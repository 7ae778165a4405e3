"""A model that sees as an agent: shown the window, it answers which keys to press."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.agents.clock import Clock
from proctor.agents.outcome import EnvironmentCrashedError, Outcome
from proctor.agents.player import PlayerError
from proctor.agents.protocol import Ending, Task
from proctor.agents.recording import Recording
from proctor.errors import ProctorError
from proctor.models.model import Model, Request, Sampling
from proctor.types import Image, Message, Sample, Text, Usage

if TYPE_CHECKING:
    from proctor.agents.desktop.x11 import XDesktop

INSTRUCTION = """\
You play the game in the window that is shown. {description}
Answer with the keys to press next, separated by spaces, and nothing else; NONE for no key.
Keys: LEFT RIGHT UP DOWN SPACE RETURN ESCAPE, letters, digits. A key is held for {hold:g} s; RIGHT:0.5 for 0.5 s."""
HOLD = 0.1  # seconds
SHORTEST_HOLD, LONGEST_HOLD = 0.01, 5.0
MOST_KEYS = 16
_STROKE = re.compile(r"\b([A-Z][A-Z0-9_]*|[A-Z0-9])(?::([0-9]*\.?[0-9]+))?\b")


class VisionPlayer:
    """Lives in this process, which has nothing to lose by it: the model is elsewhere, and each wait can be ended."""

    folder: Path | None = None
    clock = Clock()  # of the episode that is under way: while the model thinks, the world is to wait if it can

    def __init__(self, model: Model, sampling: Sampling, display: str) -> None:
        self._model, self._sampling, self._display_name = model, sampling, display
        self._desktop: XDesktop | None = None
        self._playing: asyncio.Task[Ending] | None = None
        self._recording = Recording()
        self._actions = self._answers = 0
        self.ended_at: float | None = None
        self.has_acted = False  # it has pressed a key in the episode that is under way
        self.sample: Sample  # the episode that is under way
        self.usage = Usage()
        self.unreadable = 0

    async def prepare(self) -> None:
        from proctor.agents.desktop.interface import DesktopError
        from proctor.agents.desktop.x11 import XDesktop

        try:
            self._desktop = self._desktop or XDesktop(self._display_name)
        except DesktopError as error:
            raise PlayerError(str(error)) from error

    async def start(self, task: Task) -> None:
        await self.prepare()
        self._recording.begin(str(self.folder or ""))
        self._actions, self._answers, self.unreadable, self.usage = 0, 0, 0, Usage()
        self.has_acted = False
        self._playing = asyncio.create_task(self._play(task))

    async def _play(self, task: Task) -> Ending:
        try:
            while True:
                await self.clock.pause()
                picture = await asyncio.to_thread(self._picture, task.window_name)
                strokes = await self._answer(task, picture)
                await self.clock.resume()
                for key, seconds in strokes:
                    await self._stroke(key, seconds)
                if not strokes and self.clock.can_pause:
                    await asyncio.sleep(HOLD)  # else no time would ever pass
                self._actions += 1
        except EnvironmentCrashedError as error:
            return Ending(outcome=Outcome.ENV_CRASH, error=str(error), actions=self._actions)
        except ProctorError:
            raise  # concerns the whole run: the server refuses the key
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return Ending(outcome=Outcome.AGENT_CRASH, error=said, actions=self._actions)

    def _picture(self, window_name: str) -> bytes:
        from proctor.agents.desktop.interface import make_active, window_titled
        from proctor.agents.desktop.names import fingerprint, png

        assert self._desktop is not None
        make_active(self._desktop, window_name)
        frame = self._desktop.capture(window_titled(self._desktop, window_name))
        self._recording.frame(fingerprint(frame))
        return png(frame[:, :, 2::-1])

    async def _answer(self, task: Task, picture: bytes) -> list[tuple[int, float]]:
        words = INSTRUCTION.format(description=task.task_description, hold=HOLD)
        prompt = (Message("user", (Text(words), Image(picture))),)
        output = await self._model.generate(Request(prompt, self._sampling, self._actions, self.sample))
        self._answers += 1
        self.usage += output.usage
        strokes = parse_strokes(output.text)
        self.unreadable += strokes is None
        return strokes or []

    async def _stroke(self, key: int, seconds: float) -> None:
        from proctor.agents.desktop.vk import VK

        assert self._desktop is not None
        self.has_acted = True
        self._desktop.key(key, True)
        self._recording.input("press", VK(key).name)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._desktop.key(key, False)
            self._recording.input("release", VK(key).name)

    async def ending(self) -> Ending:
        assert self._playing is not None
        return await asyncio.shield(self._playing)

    async def stop(self) -> Ending:
        assert self._playing is not None
        if not self._playing.done():
            self._playing.cancel()
            with suppress(asyncio.CancelledError):
                await self._playing
            if not self._answers:  # its server may be broken: that nothing was pressed is no play
                return Ending(outcome=Outcome.AGENT_HANG, error="the model had not answered even once")
            return Ending(actions=self._actions, lags=self._lags())
        return self._playing.result()

    def _lags(self) -> dict[str, Any]:
        return {"reaction": msgspec.to_builtins(self._recording.reactions)} if self._recording.reactions.n else {}

    async def settle(self) -> None:
        self._playing = None
        self._recording.begin("")  # the log of the episode is complete

    async def close(self) -> None:
        self._recording.begin("")
        if self._desktop is not None:
            self._desktop.close()
            self._desktop = None


def parse_strokes(text: str) -> list[tuple[int, float]] | None:
    """Keys and for how long, from the last line that is not empty; None if it names no key and not NONE either."""
    from proctor.agents.desktop.vk import VK

    lines: Sequence[str] = [line for line in text.strip().upper().splitlines() if line.strip()]
    if not lines:
        return None
    found = []
    said = _STROKE.findall(lines[-1])
    keys = [VK.__members__.get(name) or VK.__members__.get(f"KEY_{name}") for name, _ in said]
    in_words = any(key is None and name != "NONE" for key, (name, _) in zip(keys, said, strict=True))
    for key, (name, seconds) in zip(keys, said, strict=True):
        if name == "NONE":
            return []
        if key in (None, VK.F10) or (in_words and len(name) == 1):  # "I go LEFT" names one key
            continue
        found.append((int(key), min(max(float(seconds or HOLD), SHORTEST_HOLD), LONGEST_HOLD)))
    return found[:MOST_KEYS] or None
