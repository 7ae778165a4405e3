"""Leaderboards: one ranking for each task, and ranges of ranks."""

import json
import math
from typing import Any

import msgspec
import pytest
from scipy.stats import norm

import proctor as package
from conftest import Command
from proctor.analysis.leaderboard import rank_ranges, rank_runs
from proctor.core.types import Metric, Run
from proctor.metrics.statistics import proportion
from proctor.store import open_store


def run_of(candidate: str, passed: int, n: int = 100, *, created: float = 0.0, **changes: Any) -> Run:
    config = {"task": "t", "model": candidate, "settings": {"size": 3}, **changes.pop("config", {})}
    run = Run(
        id=f"{candidate}-{passed}-{created}",
        task="t",
        version="1",
        candidate=candidate,
        config=config,
        provenance={"samples_sha256": "abc", "changed_settings": ["size"]},
        created=created,
        status="done",
        n=n,
        metrics={"accuracy": proportion(passed, n), "other": proportion(1, 2)},
    )
    return msgspec.structs.replace(run, **changes)


def test_best_run_of_each_candidate_counts() -> None:
    (board,) = rank_runs([run_of("a", 50), run_of("b", 90), run_of("a", 60, created=1), run_of("a", 55, created=2)])
    assert [(entry.rank, entry.candidate, entry.run, entry.runs) for entry in board.entries] == [
        (1, "b", "b-90-0.0", 1),
        (2, "a", "a-60-1", 3),
    ]
    assert (board.metric, board.samples, board.non_default_options) == ("accuracy", 100, {"size": 3})


def test_equal_values_share_a_rank() -> None:
    (board,) = rank_runs([run_of("a", 50), run_of("b", 50), run_of("c", 40)])
    assert [entry.rank for entry in board.entries] == [1, 1, 3]


def test_other_versions_settings_and_samples_are_ranked_apart() -> None:
    runs = [
        run_of("a", 50),
        run_of("a", 50, version="2"),
        run_of("a", 50, config={"settings": {"size": 4}}),
        run_of("a", 50, provenance={"samples_sha256": "def"}),
        run_of("a", 50, config={"modality": "image"}),
    ]
    assert len(rank_runs(runs)) == 5
    (board,) = rank_runs([run_of("a", 50), run_of("b", 50, config={"temperature": 0.7, "samples": 4, "limit": 100})])
    assert [entry.options for entry in board.entries] == [{}, {"temperature": 0.7, "samples": 4}]


def test_edited_task_file_is_ranked_apart() -> None:
    def of(source: str, task: str) -> Run:
        return run_of(source, 50, task=task, provenance={"samples_sha256": "abc", "task_source": source})

    assert len(rank_runs([of("old", "own.py:Own"), of("new", "own.py:Own")])) == 2
    assert len(rank_runs([of("old", "shapes/count"), of("new", "shapes/count")])) == 1, "these have versions"


def test_incomplete_and_unscored_runs_are_not_ranked() -> None:
    nothing = Metric(None, None, None, None, 0, "wilson")
    runs = [run_of("a", 50, status="interrupted"), run_of("b", 50, metrics={}), run_of("c", 1, metrics={"m": nothing})]
    assert rank_runs(runs) == []


def test_rank_ranges_overlap_for_similar_scores() -> None:
    assert rank_ranges([proportion(k, 100) for k in (95, 52, 50, 5)]) == [(1, 1), (2, 3), (2, 3), (4, 4)]
    assert rank_ranges([proportion(k, 10) for k in (6, 5, 4)]) == [(1, 3)] * 3
    assert rank_ranges([Metric(0.9, None, None, None, 1, "student-t"), proportion(1, 100)]) == [(1, 2), (1, 2)]
    assert rank_ranges([proportion(3, 4)]) == [(1, 1)]
    assert rank_ranges([]) == []


def share(metric: Metric) -> float:
    assert metric.value is not None
    return metric.value


def reach(one: Metric, other: Metric) -> float:
    """How far the lower end of the difference lies below it."""
    assert one.low is not None
    assert other.high is not None
    return math.hypot(share(one) - one.low, other.high - share(other))


def test_two_candidates_are_separated_by_newcombe_interval() -> None:
    """His example: 56 of 70 and 48 of 80 differ by 0.0524 to 0.3339 (Newcombe 1998, method 10)."""
    one, other = proportion(56, 70), proportion(48, 80)
    assert share(one) - share(other) - reach(one, other) == pytest.approx(0.0524, abs=5e-5)
    assert rank_ranges([one, other]) == [(1, 1), (2, 2)]
    assert rank_ranges([proportion(28, 35), proportion(24, 40)]) == [(1, 2), (1, 2)], "half as many cannot tell"


def test_more_candidates_need_clearer_differences() -> None:
    """Bonferroni: two candidates just differ; among ten they do not."""
    pair = [proportion(56, 70), proportion(48, 80)]
    crowd = [*pair, *[proportion(40, 70)] * 8]
    assert rank_ranges(crowd)[1][0] == 1
    wider = norm.ppf(1 - 0.05 / (2 * 9)) / norm.ppf(0.975)
    assert 0.2 - wider * reach(*pair) < 0


def test_rank_ranges_cover_equal_candidates() -> None:
    """Among five that are all alike, a rank is wrongly ruled out in less than one case of twenty for each of them."""
    import numpy as np

    generator = np.random.default_rng(5)
    drawn = generator.binomial(200, 0.6, size=(400, 5))
    wrong = sum(ranks != (1, 5) for row in drawn for ranks in rank_ranges([proportion(int(k), 200) for k in row]))
    assert wrong / drawn.size < 0.05


def test_leaderboard_command(proctor: Command) -> None:
    for model in ("scripted/oracle", "scripted/random"):
        for size in (3, 12):
            package.evaluate("shapes/count", model, limit=30, settings={"shapes": size})
    package.evaluate("shapes/existence", "scripted/random", limit=30, epochs=2)
    boards = json.loads(proctor("leaderboard", "--json").stdout)["boards"]
    assert [(board["task"], len(board["entries"])) for board in boards] == [
        ("shapes/count", 2),
        ("shapes/count", 2),
        ("shapes/existence", 1),
    ]
    shown = proctor("leaderboard", "count").stdout
    assert "shapes/count (version 4) · shapes=12 · 30 samples" in shown
    assert "shapes/existence" not in shown
    rows = [line.split() for line in shown.splitlines() if "scripted/" in line]
    assert [(row[0], row[1], row[2], row[3]) for row in rows[:2]] == [
        ("1", "1", "scripted/oracle", "1.000"),
        ("2", "2", "scripted/random", f"{boards[0]['entries'][1]['metric']['value']:.3f}"),
    ]
    done = proctor("leaderboard", "nothing")
    assert done.returncode == 2
    assert "No complete run of nothing" in done.stderr


def test_many_runs_are_ranked_without_reading_records() -> None:
    """No record is read: the boards of a thousand runs cost no more than their list."""
    package.evaluate("shapes/count", "scripted/random", limit=5)
    store = open_store()
    (run,) = store.runs()
    for i in range(300):
        store.save(msgspec.structs.replace(run, id=f"r{i}", candidate=f"c{i}"))
    (board,) = rank_runs(store.runs())
    store.close()
    assert len(board.entries) == 301
