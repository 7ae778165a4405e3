"""Metrics of episodes: successes, numbers measured in them, and delays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.lags import Lags, merge_lags
from proctor.core.types import IF_FAULTS_FAIL, Metric, Output, Record, Score
from proctor.metrics.statistics import student_mean
from proctor.metrics.summary import MeanScore

AGENTS_FAULTS = (
    EpisodeOutcome.AGENT_CRASH,
    EpisodeOutcome.AGENT_HANG,
    EpisodeOutcome.STOPPED,
)  # for an agent can stop itself, too
LOST = "lost"  # prefix of the counts of retried attempts
LAGS = ("observation", "reaction", "action")  # in order of time


class Facts(Struct, frozen=True):
    """What a scored episode adds to the metrics of a run."""

    means: dict[str, float] = {}
    counts: dict[str, int] = {}
    lags: dict[str, Lags] = {}


class EpisodeTally:
    """Faults are no play: they count in none of these, but as failures in `success_if_faults_fail`.

    Attempts that were made again are counted by their outcome.
    """

    def __init__(self, name: str, facts: Callable[[Output], Facts | None]) -> None:
        self._lost: Counter[str] = Counter()
        self._episodes = 0
        self._played, self._with_faults = MeanScore(name), MeanScore(f"{name}{IF_FAULTS_FAIL}")
        self._facts_of = facts  # None for an episode that was not played
        self._facts: dict[int, list[Facts]] = {}

    def add(self, record: Record) -> None:
        score = record.score
        if score is None or not record.outputs:
            return
        self._played.add(record)
        self._episodes += 1
        for output in record.outputs[:-1]:
            self._lost[f"{LOST}_{output.finish}"] += 1
        failed = score.outcome in AGENTS_FAULTS or _is_lost(record.outputs[-1], score)
        self._with_faults.add(msgspec.structs.replace(record, score=Score(0, score.outcome)) if failed else record)
        facts = self._facts_of(record.outputs[-1])
        if facts is not None:
            self._facts.setdefault(record.sample.index, []).append(facts)

    def metrics(self) -> dict[str, Metric]:
        # Epochs of one episode are not independent, so the unit is the episode.
        found = self._played.metrics() | self._with_faults.metrics()
        groups = list(self._facts.values())
        for name in _names(facts.means for group in groups for facts in group):
            found[name] = student_mean([average for group in groups if (average := _average(group, name)) is not None])
        episodes = [facts for group in groups for facts in group]
        for name in _names(facts.counts for facts in episodes):
            total = sum(facts.counts.get(name, 0) for facts in episodes)
            found[name] = Metric(total, None, None, None, len(episodes), "count")
        lost = {name: Metric(n, None, None, None, self._episodes, "count") for name, n in sorted(self._lost.items())}
        return found | lost | _lags(episodes)


class _Played(Struct, frozen=True):
    """The fields that the outputs of all agent tasks share."""

    outcome: EpisodeOutcome
    lags: dict[str, Lags] = {}
    by_agent: bool = False


_read = msgspec.json.Decoder(_Played).decode


def _is_lost(output: Output, score: Score) -> bool:
    """Whether the environment or the evaluator failed after the agent had begun, which may have caused it."""
    try:
        played = _read(output.text)
    except msgspec.DecodeError:
        return False
    return played.by_agent or (played.outcome.is_play and score.outcome == EpisodeOutcome.JUDGE_ERROR)


def gather_lags(records: Iterable[Record]) -> dict[str, Lags]:
    """The delays of all scored episodes, by kind; empty if the records are not of agents."""
    found: dict[str, list[Lags]] = {}
    for record in records:
        if record.score is None or not record.outputs:
            continue
        try:
            played = _read(record.outputs[-1].text)
        except msgspec.DecodeError:
            continue
        for name, lags in played.lags.items() if played.outcome.is_play else ():
            found.setdefault(name, []).append(lags)
    order = [*LAGS, *sorted(found.keys() - set(LAGS))]
    return {name: merge_lags(found[name]) for name in order if name in found}


def _names(dictionaries: Iterable[dict[str, float]] | Iterable[dict[str, int]]) -> list[str]:
    return list(dict.fromkeys(name for names in dictionaries for name in names))


def _average(group: list[Facts], name: str) -> float | None:
    values = [facts.means[name] for facts in group if name in facts.means]
    return math.fsum(values) / len(values) if values else None


def _lags(episodes: list[Facts]) -> dict[str, Metric]:
    """Summarizes delays in milliseconds, over all actions of all episodes."""
    found = {}
    for name in LAGS:
        lags = merge_lags(facts.lags[name] for facts in episodes if name in facts.lags)
        if lags.n:
            figures = {"p50": lags.quantile(0.5), "p95": lags.quantile(0.95), "max": lags.longest}
            for which, value in figures.items():
                found[f"{name}_{which}_ms"] = Metric(value, None, None, None, lags.n, "quantile")
    return found
