"""Mercury's metric: how many programs are right, and how their speed compares with that of the reference solutions."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from proctor.code.tasks.mercury import Mark, ZeroShotMercury
from proctor.metrics.passing import mean_pass_at_k

LEVELS = ("Easy", "Medium", "Hard")


class _Marking(ZeroShotMercury):
    def marks(self, generations: Sequence[Sequence[str]], docs: Sequence[Any]) -> list[Mark]:
        return [self._mark(doc, of_one) for of_one, doc in zip(generations, docs, strict=False)]


def compute_beyond_eval(
    generations_list: Sequence[Sequence[str]], reference_list: Sequence[Any], timeout: float = 10
) -> dict[str, Any]:
    """pass@k and beyond@k for each difficulty and for all problems; then, for each difficulty, how programs fared."""
    marks = _Marking(timeout=timeout).marks(generations_list, reference_list)
    by_level = {
        level: [mark for mark, doc in zip(marks, reference_list, strict=False) if doc["difficulty"] == level]
        for level in LEVELS
    }
    results: dict[str, Any] = {}
    for level, found in (*by_level.items(), ("Average", marks)):
        passing = mean_pass_at_k([(mark.tries, mark.passed) for mark in found], ZeroShotMercury.ks)
        results |= {f"{level}_{name}": value for name, value in passing.items()}
        # The mean over k programs, drawn from all of them: the same for every k.
        beyond = [mark.beyond / mark.tries for mark in found]
        results |= {f"{level}_{name.replace('pass', 'beyond')}": fmean(beyond) for name in passing}
    return results | {level: _outcomes(found) for level, found in by_level.items() if found}


def _outcomes(marks: Sequence[Mark]) -> dict[str, int]:
    passed = sum(mark.passed for mark in marks)
    return {"failed@cases": sum(mark.tries for mark in marks) - passed, "passed": passed}
