"""An evaluator whose environment is a program that it starts, can stop for a while, and ends."""

from __future__ import annotations

from pathlib import Path

from proctor.agents.clock import ClockName
from proctor.agents.desktop import CALLABLES
from proctor.agents.evaluator import Evaluator
from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.program import Program
from proctor.agents.requirements import require_stoppable_clock


class ProgramEvaluator(Evaluator):
    """A subclass starts the program by `_start` in `_setup_environment`, and judges."""

    _program: Program | None = None

    def _start(
        self,
        command: list[str],
        log: Path | None = None,
        environment: dict[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        """In place of the one before. Its clock can be stopped if that is the clock of the exam."""
        self._end()
        CALLABLES["keyboard.release_all_keys"]()  # those that an agent held when it was ended
        self._program = Program(command, log, environment, pass_fds, self.clock == "paused", self.folder)

    @classmethod
    def check_requirements(cls, clock: ClockName) -> None:
        if clock == "paused":
            require_stoppable_clock()

    def _running(self) -> Program:
        if self._program is None:
            raise EnvironmentCrashedError("the program was not started")
        return self._program

    def _must_run(self) -> None:
        code = self._running().poll()
        if code is not None:
            raise EnvironmentCrashedError(f"the program ended with status {code}")

    def _pause_environment(self) -> None:
        if self._program is not None:
            self._program.pause()

    def _resume_environment(self) -> None:
        if self._program is not None:
            self._program.resume()

    def _close_environment(self) -> None:
        self._end()

    def _end(self) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None
