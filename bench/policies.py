"""Policies for agent_envs.py."""

from __future__ import annotations

import threading
from typing import Any


def policy(observation: Any) -> int:
    """Keeps a pole upright."""
    return int(observation[2] + 0.5 * observation[3] > 0)


def hang(observation: Any) -> int:
    threading.Event().wait()
    return 0
