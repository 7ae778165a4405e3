"""Metrics of episodes: how many succeeded, with what reward, after how many steps, and how late everybody was."""

from __future__ import annotations

import math

import msgspec

from proctor.agents.events import Ending
from proctor.agents.lags import merged
from proctor.agents.outcome import Outcome
from proctor.metrics.statistics import student_mean
from proctor.metrics.summary import MeanScore
from proctor.types import Metric, Record, Score

AGENTS_FAULTS = (Outcome.AGENT_CRASH, Outcome.AGENT_HANG)
LAGS = ("observation", "reaction", "action")  # in the order in which they come about
COUNTS = ("idle", "unreadable", "late", "dropped", "late_ticks", "slow_ticks")


class EpisodeTally:
    """Faults are no play: they count in none of these, but as failures in `success_if_faults_fail`."""

    def __init__(self, name: str) -> None:
        self._played, self._with_faults = MeanScore(name), MeanScore(f"{name}_if_faults_fail")
        self._endings: dict[int, list[Ending]] = {}

    def add(self, record: Record) -> None:
        score = record.score
        if score is None or not record.outputs:
            return
        self._played.add(record)
        failed = score.outcome in AGENTS_FAULTS
        self._with_faults.add(msgspec.structs.replace(record, score=Score(0, score.outcome)) if failed else record)
        ending = msgspec.json.decode(record.outputs[-1].text, type=Ending)
        if ending.outcome.is_play:
            self._endings.setdefault(record.sample.index, []).append(ending)

    def metrics(self) -> dict[str, Metric]:
        # Epochs of one episode are not independent, so the unit is the episode.
        found = self._played.metrics() | self._with_faults.metrics()
        groups = list(self._endings.values())
        found["reward"] = student_mean([math.fsum(e.reward for e in group) / len(group) for group in groups])
        found["length"] = student_mean([math.fsum(e.length for e in group) / len(group) for group in groups])
        endings = [ending for group in groups for ending in group]
        timed = any(ending.clock != "step" for ending in endings)
        for name in COUNTS:
            total = sum(getattr(ending, name) for ending in endings)
            if total or (timed and name != "unreadable"):
                found[name] = Metric(total, None, None, None, len(endings), "count")
        return found | self._lags(endings)

    def _lags(self, endings: list[Ending]) -> dict[str, Metric]:
        """In milliseconds, over all actions of all episodes."""
        found = {}
        for name in LAGS:
            lags = merged(ending.lags[name] for ending in endings if name in ending.lags)
            if lags.n:
                figures = {"p50": lags.quantile(0.5), "p95": lags.quantile(0.95), "max": lags.longest}
                for which, value in figures.items():
                    found[f"{name}_{which}_ms"] = Metric(value, None, None, None, lags.n, "quantile")
        return found
