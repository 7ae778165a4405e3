"""AgentClient for a vision model: it sees the window and replies which keys to press."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.agents.outcome import EnvironmentCrashedError, EpisodeOutcome
from proctor.agents.runtime.agent_client import AgentStartError
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.recording import EventRecorder
from proctor.agents.types import AgentEnding, Task
from proctor.agents.vision.key_reply import read_strokes
from proctor.agents.vision.key_tokens import HOLD, Stroke
from proctor.agents.vision.turns import KeyPress, Turn
from proctor.core.errors import ProctorError
from proctor.core.types import Image, Message, Sample, Text, Usage
from proctor.models.base import Model, Request, Sampling

if TYPE_CHECKING:
    from proctor.agents.desktop.x11 import XDesktop

INSTRUCTION = """\
You play the game in the window that is shown. {description}
Answer with the keys to press next, separated by spaces, and nothing else; NONE for no key.
Keys: LEFT RIGHT UP DOWN SPACE RETURN ESCAPE, letters, digits. A key is held for {hold:g} s; RIGHT:0.5 for 0.5 s.
LEFT+SPACE presses both together; WAIT:0.5 presses nothing for 0.5 s."""
FRAME = "frame-{number:06}.png"


class VisionClient:
    """Runs in this process: the model is a server, and every wait can be cancelled."""

    folder: Path | None = None
    clock = Clock()  # of the current episode: the environment may be paused while the model thinks

    def __init__(self, model: Model, sampling: Sampling, display: str, authority: Path | None = None) -> None:
        self._model, self._sampling, self._display_name, self._authority = model, sampling, display, authority
        self._desktop: XDesktop | None = None
        self._playing: asyncio.Task[AgentEnding] | None = None
        self._recording = EventRecorder()
        self._actions = 0
        self.ended_at: float | None = None
        self.has_acted = False  # it has pressed a key in the current episode
        self.sample: Sample  # the current episode
        self.turns: list[Turn] = []

    @property
    def usage(self) -> Usage:
        return sum((turn.usage for turn in self.turns), Usage())

    async def prepare(self) -> None:
        from proctor.agents.desktop.interface import DesktopError
        from proctor.agents.desktop.x11 import XDesktop

        try:
            self._desktop = self._desktop or XDesktop(self._display_name, self._authority)
        except DesktopError as error:
            raise AgentStartError(str(error)) from error

    async def start(self, task: Task) -> None:
        await self.prepare()
        self._recording.begin(str(self.folder or ""))
        self._actions, self.turns = 0, []
        self.has_acted = False
        self._playing = asyncio.create_task(self._play(task))

    async def _play(self, task: Task) -> AgentEnding:
        try:
            while True:
                await self.clock.pause()
                turn, picture = await asyncio.to_thread(self._look, task)
                strokes = await self._ask(turn, picture)
                await self.clock.resume()
                for stroke in strokes:
                    await self._press(stroke, turn)
                if not strokes and self.clock.can_pause:
                    await asyncio.sleep(HOLD)  # otherwise no time would pass
                self._actions += 1
        except EnvironmentCrashedError as error:
            return AgentEnding(outcome=EpisodeOutcome.ENV_CRASH, error=str(error), actions=self._actions)
        except ProctorError:
            raise  # concerns the whole run: the server refuses the key
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error=said, actions=self._actions)

    def _look(self, task: Task) -> tuple[Turn, bytes]:
        """Begins a turn with a frame of the window, which is stored before the model gets it."""
        from proctor.agents.desktop.interface import make_active, window_titled
        from proctor.agents.desktop.names import fingerprint, png

        assert self._desktop is not None
        make_active(self._desktop, task.window_name)
        frame = self._desktop.capture(window_titled(self._desktop, task.window_name))
        self._recording.frame(fingerprint(frame))
        picture = png(frame[:, :, 2::-1])
        number = len(self.turns) + 1
        name = FRAME.format(number=number)
        if self.folder is not None:
            (self.folder / name).write_bytes(picture)
        prompt = INSTRUCTION.format(description=task.task_description, hold=HOLD)
        return Turn(number, prompt, name if self.folder is not None else ""), picture

    async def _ask(self, turn: Turn, picture: bytes) -> list[Stroke]:
        self.turns.append(turn)
        self._recording.note("asked", turn=turn.number, frame=turn.frame, prompt=turn.prompt)
        prompt = (Message("user", (Text(turn.prompt), Image(picture))),)
        begun = time.monotonic()
        output = await self._model.generate(Request(prompt, self._sampling, self._actions, self.sample))
        turn.seconds = time.monotonic() - begun
        turn.reply, turn.usage, turn.finish = output.text, output.usage, output.finish
        strokes = read_strokes(output.text)
        turn.readable = strokes is not None
        read = "unreadable" if strokes is None else " ".join(stroke.text for stroke in strokes) or "NONE"
        usage = msgspec.to_builtins(turn.usage)
        self._recording.note("reply", turn=turn.number, reply=turn.reply, read=read, finish=turn.finish, usage=usage)
        return strokes or []

    async def _press(self, stroke: Stroke, turn: Turn) -> None:
        """Presses keys in order, releases them in reverse, and records how long they were held."""
        from proctor.agents.desktop.vk import VK

        assert self._desktop is not None
        begun, names = time.monotonic(), [VK(key).name for key in stroke.keys]
        held: list[int] = []
        try:
            for key in stroke.keys:
                self.has_acted = True
                self._desktop.key(key, True)
                held.append(key)
                self._recording.input("press", VK(key).name)
            await asyncio.sleep(stroke.seconds)
        finally:
            turn.pressed.append(KeyPress(names, round(time.monotonic() - begun, 4)))
            for key in reversed(held):
                self._desktop.key(key, False)
                self._recording.input("release", VK(key).name)

    async def ending(self) -> AgentEnding:
        assert self._playing is not None
        return await asyncio.shield(self._playing)

    async def stop(self) -> AgentEnding:
        assert self._playing is not None
        if not self._playing.done():
            self._playing.cancel()
            with suppress(asyncio.CancelledError):
                await self._playing
            if all(turn.reply is None for turn in self.turns):  # its server may be broken: this is not an episode
                return AgentEnding(outcome=EpisodeOutcome.AGENT_HANG, error="the model had not answered even once")
            return AgentEnding(actions=self._actions, lags=self._lags())
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
