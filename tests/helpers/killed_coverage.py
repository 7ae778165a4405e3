"""Counts the lines of processes that are killed, for `make coverage`: coverage itself stores what it has at the end.

Inside the sandbox no file can be written either, and a guardian runs without site packages. Memory that is shared with
the tests outlasts them: a tracer sets one byte of it for each step from one line to another. Hosts of agents and
evaluators, and filters of displays, are given time to end by themselves.
"""

from __future__ import annotations

import asyncio
import inspect
import mmap
import opcode
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import coverage
import coverage.env
import numpy

import proctor
from proctor.agents.display_filter.display import FilteredDisplay
from proctor.agents.runtime.hosting import guardian
from proctor.agents.runtime.hosting.guarded import Guarded
from proctor.agents.runtime.hosting.process import HostProcess
from proctor.sandbox import worker

ROOT = Path(proctor.__file__).parent
FILES = sorted(
    str(file)
    for pattern in ("sandbox/inside/*.py", "code/*.py", "code/scoring/*.py", "agents/runtime/hosting/guardian.py")
    for file in ROOT.glob(pattern)
)
LINES = 2 + max(Path(file).read_text().count("\n") for file in FILES)
WIDTH = 2 * LINES  # a line where a function is entered or left has a minus
SIZE = len(FILES) * WIDTH * WIDTH
FAREWELL = 2.0


def trace(
    descriptor: int, places: dict[str, int], lines: int, width: int, resume: int, handler: int, ahead: int
) -> None:
    """Runs inside, from its source. What is a step, and which are not counted, is as coverage has it."""
    import mmap
    import sys

    counted = mmap.mmap(descriptor, 0)

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        place = places.get(frame.f_code.co_filename)
        if place is None:
            return None
        code, first = frame.f_code.co_code, frame.f_code.co_firstlineno
        last = -first if code[frame.f_lasti + 1] == 0 else frame.f_lineno  # a generator goes on where it was

        def step(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal last
            if event == "line" and code[frame.f_lasti] != handler:
                counted[place + (last + lines) * width + frame.f_lineno + lines] = 1
                last = frame.f_lineno
            elif event == "return":
                after = frame.f_lasti + ahead
                if frame.f_lasti + 2 == len(code) or code[after] != resume:
                    counted[place + (last + lines) * width - first + lines] = 1
            return step

        return step

    sys.settrace(enter)


class KilledCoverage:
    """In this process: every supervisor and guardian is traced, every host may end by itself."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("coverage")
        os.ftruncate(self._descriptor, SIZE)
        self._source = self._tracing()
        self._trace_supervisors()
        self._trace_guardians()
        self._end_hosts_gently()
        self._end_filters_gently()

    def _tracing(self) -> str:
        ahead = 2 if coverage.env.PYBEHAVIOR.lasti_is_yield else 0
        places = {file: number * WIDTH * WIDTH for number, file in enumerate(FILES)}
        numbers = (LINES, WIDTH, opcode.opmap["RESUME"], opcode.opmap["PUSH_EXC_INFO"], ahead)
        call = f"trace({self._descriptor}, {places!r}, {', '.join(map(str, numbers))})"
        return f"from __future__ import annotations\n{inspect.getsource(trace)}\n{call}\ndel trace\n"

    def _trace_supervisors(self) -> None:
        launch = worker._launch

        def launch_traced(command: list[str], descriptors: list[int], environment: dict[str, str], stderr: int) -> Any:
            return launch(self._traced(command), [*descriptors, self._descriptor], environment, stderr)

        worker._launch = launch_traced

    def _trace_guardians(self) -> None:
        """A guardian closes what it hands to its program; until then the descriptor is its own, too."""
        begin = Guarded.__init__
        run = f"import runpy\nrunpy.run_path({guardian.__file__!r}, run_name='__main__')\n"
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
            file.write(self._source + run)
        self._guardian = Path(file.name)
        guardian.__file__ = file.name

        def begin_traced(
            guarded: Guarded, command: list[str], handed: tuple[int, ...], *rest: Any, **named: Any
        ) -> None:
            begin(guarded, self._traced(command), (*handed, self._descriptor), *rest, **named)

        Guarded.__init__ = begin_traced  # type: ignore[method-assign, assignment]

    def _traced(self, command: list[str]) -> list[str]:
        return [self._source + word if word.startswith(worker._START) else word for word in command]

    def _end_hosts_gently(self) -> None:
        end = HostProcess._end

        async def end_gently(self: HostProcess) -> None:
            self._writer.close()
            with suppress(TimeoutError):  # it may be stopped, or hang
                await asyncio.wait_for(self._gone.wait(), FAREWELL)
            await end(self)

        HostProcess._end = end_gently  # type: ignore[method-assign]

    def _end_filters_gently(self) -> None:
        close = FilteredDisplay.close

        def close_gently(self: FilteredDisplay) -> None:
            self._guarded.end(grace=FAREWELL)
            close(self)

        FilteredDisplay.close = close_gently  # type: ignore[method-assign]

    def pytest_unconfigure(self) -> None:
        self._guardian.unlink()
        with mmap.mmap(self._descriptor, SIZE) as shared:
            steps = numpy.frombuffer(bytes(shared), numpy.uint8).reshape(len(FILES), WIDTH, WIDTH)
        data = coverage.CoverageData(os.environ["COVERAGE_FILE"], suffix=True)
        for file, found in zip(FILES, steps, strict=True):
            arcs = [(int(start) - LINES, int(end) - LINES) for start, end in zip(*found.nonzero(), strict=True)]
            data.add_arcs({file: arcs})
        data.write()
