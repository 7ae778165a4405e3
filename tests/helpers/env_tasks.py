"""Runs tasks in stepped environments with the agents of `env_agents.py`."""

from __future__ import annotations

from typing import Any

import msgspec

import proctor
from helpers.paths import HELPERS
from proctor.agents.envs.event_log import EpisodeEnding
from proctor.analysis.report import Report

PLAYERS = HELPERS / "env_agents.py"


def play(agent: str, task: str = "agents/catch", limit: int = 3, **options: Any) -> Report:
    settings = options.pop("settings", {})
    agent = f"{PLAYERS}:{agent}" if agent[0].isupper() or agent in ("policy", "left") else agent
    return proctor.evaluate(task, agent=agent, limit=limit, settings={"timeout": 60} | settings, **options)


def endings(report: Report) -> list[EpisodeEnding]:
    return [msgspec.json.decode(record.outputs[-1].text, type=EpisodeEnding) for record in report.records()]
