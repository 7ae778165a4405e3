"""HostProcess hosts one object in a process that can be called, frozen, and killed with its descendants."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from proctor.agents.runtime.hosting import guardian
from proctor.agents.runtime.hosting.channel import LENGTH, LONGEST, Fault, MethodCall, Pulse, pack, unpack_reply
from proctor.agents.runtime.hosting.guarded import ANSWER_INTERVAL, ANSWERING, Guarded
from proctor.agents.runtime.hosting.isolation import AgentSandbox
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import RuntimeLimits
from proctor.agents.runtime.shielding import run_to_completion
from proctor.sandbox.isolated import IsolatedCommand

DYING = 10.0  # seconds from the end of the channel to the guardian's report of the exit code
CLOSED = 0.5  # seconds that a process may live on after it has closed the channel
FREEZING = 0.5  # seconds for the guardian to freeze the process, before it is frozen without it
EXITED_BY_SIGNAL = 128  # the init of a sandbox adds it to the signal that killed its program
GUARDIAN_INTERVAL = 1.0  # seconds between two checks whether the guardian, which measures memory, is stopped
LOG_TAIL = 2_000  # characters of what a process said last, in an error about its death


class HostedFaultError(Exception):
    """The hosted object raised something."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.text)
        self.fault = fault


class HostDiedError(Exception):
    """The process is gone."""

    def __init__(self, why: str, over_memory: bool = False) -> None:
        super().__init__(why)
        self.over_memory = over_memory


