"""MultiPL-E's way of judging: problems and results are JSON files, one program for each completion."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.code.execution import Trial, run_programs
from proctor.code.wrong_tests import defined_in, with_wrong_expectations
from proctor.integrations.bigcode.code_eval import estimate_pass_at_k
from proctor.integrations.bigcode.output import KEPT, with_stdout
from proctor.metrics.passing import DEFAULT_KS
from proctor.sandbox import Limits, Outcome, Program
from proctor.sandbox.endings import may_exit
from proctor.sandbox.languages import Language, find_language

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SECONDS = 15.0  # for a program; the harness gives its languages 5 to 30
_LANGUAGES = {"notypes.py": "python", "humaneval_to_dlang.py": "d", "humaneval_to_r.py": "r", "go": "go-test"}


def eval_string_script(language: str, program: str) -> dict[str, Any]:
    """How one program fared."""
    return _evaluate(language, [program], None)[0]


def evaluate_problem(output_dir: str, problem_json_path: str, max_workers: int, input_dir: Any = None) -> None:
    """Runs the completions of the problem in a file, and writes the results beside it."""
    problem = msgspec.json.decode(Path(problem_json_path).read_bytes())
    completions = problem.pop("completions")
    tests = problem["tests"]
    results = _evaluate(problem["language"], completions, tests)
    path = Path(output_dir) / f"{str(problem_json_path).removesuffix('.json')}.results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode({**problem, "results": results}))


def for_file(path: str | Path) -> NDArray[np.float64]:
    """pass@1, pass@10 and pass@100 of the results in a file."""
    import numpy as np  # it makes every process of a scoring worker dearer

    results = msgspec.json.decode(Path(path).read_bytes())["results"]
    return np.array([estimator(len(results), sum(map(_is_pass, results)), k) for k in DEFAULT_KS])


def estimator(n: int, c: int, k: int) -> float:
    return float(estimate_pass_at_k(n, [c], k)[0])


def _is_pass(result: dict[str, Any]) -> bool:
    return bool(result["status"] == "OK" and result["exit_code"] == 0)


def _evaluate(language: str, completions: Sequence[str], tests: str | None) -> list[dict[str, Any]]:
    name = _LANGUAGES.get(language, language)
    programs = [_program(find_language(name), completion, tests) for completion in completions]
    trials = run_programs(programs, Limits(seconds=SECONDS), with_stdout)
    return [_result(program.source, trial) for program, trial in zip(programs, trials, strict=True)]


def _program(language: Language, completion: str, tests: str | None) -> Program:
    if tests is None:
        return Program(source=completion, language=language.name)
    wrong = with_wrong_expectations(tests, language.name, defined_in(completion, tests))
    return Program(
        source=f"{completion}\n{tests}",
        language=language.name,
        ends_with_tests=not may_exit(language, tests),
        control=f"{completion}\n{wrong}" if wrong else "",
    )


def _result(source: str, trial: Trial) -> dict[str, Any]:
    exit_codes = {Outcome.PASSED: 0, Outcome.TIMEOUT: -1}
    return {
        "program": source,
        "stdout": trial.reading,
        "stderr": trial.detail[-KEPT:],
        "exit_code": exit_codes.get(Outcome(trial.outcome), 1),
        "status": _status(trial),
        "timestamp": int(time.time()),
    }


def _status(trial: Trial) -> str:
    if trial.passed:
        return "OK"
    if trial.outcome == Outcome.TIMEOUT:
        return "Timeout"
    return "SyntaxError" if "SyntaxError" in trial.detail else "Exception"
