"""What is wrong with a task as a whole: its text hides the canvas, or one answer fits too many questions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from proctor.core.types import Finding, Sample
from proctor.shapes.loader import Item, load_item
from proctor.shapes.questions import things_in

if TYPE_CHECKING:
    from proctor.shapes.task import Task

AUDITED = 1000  # items: they show a constant answer that gains eight points on a chance of one half
TRIED = 5  # constant answers
MARGIN = 0.02  # a constant answer that gains no more than this is no fault
ERROR_RATE = 1e-4  # of tasks without a fault, so many are called faulty

SHOWN = "the description shows what is asked about"
VARIED = "no constant answer scores well above chance"


def audit(task: Task, declared: bool) -> Iterator[Finding]:
    """Where `extends_description` is declared in the task's own class, it is believed."""
    items = [load_item(task, index, AUDITED) for index in range(AUDITED)]
    yield Finding(SHOWN, "" if declared else next(_hidden(task, items), ""))
    yield _find_constant(task, items)


# -- the canvas ------------------------------------------------------------------------------------


def _hidden(task: Task, items: Sequence[Item]) -> Iterator[str]:
    cure = (
        "self.description takes the place of the description of the canvas: set `extends_description = True` in the "
        "class to add the text to that description, or `extends_description = False` if it is complete by itself"
    )
    for index, item in enumerate(items):
        if not item.canvas and (what := find_hidden(item)):
            yield f"sample {task.seed}-{index}: {what}. {cure}"


def find_hidden(item: Item) -> str:
    """What is asked about and stands only on the canvas, for an item whose text takes the place of its description."""
    names = [str(shape) for shape in item.shapes]
    unseen = [name for name in names if name not in item.story.lower()]
    said, asked = things_in(item.story), things_in(item.question)
    for thing in [*asked, *(thing for thing in things_in(item.answer) if len(thing) == 3)]:
        missing = [name for name in unseen if thing <= set(name.split())]
        if missing and thing not in said:
            return f"the answer depends on the {missing[0]}, which is on the canvas but not in the description"
    if not item.story.strip():
        return "the description is empty"
    if not asked and not things_in(item.answer) and 0 < len(unseen) < len(names):
        return f"the description leaves out the {unseen[0]}, which is on the canvas"
    return ""


# -- constant answers ------------------------------------------------------------------------------


def _find_constant(task: Task, items: Sequence[Item]) -> Finding:
    counts = Counter(item.answer for item in items)
    # A set of answers that is not closed has as many as occur; a single one cannot be missed.
    chance = sum(1 / (len(item.choices) or max(2, len(counts))) for item in items) / len(items)
    samples = [_sample(task, index, item) for index, item in enumerate(items)]
    scores = {answer: _score(task, samples, answer) for answer, _ in counts.most_common(TRIED)}
    best = max(scores, key=scores.__getitem__)
    seen = f"{best!r} scores {scores[best] / len(items):.3f} of {len(items):,} samples, chance is {chance:.3f}"
    # Whichever answer had been the best would have been reported: the error is shared among all of them.
    allowed = ERROR_RATE / len(counts)
    if _binomial_tail(math.floor(scores[best]), len(items), min(1, chance + MARGIN)) >= allowed:
        return Finding(VARIED, "", seen)
    return Finding(VARIED, _cause(task, counts[best] / len(items), scores[best] / len(items)), seen)


def _cause(task: Task, share: float, score: float) -> str:
    if score > share + MARGIN:
        return (
            f"it is the right answer to {share:.3f} of them alone: score or parse_answer gives points to wrong answers"
        )
    closed = "" if task.answers else ", name them in `answers`"
    return (
        f"make all answers equally frequent{closed}: `select_expected_answer` returns self.balanced_answer(i), and "
        "`generate_questions` returns first a pair with selected_answer as its answer"
    )


def _sample(task: Task, index: int, item: Item) -> Sample:
    return Sample(str(index), index, item.question, item.answer, choices=item.choices)


def _score(task: Task, samples: Sequence[Sample], text: str) -> float:
    return math.fsum(task.score_text(sample, text).value or 0 for sample in samples)


def _binomial_tail(hits: int, n: int, chance: float) -> float:
    """How likely so many hits or more are, of n that have this chance each."""
    if chance >= 1:
        return 1.0
    log = math.log
    logs = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log(chance) + (n - k) * log(1 - chance)
        for k in range(hits, n + 1)
    )
    return math.fsum(map(math.exp, logs))
