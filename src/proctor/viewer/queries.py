"""Queries of the page, answered from a store, for the server and the export."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.analysis.leaderboard import rank_runs
from proctor.analysis.report import truncation_notice
from proctor.analysis.reviews import count_reviews
from proctor.core.errors import NotComparableError, UsageError
from proctor.core.options import differing_options, format_options, result_options
from proctor.core.types import TRUNCATED, UNPARSED, Record, Run
from proctor.store.reviews import StoredReviews
from proctor.store.store import Store
from proctor.store.types import RecordFilter, RecordKey, Review
from proctor.viewer.drawings import Drawings
from proctor.viewer.timeline import Timeline, read_timeline

if TYPE_CHECKING:
    from proctor.analysis.comparison import Comparison

MAX_LINES = 1_000
MAX_LOG_BYTES = 64 * 1024 * 1024  # bytes of an episode's log
PLOT_WIDTH = 640
OPTIONS_WITH_COLUMN = {"limit"}  # the list has a column for the number of samples


class StoreQueries:
    """Answers queries; belongs to the thread that opened the store."""

    def __init__(self, store: Store, author: str = "") -> None:
        self._store = store
        self._author = author  # of new reviews; empty if the store is read-only
        self._drawings = Drawings()
        self._options: dict[str, str] = {}  # run -> differing options

    def changes(self) -> dict[str, Any]:
        return {"mark": self._store.change_mark()}

    def runs(self) -> dict[str, Any]:
        runs = self._store.runs()
        if self._options.keys() != {run.id for run in runs}:
            self._options = describe_run_options(runs)
        return {"runs": [self._listed(run, self._options[run.id]) for run in runs]}

    def _listed(self, run: Run, settings: str) -> dict[str, Any]:
        n, errors = self._store.progress(run)
        return {
            "id": run.id,
            "task": run.task,
            "candidate": run.candidate,
            "settings": settings,
            "tags": run.tags,
            "created": run.created,
            "status": self._store.status(run),
            "total": run.total,
            "n": n,
            "errors": errors,
            "metric_name": run.main_metric,
            "metric": run.metrics.get(run.main_metric),
        }

    def run(self, name: str) -> dict[str, Any]:
        run = self._store.run(name)
        counts = self._store.counts(run)
        kinds = {kind: self._store.count(run, RecordFilter(outcome=kind)) for kind in ("pass", "fail")}
        kinds |= {kind: counts.get(kind, 0) for kind in ("error", UNPARSED, TRUNCATED)}
        n, errors = self._store.progress(run)
        fields = msgspec.to_builtins(run) | {
            "status": self._store.status(run),
            "tags": run.tags,
            "n": n,
            "errors": errors,
        }
        rescored = len(StoredReviews(self._store.reviews(run)).scores)
        return {
            "run": fields,
            "counts": counts,
            "kinds": kinds,
            "rescored": rescored,
            "notice": truncation_notice(run),
        }

    def reviewed(self, name: str) -> dict[str, Any]:
        """The metrics with people's scores instead of the original ones."""
        counted, reviews = count_reviews(self._store, self._store.run(name))
        return {"metrics": counted.metrics, "words": str(reviews)}

    def lines(self, name: str, record_filter: RecordFilter, start: int, limit: int) -> dict[str, Any]:
        run = self._store.run(name)
        start, limit = max(0, start), min(max(0, limit), MAX_LINES)
        return {
            "total": self._store.count(run, record_filter),
            "lines": self._store.summaries(run, record_filter, start, limit),
        }

    def sample(self, name: str, sample: int, epoch: int, record_filter: RecordFilter) -> dict[str, Any]:
        run = self._store.run(name)
        record = self._store.record(run, sample, epoch)
        neighbours = self._store.neighbours(run, record_filter, sample, epoch)
        total = self._store.count(run, record_filter)
        # The sample passes the filter if its line is at its position.
        lines = self._store.summaries(run, record_filter, neighbours.position, 1)
        matches = bool(lines) and (lines[0].sample, lines[0].epoch) == (sample, epoch)
        return self.record(run, record, StoredReviews(self._store.reviews(run))) | {
            "previous": _key_object(neighbours.before),
            "next": _key_object(neighbours.after),
            "position": neighbours.position if matches else None,
            "total": total,
            "author": self._author,
        }

    def record(self, run: Run, record: Record, reviews: StoredReviews) -> dict[str, Any]:
        """A record with its drawing, files and reviews."""
        key = (record.sample.index, record.epoch)
        by_kind = [kind.get(key, []) for kind in (reviews.stars, reviews.scores, reviews.comments)]
        return {
            "run": {"id": run.id, "task": run.task, "candidate": run.candidate},
            "record": record,
            "artifacts": self._store.artifacts(run, *key),
            "drawing": self._drawings.draw(run, record.sample),
            "reviews": sorted((review for some in by_kind for review in some), key=lambda review: review.created),
        }

    def events(self, name: str, file: str) -> Timeline:
        size, log = self._store.open_artifact(self._store.run(name), file)
        with log:
            return read_timeline(log.read(min(size, MAX_LOG_BYTES)))

    def comparison(self, names: Sequence[str], *, shared: bool = False, by_id: bool = False) -> dict[str, Any]:
        from proctor.analysis.comparison import compare_runs  # numpy

        runs = [self._store.run(name) for name in names]
        try:
            comparison = compare_runs(self._store, runs, shared=shared, by_id=by_id)
        except NotComparableError as error:
            return {"refused": str(error)}
        return comparison.to_dict(flips=False) | {
            "conclusions": comparison.conclusions,
            "flips": _flips(comparison),
        }

    def plots(self, names: Sequence[str]) -> dict[str, Any]:
        """Every kind of plot that is possible for these runs."""
        from proctor.analysis.figures import KINDS, make_figure  # numpy

        runs = [self._store.run(name) for name in names]
        plots = []
        for kind in KINDS:
            try:
                drawing = make_figure(self._store, runs, kind).plot.draw(PLOT_WIDTH)
            except UsageError:
                continue
            plots.append({"kind": kind, "svg": drawing.svg(), "words": drawing.words})
        return {"plots": plots}

    def leaderboard(self, task: str, runs: Sequence[Run] | None = None) -> dict[str, Any]:
        """The rankings of a task, by default over all runs of the store."""
        runs = self._store.runs() if runs is None else runs
        return {"boards": rank_runs(run for run in runs if run.task == task)}

    def review(self, review: Review) -> Review:
        """Stores a review; raises an error if the sample does not exist."""
        run = self._store.run(review.run)
        self._store.record(run, review.sample, review.epoch)
        return self._store.add_review(msgspec.structs.replace(review, run=run.id))


