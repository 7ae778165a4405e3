"""Makes scores from the trials of a sample, or from the metrics of its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from proctor.code.execution import Trial
from proctor.core.reasoning import reasoning_is_open, strip_reasoning
from proctor.core.types import LENGTH, TRUNCATED, Output, Score
from proctor.sandbox import Outcome

BY_TASK = "in the task's own worker"
END_LENGTH = 40  # characters of an output by which it is seen whether its end was judged


def is_cut_off(output: Output, generation: str) -> bool:
    """Whether it ended by length, and nothing before that ended the program: no stop word, no closing fence."""
    if output.finish != LENGTH:
        return False
    if not strip_reasoning(output.text) or reasoning_is_open(output.text):
        return True
    last_line = output.text.rstrip().rpartition("\n")[2]
    return last_line.strip()[-END_LENGTH:] in generation


def mark_cut_off(score: Score, generations: Sequence[str], cut_off: Sequence[bool]) -> Score:
    """Of a score for all generations together, it is known that all failed, or that some are empty."""
    failed = [cut and (score.value == 0 or not text.strip()) for cut, text in zip(cut_off, generations, strict=True)]
    outcome = TRUNCATED if score.value == 0 and all(failed) else score.outcome
    return msgspec.structs.replace(score, outcome=outcome, truncated=sum(failed))


def tested_by_task(score: Score) -> Score:
    """Marks a score of a program that ran in the task's worker: a pass can be faked."""
    outcome = {0: Outcome.FAILED, 1: Outcome.PASSED}.get(score.value, score.outcome)  # type: ignore[call-overload]
    return msgspec.structs.replace(score, outcome=str(outcome), answer={**score.answer, "testing": BY_TASK})


def score_of_trials(judged: Sequence[tuple[str, Trial]], cut_off: Sequence[bool]) -> Score:
    """The score of trials; a failed program that was truncated counts as failed."""
    trials = [trial for _, trial in judged]
    failed = [cut and not trial.passed for cut, trial in zip(cut_off, trials, strict=True)]
    answer = [
        {"passed": trial.passed, "generation": generation, **msgspec.to_builtins(trial)} for generation, trial in judged
    ]
    outcomes = {TRUNCATED if cut else trial.outcome for cut, trial in zip(failed, trials, strict=True)}
    value = sum(trial.passed for trial in trials) / len(trials)
    # Where they differ, the value says it: some passed, or all failed, each in its own way.
    outcome = outcomes.pop() if len(outcomes) == 1 else "" if value else Outcome.FAILED
    return Score(value, outcome, answer, _why(trials), truncated=sum(failed))


def score_of_metrics(
    found: Mapping[str, float], generations: Sequence[str], trials: Sequence[Trial], full_marks: float
) -> Score:
    """The score of the metrics of one sample."""
    value = _value(found, full_marks)
    answer = {"generations": generations, "metrics": found, "trials": trials}
    if value is None or not 0 <= value <= 1:
        return Score(None, "counted", answer)
    outcomes = {trial.outcome for trial in trials}
    outcome = outcomes.pop() if len(outcomes) == 1 else ""
    if (outcome == Outcome.PASSED) != (value == 1):  # a program may run to its end, and its answer be wrong
        outcome = ""
    return Score(value, outcome, answer, _why(trials))


def uncounted(error: Exception, generations: Sequence[str]) -> Score:
    """Some figures take several problems; whether this one spoils them, the count of all will show."""
    why = f"cannot be counted alone: {type(error).__name__}: {error}"
    return Score(None, "counted", {"generations": generations, "metrics": {}, "trials": []}, why)


def _why(trials: Sequence[Trial]) -> str:
    """The detail of the first failure."""
    return next((trial.detail for trial in trials if not trial.passed), "")


def _value(found: Mapping[str, float], full_marks: float) -> float | None:
    """The score of one problem, for which the task counted these metrics: the first, or the one that concerns it."""
    kinds = {name.partition(" ")[2] for name in found}
    if len(found) > 1 and len(kinds) == 1 and "" not in kinds:  # the same for several groups; it belongs to one
        return max(found.values()) / full_marks
    return next((number / full_marks for number in found.values()), None)
