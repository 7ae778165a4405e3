"""Star, comment or re-score a sample of a run; without a change, list the reviews.

Reviews do not replace the original scores; they count only with --reviewed."""

from __future__ import annotations

import argparse
import time

from proctor.analysis.reviews import resolve_author
from proctor.cli.options import add_store_flag
from proctor.cli.output import print_json
from proctor.core.errors import UsageError
from proctor.core.types import Run
from proctor.store import open_store
from proctor.store.store import Store
from proctor.store.types import Review


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="run id, its prefix, or `latest`")
    parser.add_argument("sample", metavar="SAMPLE", nargs="?", help="id of the sample, or its index")
    parser.add_argument("--epoch", type=int, default=0, metavar="N", help="epoch of the sample (default: 0)")
    star = parser.add_mutually_exclusive_group()
    star.add_argument("--star", action="store_const", const=True, dest="star", help="star the sample")
    star.add_argument("--unstar", action="store_const", const=False, dest="star", help="remove your star")
    parser.add_argument("--comment", metavar="TEXT", help="comment on the sample; an empty text removes your comment")
    parser.add_argument("--score", type=float, metavar="X", help="correct score, from 0 to 1")
    parser.add_argument(
        "--author", metavar="NAME", help="name of the reviewer (default: $PROCTOR_AUTHOR or your login name)"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_store_flag(parser)


def call(args: argparse.Namespace) -> int:
    changes = {"star": args.star, "comment": args.comment, "score": args.score}
    given = {kind: body for kind, body in changes.items() if body is not None}
    if given and args.sample is None:
        raise UsageError("Which sample? proctor review RUN SAMPLE, with its id or index.")
    if args.score is not None and not 0 <= args.score <= 1:
        raise UsageError(f"--score: a score must be between 0 and 1, not {args.score}.")
    store = open_store(getattr(args, "store", None), mode="write" if given else "read")
    try:
        run = store.run(args.run)
        reviews = _review(store, run, args, given) if args.sample is not None else store.reviews(run)
        if args.json:
            print_json({"run": run.id, "reviews": reviews})
        else:
            _print(store, run, reviews)
    finally:
        store.close()
    return 0


def _review(store: Store, run: Run, args: argparse.Namespace, given: dict[str, bool | str | float]) -> list[Review]:
    """Adds the given reviews; returns all reviews of the record."""
    sample = store.sample_index(run, args.sample)
    store.record(run, sample, args.epoch)  # raises if it does not exist
    author = resolve_author(args.author) if given else ""
    for kind, body in given.items():
        store.add_review(Review(run.id, sample, args.epoch, author, kind, body))  # type: ignore[arg-type]
    return [review for review in store.reviews(run) if (review.sample, review.epoch) == (sample, args.epoch)]


def _print(store: Store, run: Run, reviews: list[Review]) -> None:
    if not reviews:
        print("no reviews")
    key = None
    for review in sorted(reviews, key=lambda review: (review.sample, review.epoch)):
        if key != (review.sample, review.epoch):
            key = (review.sample, review.epoch)
            record = store.record(run, *key)
            value = "" if record.score is None or record.score.value is None else f" {record.score.value:.3f}"
            print(f"{record.sample.id}{f' (epoch {review.epoch})' if review.epoch else ''}: {record.outcome}{value}")
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(review.created))
        print(_printable(f"  {when}  {review.author}  {_describe(review)}"))


def _describe(review: Review) -> str:
    match review.kind:
        case "star":
            return "starred it" if review.body else "removed the star"
        case "comment":
            return f"commented: {review.body}" if review.body else "removed the comment"
        case "score":
            return f"scored it {review.body:.3f}"


def _printable(line: str) -> str:
    """Replaces control characters, which could move the cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in line)
