"""The environment that a benchmark promises its programs: a library of it that is missing excuses those that failed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping

from proctor.code.execution import Trial, is_replaying, run_programs, trial_of
from proctor.code.imports import imported, missing, probe, used
from proctor.sandbox import Limits, Outcome, Program, Sandbox

Library = tuple[str, str]
"""A language, and a name that is imported in it."""
JudgedProgram = tuple[Program, Trial]

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BODIES = ("", "\n    pass", "\n        pass")  # an empty function needs a body to parse
_PROBE_LIMITS = Limits(seconds=30.0)
_FAILURES = (Outcome.FAILED, Outcome.EXITED)  # outcomes that a missing library can cause


def helpers_in(prompt: str) -> str:
    """The complete functions of a Python prompt before the one to write, with their imports.

    Empty if the prompt has a class: objects of the tests would be of another class than
    those of the program.
    """
    body = next(filter(None, (_parsed(prompt + rest) for rest in _BODIES)), [])
    given = body[: max((index for index, node in enumerate(body) if isinstance(node, _DEFINITIONS)), default=0)]
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
    """Whether the function is still to be written."""
    return all(isinstance(node, ast.Pass | ast.Raise) or _is_constant(node) for node in function.body)


def _is_constant(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class BenchmarkEnvironment:
    """Checks whether libraries of failed programs are installed, once per library."""

    def __init__(self) -> None:
        self._installed: dict[Library, bool] = {}
        self._imports: dict[tuple[str, int], set[str]] = {}

    def check(self, code: Callable[[], Iterable[str]], judged: Iterable[JudgedProgram]) -> None:
        """Raises `MissingLibraryError` if a program failed without a library of the benchmark."""
        if is_replaying():  # stored trials were checked before
            return
        needed = self._needed(code, judged)
        probes = self._probes(needed)
        trials = run_programs(list(probes.values()), _PROBE_LIMITS)
        self._conclude(needed, dict(zip(probes, trials, strict=True)))

    async def check_in(
        self, sandbox: Sandbox, code: Callable[[], Iterable[str]], judged: Iterable[JudgedProgram]
    ) -> None:
        """Does the same from the event loop of an open sandbox."""
        needed = self._needed(code, judged)
        probes = self._probes(needed)
        trials = {
            library: trial_of(program, await sandbox.judge(program, _PROBE_LIMITS))
            for library, program in probes.items()
        }
        self._conclude(needed, trials)

    def _needed(self, code: Callable[[], Iterable[str]], judged: Iterable[JudgedProgram]) -> set[Library]:
        """The libraries of failed programs that are not known to be installed."""
        failed = [program for program, trial in judged if trial.outcome in _FAILURES]
        own = "\n".join(code()) if failed else ""
        needed = set()
        for program in failed:
            promised = self._imports_of(own, program.language)
            if doubtful := {name for name in promised if not self._installed.get((program.language, name))}:
                names = used(program.language, doubtful, program.source, program.tests)
                needed |= {(program.language, name) for name in names}
        return needed

    def _imports_of(self, own: str, language: str) -> set[str]:
        """The libraries that code imports; cached, because tests can be large."""
        key = language, hash(own)
        if key not in self._imports:
            self._imports[key] = imported(language, own)
        return self._imports[key]

    def _probes(self, needed: Iterable[Library]) -> dict[Library, Program]:
        return {library: probe(*library) for library in sorted(needed) if library not in self._installed}

    def _conclude(self, needed: Iterable[Library], trials: Mapping[Library, Trial]) -> None:
        for library, trial in trials.items():
            # A probe that was too slow or too large says nothing.
            self._installed[library] = trial.outcome not in _FAILURES
        absent = [library for library in needed if not self._installed[library]]
        for language in {language for language, _ in absent}:
            raise missing(language, [name for of, name in absent if of == language])
