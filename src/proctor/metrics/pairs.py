"""Predictions side by side with what was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Reference = TypeVar("Reference")


def pair_up(predictions: Sequence[str], references: Sequence[Reference]) -> list[tuple[str, Reference]]:
    """One reference to one prediction, and at least one of both: a figure over none would be made up."""
    if len(predictions) != len(references):
        raise ValueError(f"{len(predictions)} predictions, but references for {len(references)}")
    if not predictions:
        raise ValueError("there are no predictions to compare")
    return list(zip(predictions, references, strict=True))
