"""pass@k of Python programs, as the metric "code_eval" and the harness's own module of that name compute it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from proctor.code.execution import Trial, run_programs
from proctor.code.sources import without_unused_crates
from proctor.metrics.passing import TRIES, mean_pass_at_k, pass_at_k
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
    k: int | Sequence[int] = TRIES,
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
        return Program(source=candidate, tests=test)
    source = f"{candidate}\n{test}"
    if language == "rust-test":  # HumanEvalPack's, which imports crates that few programs use
        source = without_unused_crates(source)
    return Program(source=source, language=language, ends_with_tests=not may_exit(find_language(language), test))


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


def _parses(code: str) -> bool:
    try:
        ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    except SystemError:
        return True  # of a tree that could be made, while another thread made one: Python before 3.11.5 (gh-106905)
    return True
