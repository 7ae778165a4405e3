"""Patches in the form that diff models write: which file, what it was, what is to be done, and the change."""

from __future__ import annotations

from proctor.code.patches import apply_diff, split_diff

__all__ = ["apply_diff", "split_diff"]
