"""`success` among the metrics of an evaluator, by which an episode is scored."""

from __future__ import annotations

import math
from typing import Any

SUCCESS = "success"


class SuccessError(ValueError):
    """The success is missing or invalid."""


def read_success(metrics: dict[str, Any], required: bool = True) -> float | None:
    """Returns a number between 0 and 1; None if it is missing and not required."""
    if SUCCESS not in metrics:
        if not required:
            return None
        raise SuccessError(
            "success is missing from its metrics: give True, False or a number from 0 to 1. "
            "An evaluator of tasks that have none says has_success = False"
        )
    value = metrics[SUCCESS]
    if not isinstance(value, bool | int | float):
        raise SuccessError(f"success is {value!r:.100}, of type {type(value).__name__}: neither a bool nor a number")
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise SuccessError(f"success is {value!r:.100}: it must be between 0 and 1")
    return float(value)


def read_decision(value: Any) -> bool:
    """Reads an environment's success, a bool or any number equal to 0 or 1."""
    if hasattr(value, "item") and getattr(value, "size", 0) == 1:
        value = value.item()
    if read_success({SUCCESS: value}) not in (0, 1):
        raise SuccessError(f"success is {value!r:.100}: an environment must say True or False")
    return bool(value)


def without_infinite(metrics: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns the metrics without infinite and NaN values, and the names of those."""
    bad = [name for name, value in metrics.items() if isinstance(value, float) and not math.isfinite(value)]
    return {name: None if name in bad else value for name, value in metrics.items()}, bad
