"""Pairs of predictions and references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Reference = TypeVar("Reference")


def pair_up(predictions: Sequence[str], references: Sequence[Reference]) -> list[tuple[str, Reference]]:
    """Pair each prediction with its reference; refuses empty or unequal lists."""
    if len(predictions) != len(references):
        raise ValueError(f"{len(predictions)} predictions, but references for {len(references)}")
    if not predictions:
        raise ValueError("no predictions: expected at least one")
    return list(zip(predictions, references, strict=True))
