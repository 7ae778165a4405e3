"""The environment that a benchmark promises its programs: a library of it that is missing excuses those that failed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from proctor.code.execution import Trial, recounting, run_programs, trial_of
from proctor.code.imports import imported, missing, probe, used
from proctor.sandbox import Limits, Outcome, Program, Sandbox

Library = tuple[str, str]
"""A language, and a name that is imported in it."""
Judged = tuple[Program, Trial]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_RESTS = ("", "\n    pass", "\n        pass")  # without as much as a docstring, a function or method is none yet
_PROBE_LIMITS = Limits(seconds=30.0)
_FAILURES = (Outcome.FAILED, Outcome.EXITED)  # others have failed by what they did, not by what they lacked


def helpers_in(prompt: str) -> str:
    """The functions that a prompt in Python has complete before the one to write, with all that stands before them.

    Nothing where a class stands there too: the tests' objects would be of another class than the program's.
    """
    body = next(filter(None, (_parsed(prompt + rest) for rest in _RESTS)), [])
    given = body[: max((place for place, node in enumerate(body) if isinstance(node, _DEFINITIONS)), default=0)]
    functions = [node for node in given if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    if not functions or any(isinstance(node, ast.ClassDef) for node in given) or any(map(_is_stub, functions)):
        return ""
    return ast.unparse(ast.Module(given, []))


def _parsed(code: str) -> list[ast.stmt]:
    try:
        return ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _is_stub(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is to be written as well."""
    return all(isinstance(node, ast.Pass | ast.Raise) or _is_constant(node) for node in function.body)


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class BenchmarkEnvironment:
    """Looks for what failed programs needed, once for each library, where the programs run."""

    def __init__(self) -> None:
        self._there: dict[Library, bool] = {}
        self._promised: dict[tuple[str, int], set[str]] = {}

    def check(self, code: Callable[[], Iterable[str]], judged: Iterable[Judged]) -> None:
        """Raises `MissingLibraryError` where a program failed for want of what the benchmark's own code imports."""
        if recounting():  # those that were excused have no trials to be counted again
            return
        needed = self._needed(code, judged)
        probes = self._probes(needed)
        trials = run_programs(list(probes.values()), _PROBE_LIMITS)
        self._conclude(needed, dict(zip(probes, trials, strict=True)))

    async def check_in(self, sandbox: Sandbox, code: Callable[[], Iterable[str]], judged: Iterable[Judged]) -> None:
        """The same from the event loop of an open sandbox."""
        needed = self._needed(code, judged)
        probes = self._probes(needed)
        trials = {
            library: trial_of(program, await sandbox.judge(program, _PROBE_LIMITS))
            for library, program in probes.items()
        }
        self._conclude(needed, trials)

    def _needed(self, code: Callable[[], Iterable[str]], judged: Iterable[Judged]) -> set[Library]:
        """Unless it is known to be there."""
        failed = [program for program, trial in judged if trial.outcome in _FAILURES]
        own = "\n".join(code()) if failed else ""
        needed = set()
        for program in failed:
            promised = self._promised_in(own, program.language)
            if doubtful := {name for name in promised if not self._there.get((program.language, name))}:
                names = used(program.language, doubtful, program.source, program.tests)
                needed |= {(program.language, name) for name in names}
        return needed

    def _promised_in(self, own: str, language: str) -> set[str]:
        """Read once: a benchmark may have large tests, and many programs that fail them."""
        key = language, hash(own)
        if key not in self._promised:
            self._promised[key] = imported(language, own)
        return self._promised[key]

    def _probes(self, needed: Iterable[Library]) -> dict[Library, Program]:
        return {library: probe(*library) for library in sorted(needed) if library not in self._there}

    def _conclude(self, needed: Iterable[Library], trials: Mapping[Library, Trial]) -> None:
        for library, trial in trials.items():
            # One that was too slow or too large for this machine says nothing.
            self._there[library] = trial.outcome not in _FAILURES
        absent = [library for library in needed if not self._there[library]]
        for language in {language for language, _ in absent}:
            raise missing(language, [name for of, name in absent if of == language])
