"""What the page asks, answered from a store: the same for the server and for an export."""

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

MOST_LINES = 1_000
MOST_LOG = 64 * 1024 * 1024  # bytes of an episode's log
PLOT_WIDTH = 640
TOLD_IN_THE_LIST = {"limit"}  # how many samples there are has a column of its own


class StoreQueries:
    """Belongs to the thread that opened the store."""

    def __init__(self, store: Store, author: str = "") -> None:
        self._store = store
        self._author = author  # who reviews; nobody, where the store is only looked at
        self._drawings = Drawings()
        self._apart: dict[str, str] = {}  # run -> settings; those of a run never change

    def changes(self) -> dict[str, Any]:
        return {"mark": self._store.change_mark()}

    def runs(self) -> dict[str, Any]:
        runs = self._store.runs()
        if self._apart.keys() != {run.id for run in runs}:
            self._apart = told_apart(runs)
        return {"runs": [self._listed(run, self._apart[run.id]) for run in runs]}

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
        told = msgspec.to_builtins(run) | {
            "status": self._store.status(run),
            "tags": run.tags,
            "n": n,
            "errors": errors,
        }
        rescored = len(StoredReviews(self._store.reviews(run)).scores)
        return {
            "run": told,
            "counts": counts,
            "kinds": kinds,
            "rescored": rescored,
            "notice": truncation_notice(run),
        }

    def reviewed(self, name: str) -> dict[str, Any]:
        """What came out with the scores of people in the place of the original ones."""
        counted, reviews = count_reviews(self._store, self._store.run(name))
        return {"metrics": counted.metrics, "words": str(reviews)}

    def lines(self, name: str, wanted: RecordFilter, start: int, limit: int) -> dict[str, Any]:
        run = self._store.run(name)
        start, limit = max(0, start), min(max(0, limit), MOST_LINES)
        return {"total": self._store.count(run, wanted), "lines": self._store.summaries(run, wanted, start, limit)}

    def sample(self, name: str, sample: int, epoch: int, wanted: RecordFilter) -> dict[str, Any]:
        run = self._store.run(name)
        record = self._store.record(run, sample, epoch)
        near = self._store.neighbours(run, wanted, sample, epoch)
        total = self._store.count(run, wanted)
        # It is one of the wanted if a line stands at its place.
        here = self._store.summaries(run, wanted, near.position, 1)
        among = bool(here) and (here[0].sample, here[0].epoch) == (sample, epoch)
        return self.record(run, record, StoredReviews(self._store.reviews(run))) | {
            "previous": _place(near.before),
            "next": _place(near.after),
            "position": near.position if among else None,
            "total": total,
            "author": self._author,
        }

    def record(self, run: Run, record: Record, opinions: StoredReviews) -> dict[str, Any]:
        """All there is to a sample but its neighbours."""
        place = (record.sample.index, record.epoch)
        said = [of.get(place, []) for of in (opinions.stars, opinions.scores, opinions.comments)]
        return {
            "run": {"id": run.id, "task": run.task, "candidate": run.candidate},
            "record": record,
            "artifacts": self._store.artifacts(run, *place),
            "drawing": self._drawings.draw(run, record.sample),
            "reviews": sorted((review for of_kind in said for review in of_kind), key=lambda review: review.created),
        }

    def events(self, name: str, file: str) -> Timeline:
        size, log = self._store.open_artifact(self._store.run(name), file)
        with log:
            return read_timeline(log.read(min(size, MOST_LOG)))

    def comparison(self, names: Sequence[str], *, shared: bool = False, by_id: bool = False) -> dict[str, Any]:
        from proctor.analysis.comparison import compare_runs  # numpy

        runs = [self._store.run(name) for name in names]
        try:
            found = compare_runs(self._store, runs, shared=shared, by_id=by_id)
        except NotComparableError as error:
            return {"refused": str(error)}
        return found.to_dict(flips=False) | {"conclusions": found.conclusions, "flips": _flips(found)}

    def plots(self, names: Sequence[str]) -> dict[str, Any]:
        """All kinds of plots that these runs have something to show in."""
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

    def leaderboard(self, task: str, among: Sequence[Run] | None = None) -> dict[str, Any]:
        """Of some runs, or of all in the store."""
        runs = self._store.runs() if among is None else among
        return {"boards": rank_runs(run for run in runs if run.task == task)}

    def review(self, review: Review) -> Review:
        """Stores what a reviewer says of a sample that there is."""
        run = self._store.run(review.run)
        self._store.record(run, review.sample, review.epoch)
        return self._store.add_review(msgspec.structs.replace(review, run=run.id))


def told_apart(runs: Sequence[Run]) -> dict[str, str]:
    """For each run its version, settings and options, where others of the same task do not share them."""
    by_task: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_task[run.task].append(run)
    found: dict[str, str] = {}
    for alike in by_task.values():
        names = set(differing_options(alike)) - TOLD_IN_THE_LIST
        several = len({run.version for run in alike}) > 1
        for run in alike:
            told = {name: value for name, value in result_options(run).items() if name in names} if names else {}
            found[run.id] = format_options({"version": run.version, **told} if several else told)
    return found


def _flips(found: Comparison) -> list[dict[str, Any]]:
    """Every sample that flipped, with its values in all runs, the baseline's first; None where it is the baseline's."""
    rows: dict[int, dict[str, Any]] = {}
    for number, contrast in enumerate(found.contrasts, 1):
        for flip in (*contrast.gained, *contrast.lost):
            row = rows.setdefault(
                flip.sample,
                {
                    "sample": flip.sample,
                    "sample_id": flip.sample_id,
                    "better": flip.second > flip.first,
                    "values": [flip.first] + [None] * len(found.contrasts),
                },
            )
            row["values"][number] = flip.second
    return [rows[sample] for sample in sorted(rows)]


def _place(place: RecordKey | None) -> dict[str, int] | None:
    return None if place is None else {"sample": place[0], "epoch": place[1]}
