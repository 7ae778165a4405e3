"""ProgramEvaluator, the base of evaluators whose environment is a program."""

from __future__ import annotations

from pathlib import Path

from proctor.agents.desktop.names import release_everything
from proctor.agents.evaluator import Evaluator
from proctor.agents.outcome import EnvironmentCrashedError
from proctor.agents.runtime.clock import ClockName
from proctor.agents.runtime.hosting.process import log_tail
from proctor.agents.runtime.recording import recording
from proctor.agents.windows.home import Home
from proctor.agents.windows.program import PausableProgram
from proctor.agents.windows.requirements import require_stoppable_clock


class ProgramEvaluator(Evaluator):
    """A subclass starts the program with `_start` in `_setup_environment`, and scores."""

    home = ""  # template of the program's home folder; without one it is empty
    keep_home = False  # keep the home folder beside the log of the episode
    _program: PausableProgram | None = None
    _home: Home | None = None
    _log: Path | None = None  # what the program has printed

    def _start(
        self,
        command: list[str],
        log: Path | None = None,
        environment: dict[str, str] | None = None,
        pass_fds: tuple[int, ...] = (),
    ) -> None:
        """Replaces the running program. The new one is pausable with the clock `paused`."""
        self._end()
        release_everything()  # that an agent held when it was ended
        self._log = log
        self._home = Home(self.folder, Path(self.home).expanduser() if self.home else None, self.keep_home)
        given = self._home.environment | (environment or {})
        self._program = PausableProgram(command, log, given, pass_fds, self.clock == "paused", self.folder)
        recording.note("program", at=self._program.elapsed, command=command)

    @classmethod
    def check_requirements(cls, clock: ClockName) -> None:
        if clock == "paused":
            require_stoppable_clock()

    def _running(self) -> PausableProgram:
        if self._program is None:
            raise EnvironmentCrashedError("the program was not started")
        return self._program

    def _must_run(self) -> None:
        code = self._running().poll()
        if code is not None:
            output = log_tail(self._log) if self._log is not None else ""
            raise EnvironmentCrashedError(f"the program ended with status {code}{output}")

    def _pause_environment(self) -> None:
        if self._program is not None:
            self._program.pause()
            recording.note("paused", at=self._program.elapsed)

    def _resume_environment(self) -> None:
        if self._program is not None:
            self._program.resume()
            recording.note("resumed", at=self._program.elapsed)

    def _close_environment(self) -> None:
        self._end()

    def _end(self) -> None:
        if self._program is not None:
            self._program.end()
            self._program = None
        if self._home is not None:
            self._home.close()
            self._home = None