class HostProcess:
    """Created by `start`. A dead process is not restarted: start another."""

    def __init__(self, log: Path, memory: int, sandbox: AgentSandbox | None, handed: Sequence[int]) -> None:
        self.log, self._memory = log, memory
        self._sandbox, self._handed = sandbox, handed
        self._enclosed: IsolatedCommand | None = None
        self.closed_at: float | None = None  # when its channel was closed, in time.monotonic(): mostly by its death
        self.pulse, self._pulse_file = Pulse.create()
        self.on_notification: Callable[[Any], None] = lambda value: None
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pending_calls: set[int] = set()  # calls that have not returned, including cancelled ones
        self._idle = asyncio.Event()
        self._idle.set()
        self._frozen: asyncio.Future[None] | None = None
        self._dismissed = False  # the guardian was asked to end
        self._gone = asyncio.Event()
        self._exit = ""
        self._over_memory = False
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def start(
        cls,
        role: str,
        recipe: Recipe,
        log: Path,
        environment: Mapping[str, str] | None = None,
        limits: RuntimeLimits | None = None,
        *,
        sandbox: AgentSandbox | None = None,
        handed: Sequence[int] = (),
    ) -> HostProcess:
        """Raises HostedFaultError if the object cannot be created, HostDiedError if the process dies.

        The process and its descendants are killed above the limit of memory. With a sandbox the process is isolated.
        The role gets the descriptors `handed` as `host.handed`; they stay open here.
        """
        limits = limits or RuntimeLimits()
        seconds = limits.startup_timeout
        process = cls(log, limits.memory_bytes(), sandbox, handed)
        spawning = asyncio.create_task(process._spawn(environment))
        try:
            await run_to_completion(spawning)
            async with asyncio.timeout(seconds):
                path = sys.path if sandbox is None else sandbox.search_path
                await process.call("", role, msgspec.msgpack.encode(recipe), path)
        except TimeoutError:
            await process.end()
            raise HostDiedError(f"{recipe.name} was not ready after {seconds:g} s") from None
        except BaseException:
            if spawning.exception() is None:  # else it has closed what it had opened
                await process.end()
            raise
        return process

    async def _spawn(self, environment: Mapping[str, str] | None) -> None:
        channel, theirs = socket.socketpair()
        try:
            with theirs:
                self._guarded = self._launch(theirs.fileno(), {**(environment or {}), "PYTHONUNBUFFERED": "1"})
        except BaseException:
            self._close_sandbox()
            channel.close()
            self.pulse.close()
            raise
        finally:
            os.close(self._pulse_file)
        self._control_reader, self._control = await asyncio.open_connection(sock=self._guarded.control)
        self._reader, self._writer = await asyncio.open_connection(sock=channel, limit=1 << 20)
        self._tasks = [asyncio.create_task(work()) for work in (self._listen, self._watch, self._watch_guardian)]

    def _launch(self, channel: int, environment: dict[str, str]) -> Guarded:
        handed = (channel, self._pulse_file, *self._handed)
        program = [os.path.abspath(sys.executable), "-m", "proctor.agents.runtime.hosting.host"]
        if self._sandbox is None:
            command = [*program, *map(str, handed)]
            return Guarded(command, handed, self.log, environment, memory=self._memory)
        numbers = [f"{{{index}}}" for index in range(len(handed))]
        enclosed = self._enclosed = self._sandbox.enclose([*program, *numbers], handed, environment)
        try:
            return Guarded(
                enclosed.command,
                tuple(enclosed.descriptors),
                self.log,
                enclosed.environment,
                memory=self._memory,
                inherits=False,
            )
        finally:
            enclosed.started()

    def _close_sandbox(self) -> None:
        if self._enclosed is not None:
            self._enclosed.close()
            self._enclosed = None

    @property
    def pid(self) -> int:
        """Of the guardian."""
        return self._guarded.process.pid

    @property
    def is_alive(self) -> bool:
        return not self._gone.is_set()

    async def call(self, name: str, *args: Any) -> Any:
        """Calls a method of the hosted object. Cancelling does not stop the method there."""
        if self._gone.is_set():
            raise self._died()
        number = next(self._ids)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            message = pack(MethodCall(number, name, args))
            self._pending_calls.add(number)
            self._idle.clear()
            with suppress(ConnectionError):  # it is dying: the answer will be HostDiedError
                self._writer.write(message)
                await self._writer.drain()
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def is_idle(self, seconds: float) -> bool:
        """Whether every call has returned, after at most so many seconds."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), seconds)
        return not self._pending_calls

    @property
    def is_frozen(self) -> bool:
        return self._frozen is not None

    async def freeze(self) -> None:
        """Stops the process and its descendants with SIGSTOP; returns when they are stopped."""
        if self._gone.is_set():
            return
        if self._dismissed:
            await self._dismiss()
            return
        self._frozen = asyncio.get_running_loop().create_future()
        self._control.write(guardian.FREEZE)
        if await self._is_answered(self._frozen, FREEZING):
            return
        self._guarded.freeze()  # so that it does not act while the guardian is late
        if not await self._is_answered(self._frozen, ANSWERING):
            await self._kill()

    def thaw(self) -> None:
        """Does nothing unless it was frozen."""
        if self._frozen is not None and not self._dismissed and not self._gone.is_set():
            self._control.write(guardian.THAW)
        self._frozen = None

    async def end(self) -> None:
        """Kills the process and its descendants; returns when they are gone, even if the caller is cancelled."""
        await run_to_completion(asyncio.create_task(self._end()))

    async def _end(self) -> None:
        await self._dismiss()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in (self._control, self._writer):
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self.pulse.close()
        await asyncio.to_thread(self._close_sandbox)

    async def _dismiss(self) -> None:
        """Asks the guardian to end, and waits until it has."""
        self._dismissed = True
        if not self._control.is_closing():
            self._control.write_eof()
        gone = asyncio.create_task(self._gone.wait())
        try:
            if not await self._is_answered(gone, ANSWERING):
                await self._kill()
        finally:
            gone.cancel()

    async def _is_answered(self, answer: asyncio.Future[Any], seconds: float) -> bool:
        """Whether the guardian answers an order: late on a busy machine, never if it is stopped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while not answer.done() and not self._guarded.is_stopped and loop.time() < deadline:
            await asyncio.wait([answer], timeout=ANSWER_INTERVAL)
        return answer.done()

    async def _kill(self) -> None:
        """Kills the process without its guardian, which does not answer."""
        self._guarded.kill()
        await self._gone.wait()

    async def _listen(self) -> None:
        """Receives replies until the process closes the channel or sends an invalid one, and ends it."""
        try:
            while True:
                length = int.from_bytes(await self._reader.readexactly(LENGTH), "big")
                if length > LONGEST:
                    raise ValueError(f"a message of {length} bytes")
                reply = unpack_reply(await self._reader.readexactly(length))
                if reply.id == 0:
                    self.on_notification(reply.value)
                    continue
                self._pending_calls.discard(reply.id)
                if not self._pending_calls:
                    self._idle.set()
                answer = self._waiting.get(reply.id)
                if answer is None or answer.done():
                    continue
                if reply.fault is not None:
                    answer.set_exception(HostedFaultError(reply.fault))
                else:
                    answer.set_result(reply.value)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed_at = time.monotonic()
            await self._await_exit()
            await self._dismiss()
        except (ValueError, RecursionError, msgspec.DecodeError) as error:
            self._exit = f"it sent an invalid reply: {error}"
            await self._dismiss()

    async def _await_exit(self) -> None:
        """Waits for the guardian's report after the channel was closed, mostly by the death of the process.

        There is no report if the process still runs and closed the channel itself, or if the guardian is stopped.
        """
        loop = asyncio.get_running_loop()
        closed_at = loop.time()
        while not self._gone.is_set():
            in_vain = self._guarded.is_running or self._guarded.is_stopped
            if loop.time() - closed_at >= (CLOSED if in_vain else DYING):
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._gone.wait(), ANSWER_INTERVAL)

    async def _watch(self) -> None:
        """Waits until the guardian is gone, and with it all processes."""
        output = b""
        with suppress(ConnectionError):
            while part := await self._control_reader.read(64):
                self._over_memory = self._over_memory or guardian.OVER_MEMORY in part
                output += part.replace(guardian.FROZEN, b"").replace(guardian.OVER_MEMORY, b"")
                if guardian.FROZEN in part and self._frozen is not None and not self._frozen.done():
                    self._frozen.set_result(None)
        await asyncio.to_thread(self._guarded.reap)  # it has closed its end
        if self._over_memory:
            self._exit = f"it was ended because it used more than {self._memory / 2**30:.3g} GiB of memory"
        self._exit = self._exit or _cause(output, isolated=self._sandbox is not None) + log_tail(self.log)
        self._gone.set()
        if self._frozen is not None and not self._frozen.done():
            self._frozen.set_result(None)  # the dead stand still
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self._died())

    async def _watch_guardian(self) -> None:
        """Kills a process that has stopped its guardian. Checked twice: Ctrl-Z stops us, too."""
        was_stopped = False
        while not self._gone.is_set():
            await asyncio.sleep(GUARDIAN_INTERVAL)
            is_stopped = self._guarded.is_stopped
            if is_stopped and was_stopped and not self._dismissed:
                self._exit = "it was ended because its guardian process was stopped"
                await self._kill()
                return
            was_stopped = is_stopped

    def _died(self) -> HostDiedError:
        return HostDiedError(self._exit, self._over_memory)


def _cause(output: bytes, isolated: bool) -> str:
    if not output:
        return "the process was ended"
    code = int(output)
    if isolated and code > EXITED_BY_SIGNAL:
        code = EXITED_BY_SIGNAL - code
    return f"the process was killed by signal {-code}" if code < 0 else f"the process exited with status {code}"


def log_tail(log: Path) -> str:
    """The end of a log, for the error about the death of its process."""
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - LOG_TAIL))
        if words := file.read().decode(errors="replace").strip():
            return f"; it said last: {words}"
    return ""
