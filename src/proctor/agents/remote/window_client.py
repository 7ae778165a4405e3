"""AgentClient for a remote agent in a window of this machine: sends frames and performs the returned actions."""

from __future__ import annotations

import asyncio
import io
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import msgspec

from proctor.agents.constants import TIMEOUTS
from proctor.agents.outcome import EnvironmentCrashedError, EpisodeOutcome
from proctor.agents.remote import messages
from proctor.agents.remote.address import FrameFormat, RemoteAddress
from proctor.agents.remote.client import RemoteAgentConnection, RemoteAgentError
from proctor.agents.runtime.agent_client import AgentStartError
from proctor.agents.runtime.clock import Clock
from proctor.agents.runtime.recording import EventRecorder
from proctor.agents.types import AgentEnding, Task
from proctor.core.types import Usage

if TYPE_CHECKING:
    from proctor.agents.desktop.messages import WindowInfo
    from proctor.agents.desktop.x11 import XDesktop

JPEG_QUALITY = 90
ENDING = 2.0  # seconds for the message that the episode is over


class RemoteWindowClient:
    """Acts on the display in the referee's process; the agent has no access to it."""

    folder: Path | None = None
    clock = Clock()  # of the current episode: the environment may be paused while the agent thinks

    def __init__(self, address: RemoteAddress, display: str, authority: Path | None = None) -> None:
        self._address, self._display_name, self._authority = address, display, authority
        self._client = RemoteAgentConnection(address.url)
        self._desktop: XDesktop | None = None
        self._playing: asyncio.Task[AgentEnding] | None = None
        self._recording = EventRecorder()
        self._episode = ""
        self._actions = 0
        self._hang_seconds = TIMEOUTS.HANG
        self._deadline = 0.0  # when the time of the task is up, if the environment is never paused
        self._pressed: set[int] = set()
        self.usage = Usage()  # unknown
        self.ended_at: float | None = None
        self.has_acted = False  # an action was performed in the current episode

    async def prepare(self) -> None:
        from proctor.agents.desktop.interface import DesktopError
        from proctor.agents.desktop.x11 import XDesktop

        try:
            self._desktop = self._desktop or XDesktop(self._display_name, self._authority)
            await self._client.check()
        except (DesktopError, RemoteAgentError) as error:
            raise AgentStartError(str(error)) from error

    async def start(self, task: Task) -> None:
        await self.prepare()
        self._recording.begin(str(self.folder or ""))
        self._actions, self._episode = 0, str(uuid4())
        self.has_acted = False
        self._hang_seconds = min(TIMEOUTS.HANG, task.timeout / 2)
        message = messages.Begin(self._episode, "window", task.model_dump(mode="json"), task.seed)
        try:
            await self._client.begin(message)
        except RemoteAgentError as error:
            raise AgentStartError(f"the agent could not begin: {error}") from error
        self._deadline = time.monotonic() + task.timeout
        self._playing = asyncio.create_task(self._play(task))

    async def _play(self, task: Task) -> AgentEnding:
        try:
            done = False
            while not done:
                await self.clock.pause()
                window, body, headers = await asyncio.to_thread(self._frame, task.window_name)
                answer = await self._client.step(self._episode, self._actions, body, headers, messages.window_answer)
                await self.clock.resume()
                self.has_acted = self.has_acted or bool(answer.actions)
                for action in answer.actions:
                    await self._do(action, window)
                if not answer.actions and self.clock.can_pause:
                    await asyncio.sleep(IDLE)  # otherwise no time would pass
                self._actions, done = self._actions + 1, answer.done
            return AgentEnding(actions=self._actions, lags=self._lags())
        except EnvironmentCrashedError as error:
            return AgentEnding(outcome=EpisodeOutcome.ENV_CRASH, error=str(error), actions=self._actions)
        except Exception as error:
            why = str(error) if isinstance(error, RemoteAgentError) else f"{type(error).__name__}: {error}"
            return AgentEnding(outcome=EpisodeOutcome.AGENT_CRASH, error=why, actions=self._actions)
        finally:
            self._release()

    def _frame(self, window_name: str) -> tuple[WindowInfo, bytes, dict[str, str]]:
        from proctor.agents.desktop.interface import make_active, window_titled
        from proctor.agents.desktop.names import fingerprint

        assert self._desktop is not None
        make_active(self._desktop, window_name)
        window = window_titled(self._desktop, window_name)
        frame = self._desktop.capture(window)
        self._recording.frame(fingerprint(frame))
        body, headers = packed(frame[:, :, 2::-1], self._address.frames)
        return window, body, headers

    async def _do(self, action: messages.WindowAction, window: WindowInfo) -> None:
        match action:
            case messages.Press(key):
                self._turn(_vk(key), True)
            case messages.Release(key):
                self._turn(_vk(key), False)
            case messages.Tap(key, seconds):
                await self._hold(_vk(key), seconds)
            case messages.Type(text):
                await asyncio.to_thread(self._type, text)
            case messages.Move(x, y):
                self._move(x, y, window)
            case messages.Click(x, y, button, seconds):
                if x is not None and y is not None:
                    self._move(x, y, window)
                await self._hold(_button(button), seconds)
            case messages.ButtonDown(button):
                self._turn(_button(button), True)
            case messages.ButtonUp(button):
                self._turn(_button(button), False)
            case messages.Scroll(dx, dy):
                self._opened.scroll(dx, dy)
                self._recording.input("scroll", dx=dx, dy=dy)
            case messages.Wait(seconds):
                await asyncio.sleep(seconds)

    @property
    def _opened(self) -> XDesktop:
        assert self._desktop is not None
        return self._desktop

    def _type(self, text: str) -> None:
        self._opened.type_text(text)
        self._recording.input("type", text)

    def _move(self, x: int, y: int, window: WindowInfo) -> None:
        """Moves within the window: the agent may not act beside it."""
        left, top, right, bottom = window.rect
        x, y = min(max(left + x, left), right - 1), min(max(top + y, top), bottom - 1)
        self._opened.move(x, y)
        self._recording.input("move", x=x, y=y)

    async def _hold(self, key: int, seconds: float) -> None:
        self._turn(key, True)
        await asyncio.sleep(seconds)
        self._turn(key, False)

    def _turn(self, key: int, down: bool) -> None:
        from proctor.agents.desktop.vk import VK

        self._opened.key(key, down)
        (self._pressed.add if down else self._pressed.discard)(key)
        self._recording.input("press" if down else "release", VK(key).name)

    def _release(self) -> None:
        """Releases the keys that the agent still holds."""
        with suppress(Exception):  # the display may be gone, and the keys with it
            for key in tuple(self._pressed):
                self._turn(key, False)
        self._pressed.clear()

    async def ending(self) -> AgentEnding:
        assert self._playing is not None
        return await asyncio.shield(self._playing)

    async def stop(self) -> AgentEnding:
        playing = self._playing
        assert playing is not None
        if playing.done():
            return playing.result()
        busy = self._client.busy_seconds
        playing.cancel()
        with suppress(asyncio.CancelledError):
            await playing
        is_time_up = self.clock.can_pause or time.monotonic() >= self._deadline
        if busy >= self._hang_seconds or (self._actions == 0 and is_time_up):
            why = f"no answer to a frame for {busy:.1f} s" if busy else "it never finished its first step"
            return AgentEnding(outcome=EpisodeOutcome.AGENT_HANG, error=why, actions=self._actions)
        return AgentEnding(actions=self._actions, lags=self._lags())

    def _lags(self) -> dict[str, Any]:
        reactions = self._recording.reactions
        return {"reaction": msgspec.to_builtins(reactions)} if reactions.n else {}

    async def settle(self) -> None:
        if self._playing is not None:
            self._playing = None
            self._client.forget()
            await _send_end(self._client, self._episode)
        self._recording.begin("")  # the log of the episode is complete

    async def close(self) -> None:
        if self._playing is not None and not self._playing.done():
            await self.stop()
        self._recording.begin("")
        await self._client.close()
        if self._desktop is not None:
            self._desktop.close()
            self._desktop = None


