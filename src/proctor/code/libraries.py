"""Tasks whose programs need Python packages, which are looked for where the programs run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from proctor.code.execution import Trial, run_programs, trial_of
from proctor.code.imports import missing
from proctor.code.task import Task
from proctor.core.config import RunConfig
from proctor.sandbox import Limits, Program, Verdict

_IMPORT = re.compile(r"^[ \t]*(?:import[ \t]+(?P<modules>[^#;\n]+)|from[ \t]+(?P<module>\w+))", re.MULTILINE)


class LibraryTask(Task):
    """A task whose programs may need third-party packages."""

    LIBRARIES: ClassVar[Mapping[str, str]] = {}  # import name: package
    _missing: frozenset[str] | None = None  # None: not checked yet

    def libraries(self) -> Mapping[str, str]:
        """The packages of the benchmark. Missing other imports are the program's failure."""
        return self.LIBRARIES

    async def open(self, config: RunConfig) -> None:
        await super().open(config)
        if not config.generation_only:
            program = _find_missing(self.libraries())
            self._missing = _missing(_read_missing(program, await self.sandbox.judge(program, Limits())))

    def program(self, doc: Any, generation: str) -> Program:
        program = super().program(doc, generation)
        self.require(program.tests)
        return program

    def require(self, *sources: str) -> None:
        """Raises if a library that the sources import is missing."""
        if self._missing is None:
            self._missing = _missing(*run_programs([_find_missing(self.libraries())], Limits(), _read_missing))
        if absent := sorted(self._missing & imported(*sources)):
            raise missing("python", absent, self.libraries())


def imported(*sources: str) -> set[str]:
    """The packages that these texts import, also in code within strings."""
    names = set()
    for source in sources:
        for found in _IMPORT.finditer(source):
            several = found["modules"].split(",") if found["modules"] else [found["module"]]
            names |= {name.strip().partition(" ")[0].partition(".")[0] for name in several}
    return names


def _find_missing(names: Iterable[str]) -> Program:
    return Program(
        source="from importlib.util import find_spec\n"
        f"print(*(name for name in {sorted(names)} if find_spec(name) is None))\n"
    )


def _read_missing(program: Program, verdict: Verdict) -> Trial:
    return msgspec.structs.replace(trial_of(program, verdict), reading=verdict.stdout.split())


def _missing(trial: Trial) -> frozenset[str]:
    return frozenset(trial.reading)
