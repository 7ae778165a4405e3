"""Reviews of a run: the name of their author, and the mean score with people's scores."""

from __future__ import annotations

import getpass
import os
from collections import Counter
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from proctor.core.errors import UsageError
from proctor.core.types import Metric, Record, Run
from proctor.metrics.summary import MeanScore, summarise
from proctor.store.reviews import StoredReviews
from proctor.store.store import Store

MAX_NAME_LENGTH = 100
REVIEWED_METRIC = "score"  # not the task's main metric, which need not be the mean of its scores


def resolve_author(given: str | None = None) -> str:
    """The name under which a person's reviews are stored."""
    name = (given or os.environ.get("PROCTOR_AUTHOR", "")).strip()
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise UsageError(f"The name of an author is one line of at most {MAX_NAME_LENGTH} characters, not {name!r}.")
    try:
        return name or getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        raise UsageError("This user has no name: give --author NAME, or set PROCTOR_AUTHOR.") from None


class Reviews(Struct, frozen=True):
    replaced: int  # scores that people replaced
    of: int  # all scores
    by: dict[str, int]  # author -> number of scores
    before: Metric  # the mean of the original scores

    def __str__(self) -> str:
        if not self.replaced:
            return "no sample was re-scored"
        people = ", ".join(f"{author} {count}" for author, count in self.by.items())
        before = "nothing" if self.before.value is None else f"{self.before.value:.3f}"
        return f"{self.replaced:,} of {self.of:,} scores are people's ({people}); before, the mean score was {before}"


def count_reviews(store: Store, run: Run) -> tuple[Run, Reviews]:
    """The run with the mean of the reviewed scores as its metric, and a summary of the reviews."""
    outcomes: Counter[str] = Counter()
    errors = 0

    def mean() -> MeanScore:
        return MeanScore(REVIEWED_METRIC)

    def reviewed_records() -> Iterator[Record]:
        nonlocal errors
        for record in store.records(run, reviewed=True):
            errors += record.error is not None
            if record.score is not None:
                outcomes[record.score.outcome] += 1
            yield record

    before, _ = summarise(store.records(run), mean, ())
    metrics, groups = summarise(reviewed_records(), mean, tuple(run.groups))
    scores = StoredReviews(store.reviews(run)).scores.values()
    by = Counter(given[-1].author for given in scores)
    counted = msgspec.structs.replace(
        run,
        metrics=metrics,
        groups=groups,
        n=outcomes.total(),
        errors=errors,
        outcomes=dict(sorted(outcomes.items())),
    )
    return counted, Reviews(len(scores), outcomes.total(), dict(sorted(by.items())), before[REVIEWED_METRIC])
