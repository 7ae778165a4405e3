"""Who reviews, and what people's scores change: the mean score with theirs instead of the original ones."""

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

LONGEST_NAME = 100
METRIC = "score"  # not the task's own name: a task may count otherwise than by the mean of its scores


def reviewer(given: str | None = None) -> str:
    """The name under which a person's reviews are stored."""
    name = (given or os.environ.get("PROCTOR_AUTHOR", "")).strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"The name of an author is one line of at most {LONGEST_NAME} letters, not {name!r}.")
    try:
        return name or getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in some containers
        raise UsageError("Who are you? Say --author NAME, or set PROCTOR_AUTHOR.") from None


class Reviews(Struct, frozen=True):
    replaced: int  # scores
    of: int
    by: dict[str, int]  # whose they are
    before: Metric  # the same mean of the original scores

    def __str__(self) -> str:
        if not self.replaced:
            return "nobody has scored a sample anew"
        people = ", ".join(f"{author} {count}" for author, count in self.by.items())
        before = "nothing" if self.before.value is None else f"{self.before.value:.3f}"
        return f"{self.replaced:,} of {self.of:,} scores are people's ({people}); before, the mean score was {before}"


def count_reviews(store: Store, run: Run) -> tuple[Run, Reviews]:
    """The run with the mean of the reviewed scores as its metric, overall and in its groups, and what that changed."""
    outcomes: Counter[str] = Counter()
    errors = 0

    def mean() -> MeanScore:
        return MeanScore(METRIC)

    def watched() -> Iterator[Record]:
        nonlocal errors
        for record in store.records(run, reviewed=True):
            errors += record.error is not None
            if record.score is not None:
                outcomes[record.score.outcome] += 1
            yield record

    before, _ = summarise(store.records(run), mean, ())
    metrics, groups = summarise(watched(), mean, tuple(run.groups))
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
    return counted, Reviews(len(scores), outcomes.total(), dict(sorted(by.items())), before[METRIC])
