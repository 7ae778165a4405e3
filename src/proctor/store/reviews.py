"""What people say of records, as far as it counts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from proctor.core.types import Record, Score
from proctor.store.types import RecordKey, Review

REVIEWED = "reviewed"  # the outcome of a record that a person scored


def apply_review(record: Record, review: Review) -> Record:
    """The record with a person's score instead of its own, which is told with the reason."""
    score = record.score
    was = "not scored" if score is None or score.value is None else f"{score.value:g}"
    why = f"re-scored by {review.author}: was {was} ({record.outcome})"
    told = (score.why if score else "") or (record.error.message if record.error else "")
    given = Score(float(review.body), REVIEWED, score.answer if score else None, f"{why}\n{told}".strip())
    return msgspec.structs.replace(record, score=given, error=None)


class StoredReviews:
    """The reviews that count: of each author the newest of a kind."""

    def __init__(self, reviews: Iterable[Review]) -> None:
        newest: dict[tuple[RecordKey, str, str], Review] = {}
        for review in reviews:
            key = ((review.sample, review.epoch), review.kind, review.author)
            newest.pop(key, None)  # so that the newest stands last
            newest[key] = review
        self.stars: dict[RecordKey, list[Review]] = {}
        self.comments: dict[RecordKey, list[Review]] = {}
        self.scores: dict[RecordKey, list[Review]] = {}
        kinds = {"star": self.stars, "comment": self.comments, "score": self.scores}
        for (place, kind, _), review in newest.items():
            if kind == "score" or review.body:
                kinds[kind].setdefault(place, []).append(review)
