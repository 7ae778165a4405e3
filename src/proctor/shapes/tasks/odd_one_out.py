"""Seen from one shape, two of three others are in the same direction: which is the odd one out?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from proctor.errors import TaskError
from proctor.randomness import Stream
from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import Kind
from proctor.shapes.reading import nearer_pairs
from proctor.shapes.typed import ShapeTask

TRIES = 500  # of six shapes, every eighth canvas will do
TRIED_TRIPLES = 100  # of one canvas; of all of them, where there are not so many

Triple = tuple[int, ...]  # the indices of three shapes


class OddOneOutSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=6, le=48)] = 7  # three, and for each of them one from which it is the odd one
    description: Kind = "coordinates"


class OddOneOutTask(ShapeTask):
    """Names three shapes of which each is the odd one, seen from some shape: so their places do not tell which.

    By left and right alone this could not be had: the one in the middle is never alone on its side.
    """

    summary = "seen from A, which of three shapes is in another direction than the others? (a shape)"
    Settings = OddOneOutSettings
    instruction = (
        "There are four directions: above left, above right, below left and below right, by centres. "
        f"{ShapeTask.instruction}"
    )

    @property
    def lines_needed(self) -> int:
        return 4 if self.settings.description == "coordinates" else 3

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """A canvas with three such shapes, drawn whatever the answer; the selected one then moves to one of them."""
        triples = _triples(self.settings.shapes)
        for _ in range(TRIES):
            shapes = super().draw_shapes(random, selected_answer)
            views = Views(shapes)
            for triple in random.sample(triples, min(TRIED_TRIPLES, len(triples))):
                if all(views.pivots(triple)):
                    names = [str(shape) for shape in shapes]
                    return _exchange(shapes, names.index(selected_answer or names[0]), random.choice(triple))
        raise TaskError(f"no canvas on which any of three shapes can be the odd one, in {TRIES} tries.")

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        names = [str(shape) for shape in shapes]
        views = Views(shapes)
        triples: Sequence[Triple] = _triples(len(shapes))
        if selected_answer:
            selected = names.index(selected_answer)
            triples = [triple for triple in triples if selected in triple]
        triple = next(triple for triple in self.random.shuffled(triples) if all(views.pivots(triple)))
        pivots = dict(zip(triple, views.pivots(triple), strict=True))
        odd_ones = sorted(self.random.shuffled(triple), key=lambda odd: names[odd] != selected_answer)
        return [(self._question(names, triple, pivots[odd]), names[odd]) for odd in odd_ones]

    def _question(self, names: list[str], triple: Triple, pivots: int) -> str:
        pivot = self.random.choice([name for i, name in enumerate(names) if pivots >> i & 1])
        a, b, c = (names[i] for i in self.random.shuffled(triple))
        return (
            f"Seen from the {pivot}, two of these three shapes are in the same direction and one is in another: "
            f"the {a}, the {b} and the {c}. Which one is the odd one out?"
        )

    def choices(self, shapes: list[Shape], question: str) -> tuple[str, ...]:
        """The three that are named, without the one they are seen from."""
        named = question.partition(": ")[2]
        return tuple(name for name in super().choices(shapes, question) if name in named)

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: the direction of each shape, and the one that is alone in its own."""
        asked = re.match(r"Seen from the (.+?), .+: the (.+), the (.+) and the (.+?)\. Which", question)
        if asked is None:
            return "(question not understood)"
        left, top = nearer_pairs(description, "left"), nearer_pairs(description, "top")
        pivot, *named = asked.groups()
        directions = [((name, pivot) in left, (name, pivot) in top) for name in named]
        alone = [name for name, own in zip(named, directions, strict=True) if directions.count(own) == 1]
        return alone[0] if len(alone) == 1 else "(not one shape)"


class Views:
    """From where shapes are seen in which direction. A set of shapes is a number with their bits, for speed."""

    def __init__(self, shapes: list[Shape]) -> None:
        self._left, self._below = _before(shapes, "x"), _before(shapes, "y")

    def pivots(self, triple: Triple) -> list[int]:
        """For each of the three, the shapes from which it is the odd one."""
        a, b, c = triple
        ab, bc, ca = self._parting(a, b), self._parting(b, c), self._parting(c, a)
        themselves = 1 << a | 1 << b | 1 << c
        return [odd & ~themselves for odd in (ab & ca & ~bc, ab & bc & ~ca, bc & ca & ~ab)]

    def _parting(self, a: int, b: int) -> int:
        """The shapes between two, one way or the other, which see them in different directions (and one of the two)."""
        return (self._left[a] ^ self._left[b]) | (self._below[a] ^ self._below[b])


def _before(shapes: list[Shape], axis: str) -> list[int]:
    """For each shape, those with a smaller coordinate."""
    before = [0] * len(shapes)
    passed = 0
    for i in sorted(range(len(shapes)), key=lambda i: getattr(shapes[i], axis)):
        before[i] = passed
        passed |= 1 << i
    return before


@cache
def _triples(shapes: int) -> tuple[Triple, ...]:
    return tuple(combinations(range(shapes), 3))


def _exchange(shapes: list[Shape], a: int, b: int) -> list[Shape]:
    """The same shapes in the same order, but two of them in each other's place."""
    moved = list(shapes)
    moved[a] = msgspec.structs.replace(shapes[a], x=shapes[b].x, y=shapes[b].y)
    moved[b] = msgspec.structs.replace(shapes[b], x=shapes[a].x, y=shapes[a].y)
    return moved
