"""Reviews of records by people, and the ones that are in effect."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proctor.core.types import Record, Score
from proctor.store.types import RecordKey, Review

REVIEWED = "reviewed"  # the outcome of a record that a person scored


def apply_review(record: Record, review: Review) -> Record:
    """Replace the record's score with the reviewer's; `why` keeps the original score and reason."""
    score = record.score
    original = "not scored" if score is None or score.value is None else f"{score.value:g}"
    why = f"re-scored by {review.author}: was {original} ({record.outcome})"
    reason = (score.why if score else "") or (record.error.message if record.error else "")
    answer = score.answer if score else None
    reviewed = Score(float(review.body), REVIEWED, answer, f"{why}\n{reason}".strip())
    return msgspec.structs.replace(record, score=reviewed, error=None)


class StoredReviews:
    """The reviews in effect: each author's newest of a kind."""

    def __init__(self, reviews: Iterable[Review]) -> None:
        newest: dict[tuple[RecordKey, str, str], Review] = {}
        for review in reviews:
            key = ((review.sample, review.epoch), review.kind, review.author)
            newest.pop(key, None)  # moves the newest to the end
            newest[key] = review
        self.stars: dict[RecordKey, list[Review]] = {}
        self.comments: dict[RecordKey, list[Review]] = {}
        self.scores: dict[RecordKey, list[Review]] = {}
        kinds = {"star": self.stars, "comment": self.comments, "score": self.scores}
        for (record_key, kind, _), review in newest.items():
            if kind == "score" or review.body:
                kinds[kind].setdefault(record_key, []).append(review)