IDLE = 0.05  # seconds for which a paused environment runs after an empty list of actions


async def _send_end(client: RemoteAgentConnection, episode: str) -> None:
    with suppress(RemoteAgentError, TimeoutError):  # it will notice when the next one begins
        async with asyncio.timeout(ENDING):
            await client.end(episode)


def packed(frame: Any, form: FrameFormat) -> tuple[bytes, dict[str, str]]:
    """Encodes an RGB frame as the body of a request, with its headers."""
    import numpy
    from PIL import Image

    height, width = frame.shape[:2]
    headers = {"Content-Type": messages.CONTENT_TYPES[form], messages.SIZE: f"{width}x{height}"}
    whole = numpy.ascontiguousarray(frame)
    if form == "raw":
        return whole.tobytes(), headers
    image, buffer = Image.fromarray(whole), io.BytesIO()
    if form == "png":
        image.save(buffer, "PNG", compress_level=1)
    else:
        image.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return buffer.getvalue(), headers


def _vk(name: str) -> int:
    from proctor.agents.desktop.vk import BUTTONS, VK

    key = VK.__members__.get(name.upper()) or VK.__members__.get(f"KEY_{name.upper()}")
    if key is None or key in BUTTONS:
        raise RemoteAgentError(f"there is no key {name!r}: keys are named as in VK")
    if key is VK.F10:
        raise RemoteAgentError("F10 is the user's stop key: an agent may not press it")
    return int(key)


def _button(name: str) -> int:
    from proctor.agents.desktop.vk import VK

    names = {"left": VK.LBUTTON, "middle": VK.MBUTTON, "right": VK.RBUTTON, "x1": VK.XBUTTON1, "x2": VK.XBUTTON2}
    return int(names[name])