def describe_run_options(runs: Sequence[Run]) -> dict[str, str]:
    """For each run, the version, settings and options in which runs of its task differ."""
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    described: dict[str, str] = {}
    for alike in by_task.values():
        names = set(differing_options(alike)) - OPTIONS_WITH_COLUMN
        several = len({run.version for run in alike}) > 1
        for run in alike:
            options = {name: value for name, value in result_options(run).items() if name in names} if names else {}
            described[run.id] = format_options({"version": run.version, **options} if several else options)
    return described


def _flips(comparison: Comparison) -> list[dict[str, Any]]:
    """The samples that flipped, with their values: the baseline's, then each run's or None if equal."""
    rows: dict[int, dict[str, Any]] = {}
    for number, contrast in enumerate(comparison.contrasts, 1):
        for flip in (*contrast.gained, *contrast.lost):
            row = rows.setdefault(
                flip.sample,
                {
                    "sample": flip.sample,
                    "sample_id": flip.sample_id,
                    "better": flip.second > flip.first,
                    "values": [flip.first] + [None] * len(comparison.contrasts),
                },
            )
            row["values"][number] = flip.second
    return [rows[sample] for sample in sorted(rows)]


def _key_object(key: RecordKey | None) -> dict[str, int] | None:
    return None if key is None else {"sample": key[0], "epoch": key[1]}
