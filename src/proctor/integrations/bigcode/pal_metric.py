"""Program-aided answers: a program prints a number, which is compared with the right one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from proctor.code.execution import Trial, run_programs
from proctor.integrations.bigcode.output import with_stdout
from proctor.sandbox import Limits, Outcome, Program

_NEAR = 1e-3


def compute(
    predictions: Sequence[Sequence[str]],
    references: Sequence[Any],
    num_workers: int = 4,
    timeout: float = 3.0,
    majority_voting: bool = False,
    answer_symbol: str | None = None,
) -> dict[str, float]:
    """The share of problems whose answer is right: that of the first program that gave any, or the commonest."""
    programs = [_program(program, answer_symbol) for of_one in predictions for program in of_one]
    trials = iter(run_programs(programs, Limits(seconds=timeout), with_stdout))
    right, failed = 0, 0
    for of_one, reference in zip(predictions, references, strict=False):
        said = [_answer(next(trials)) for _ in of_one]
        answers = [answer for answer in said if not answer.startswith("failed:")] or [""]
        answer = Counter(answers).most_common(1)[0][0] if majority_voting else answers[0]
        try:
            right += abs(float(answer) - float(reference)) < _NEAR
        except ValueError:
            failed += 1
    return {"accuracy": right / len(references), "num_failed_execution": failed}


def run_program(
    program: str, timeout: float, task_id: int, completion_id: int, answer_symbol: str | None = None
) -> dict[str, Any]:
    """The last line that a program printed, or the value of one of its variables; or why there is none."""
    trial = run_programs([_program(program, answer_symbol)], Limits(seconds=timeout), with_stdout)[0]
    return {"task_id": task_id, "result": _answer(trial), "completion_id": completion_id}


def _program(source: str, answer_symbol: str | None) -> Program:
    return Program(source=f"{source}\nprint({answer_symbol})" if answer_symbol else source)


def _answer(trial: Trial) -> str:
    if trial.outcome == Outcome.TIMEOUT:
        return "failed: timed out"
    if not trial.passed:
        return f"failed: {trial.detail or trial.outcome}"
    lines = trial.reading.splitlines()
    return lines[-1].strip() if lines else "failed: nothing was printed"
