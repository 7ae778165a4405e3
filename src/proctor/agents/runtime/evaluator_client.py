"""EvaluatorClient, through which the referee controls an evaluator: a process that is restarted if it hangs or dies."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from proctor.agents.constants import TIMEOUTS, TIMES
from proctor.agents.runtime.clock import ClockName
from proctor.agents.runtime.hosting.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.limits import EpisodeLimits
from proctor.agents.types import EvaluationResult, Task

ROLE = "proctor.agents.evaluator:HostedEvaluator"
SETTLING = 5.0  # seconds in which a check may return that was under way when the play was over


class EvaluatorError(Exception):
    """The evaluator failed."""

    def __init__(self, why: str, is_final: bool = False) -> None:
        """A final error was raised to end the process; the task cannot continue after it."""
        super().__init__(why)
        self.is_final = is_final


class EnvironmentGoneError(Exception):
    """The environment could not be set up, or is gone."""


class EvaluatorClient:
    """Runs an evaluator in its own process."""

    def __init__(
        self,
        recipe: Recipe,
        log: Path,
        environment: dict[str, str] | None = None,
        clock: ClockName = "realtime",
        limits: EpisodeLimits | None = None,
    ) -> None:
        self.recipe = recipe
        self.clock = clock
        self._limits = limits or EpisodeLimits()
        self._checking: dict[str, float] = {}  # running check -> start time
        self.folder: Path | None = None  # for files of the current episode
        self.stopped: Callable[[], None] = lambda: None  # called when the evaluator's stop event is set
        self._log, self._environment = log, environment
        self._process: HostProcess | None = None
        self._watches: list[str] = []

    async def prepare(self) -> HostProcess:
        """Returns the process; starts a new one if it is dead or unsound."""
        if self._process is not None and self._process.is_alive and not await self._is_sound(self._process):
            await self.end()
        if self._process is None or not self._process.is_alive:
            await self.end()
            try:
                self._process = await HostProcess.start(ROLE, self.recipe, self._log, self._environment, self._limits)
                self._watches = await self._process.call("watches")
            except (HostedFaultError, HostDiedError) as error:
                raise EvaluatorError(f"{self.recipe.name} could not be created: {error}") from error
            self._process.on_notification = lambda value: self.stopped()
        return self._process

    async def _is_sound(self, process: HostProcess) -> bool:
        with suppress(TimeoutError, HostDiedError, HostedFaultError):
            sound: bool = await asyncio.wait_for(process.call("is_sound"), TIMEOUTS.REQUEST)
            return sound
        return False

    async def setup(self, task: Task) -> None:
        try:
            seconds = self._limits.setup_timeout
            await self.prepare()
            message = _to_json(task), str(self.folder or ""), self.clock, seconds
            await self._call("setup_environment", seconds, *message)
        except EvaluatorError as error:
            raise EnvironmentGoneError(f"_setup_environment: {error}") from error

    async def wait_for_end(self, task: Task, errors: list[str]) -> None:
        """Returns when a check says that the task is over. A check that raises is noted and repeated."""
        intervals = {"check_env_continue": TIMES.CHECK_INTERVAL}
        checks = [
            asyncio.create_task(self._check(name, intervals.get(name, task.check_env_interval_seconds), task, errors))
            for name in self._watches
        ]
        if not checks:
            await asyncio.get_running_loop().create_future()
        try:
            done, _ = await asyncio.wait(checks, return_when=asyncio.FIRST_COMPLETED)
            for check in done:
                check.result()
        finally:
            for check in checks:
                check.cancel()
            await asyncio.gather(*checks, return_exceptions=True)

    async def shows_window(self, title: str) -> bool | None:
        """Whether there is such a window now; None if unknown."""
        if self._process is not None:
            with suppress(TimeoutError, HostDiedError, HostedFaultError):
                asking = self._process.call("shows_window", title)
                shown: bool | None = await asyncio.wait_for(asking, TIMEOUTS.LAST_CHECK)
                return shown
        return None

    def hanging(self, seconds: float) -> list[str]:
        """Describes the checks that have been running for at least so many seconds."""
        now = time.monotonic()
        lasted = {name: now - since for name, since in self._checking.items()}
        return [f"_{name} has not returned for {s:.1f} s" for name, s in lasted.items() if s >= seconds]

    async def _check(self, name: str, interval: float, task: Task, errors: list[str]) -> None:
        loop = asyncio.get_running_loop()
        message, due = _to_json(task), loop.time() + interval * (name != "check_env_continue")
        while True:
            await asyncio.sleep(due - loop.time())
            try:
                self._checking[name] = time.monotonic()
                if not await self._call(name, None, message):
                    return
            except EvaluatorError as error:
                if error.is_final or not (self._process and self._process.is_alive):
                    raise
                if str(error) not in errors:
                    errors.append(str(error))
            finally:
                self._checking.pop(name, None)
            due = max(due + interval, loop.time())

    async def score(self, task: Task, elapsed: float, note: str) -> EvaluationResult:
        seconds = self._limits.scoring_timeout
        return EvaluationResult(**await self._call("score_task", seconds, _to_json(task), elapsed, note))

    async def pause(self) -> None:
        await self._call("pause_environment", TIMEOUTS.PAUSING)

    async def resume(self) -> None:
        await self._call("resume_environment", TIMEOUTS.PAUSING)

    async def settle(self) -> None:
        """Called after scoring: ends the process if a check still does not return."""
        if self._process is not None and self._process.is_alive and not await self._process.is_idle(SETTLING):
            await self.end()

    async def _call(self, name: str, seconds: float | None, *args: Any) -> Any:
        process = self._process
        if process is None:
            raise EvaluatorError("the evaluator was ended")  # a new process would not know the environment
        try:
            async with asyncio.timeout(seconds):
                return await process.call(name, *args)
        except TimeoutError:
            await self.end()
            raise EvaluatorError(f"_{name} did not return within {seconds:g} s") from None
        except HostDiedError as error:
            if error.over_memory:
                raise EnvironmentGoneError(f"the evaluator and its programs, in _{name}: {error}") from error
            raise EvaluatorError(f"the evaluator died in _{name}: {error}") from error
        except HostedFaultError as error:
            if error.fault.environment_gone:
                raise EnvironmentGoneError(error.fault.message or f"_{name} raised {error.fault.type}") from error
            raise EvaluatorError(f"_{name} raised {error.fault.text}", error.fault.ends_the_process) from error

    async def close(self) -> None:
        """Called once at the end: the evaluator cleans up, then its process is killed."""
        if self._process is not None and self._process.is_alive:
            with suppress(EvaluatorError, EnvironmentGoneError):
                await self._call("close_environment", TIMEOUTS.CLOSING)
        await self.end()

    async def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end()


def _to_json(task: Task) -> dict[str, Any]:
    return task.model_dump(mode="json")
