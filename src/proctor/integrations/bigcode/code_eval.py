"""pass@k of Python programs, as the metric "code_eval" and the harness's own module of that name compute it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from proctor.code.execution import Trial, run_programs
from proctor.code.sources import without_unused_crates
from proctor.code.wrong_tests import defined_in, with_wrong_expectations
from proctor.metrics.passing import DEFAULT_KS, mean_pass_at_k, pass_at_k
from proctor.sandbox import Limits, Outcome, Program
from proctor.sandbox.endings import may_exit
from proctor.sandbox.languages import find_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Result = dict[str, Any]
Results = dict[int, list[tuple[int, Result]]]


def compute_code_eval(
    predictions: Sequence[Sequence[str]],
    references: Sequence[str],
    k: int | Sequence[int] = DEFAULT_KS,
    num_workers: int = 4,
    timeout: float = 3.0,
    *,
    language: str = "python",
) -> tuple[dict[str, float], Results]:
    """pass@k, and how each program fared. How many run at once is the sandbox's to say, whatever `num_workers` is."""
    programs = {
        (problem, number): program_of(candidate, test, language)
        for problem, (candidates, test) in enumerate(zip(predictions, references, strict=False))
        for number, candidate in enumerate(candidates)
    }
    trials = run_programs(list(programs.values()), Limits(seconds=timeout))
    results: Results = {}
    for (problem, number), trial in zip(programs, trials, strict=True):
        results.setdefault(problem, []).append((number, result_of(trial, problem, number)))
    return pass_rates(results, [k] if isinstance(k, int) else k), results


def check_correctness(check_program: str, timeout: float, task_id: int, completion_id: int) -> Result:
    """How one program fared that ends with its own tests."""
    # With tests of its own it would not do to leave before they are reached.
    program = Program(source=check_program, tests="pass")
    return result_of(run_programs([program], Limits(seconds=timeout))[0], task_id, completion_id)


def program_of(candidate: str, test: str, language: str = "python") -> Program:
    """A candidate with its test: apart, where that is Python by itself, so that a pass cannot be faked."""
    if language == "python" and test.strip() and _parses(test):
        return Program(source=candidate, tests=test, entry_point=_tested_builtin(test))
    known = find_language(language)
    wrong = with_wrong_expectations(test, known.name, defined_in(candidate, test))
    return Program(
        source=_whole(candidate, test, language),
        language=language,
        ends_with_tests=not may_exit(known, test),
        control=_whole(candidate, wrong, language) if wrong else "",
    )


def _whole(candidate: str, test: str, language: str) -> str:
    source = f"{candidate}\n{test}"
    # HumanEvalPack's imports crates that few programs use.
    return without_unused_crates(source) if language == "rust-test" else source


def result_of(trial: Trial, task_id: int, completion_id: int) -> Result:
    said = {Outcome.PASSED: "passed", Outcome.TIMEOUT: "timed out"}
    result = said.get(Outcome(trial.outcome), f"failed: {trial.detail or trial.outcome}")
    return {"task_id": task_id, "passed": trial.passed, "result": result, "completion_id": completion_id}


def pass_rates(results: Mapping[int, Iterable[tuple[int, Result]]], ks: Sequence[int]) -> dict[str, float]:
    """The mean pass@k over problems, for each k that all problems have enough programs for."""
    passed = [[result["passed"] for _, result in of_one] for of_one in results.values()]
    return mean_pass_at_k([(len(of_one), sum(of_one)) for of_one in passed], ks)


def estimate_pass_at_k(num_samples: int | Iterable[int], num_correct: Iterable[int], k: int) -> NDArray[np.float64]:
    """pass@k of each problem; 1 where fewer than k programs failed."""
    import numpy as np  # it makes every process of a scoring worker dearer

    tries = repeat(num_samples) if isinstance(num_samples, int) else num_samples
    pairs = [(int(n), int(c)) for n, c in zip(tries, num_correct, strict=False)]
    return np.array([pass_at_k(n, c, k) if n - c >= k else 1.0 for n, c in pairs])


@lru_cache(maxsize=64)  # the candidates of one problem share it
def _tested_builtin(test: str) -> str:
    """The function under test where it has the name of a built-in one; '' where the test calls another, as most do.

    A test names nothing but built-ins then, and asserts something of one of them alone. What a candidate defines does
    not matter: it could choose which built-in the test is to do without.
    """
    try:
        tree = ast.parse(test)
    except Exception:
        return ""
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    if any(name not in vars(builtins) for name in named - set(_bound(tree))):
        return ""
    asserted = [node.test for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    checks = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    asserted += [argument for check in checks if isinstance(check, ast.Call) for argument in check.args]
    calls = [call.func for part in asserted for call in ast.walk(part) if isinstance(call, ast.Call)]
    called = {function.id for function in calls if isinstance(function, ast.Name)} - set(_bound(tree))
    return called.pop() if len(called) == 1 else ""


def _bound(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield name
            case ast.alias(name, asname):
                yield (asname or name).partition(".")[0]


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    except SystemError:
        return True  # of a tree that could be made, while another thread made one: Python before 3.11.5 (gh-106905)
    return True
