"""The policy of the bench of worlds: keeps a pole upright."""

from __future__ import annotations

from typing import Any


def policy(observation: Any) -> int:
    return int(observation[2] + 0.5 * observation[3] > 0)
