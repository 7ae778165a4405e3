"""Seen from one shape, two of three others are in the same direction: which is the odd one out?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Annotated

from msgspec import Meta, Struct

from proctor.core.errors import TaskError
from proctor.core.random import Stream
from proctor.shapes.canvas import Shape, place_kinds
from proctor.shapes.descriptions import Kind
from proctor.shapes.reading import nearer_pairs
from proctor.shapes.typed import QUESTIONS, ShapeTask

TRIES = 500  # of six shapes, every eighth canvas will do
OTHER_TRIES = 20  # threes of which one is the odd one, seen from some shape: most are
SEARCHED = 7  # shapes among which the three are searched for, while a canvas is drawn; others may see them, too
QUESTION = (
    "Seen from the {}, two of these three shapes are in the same direction and one is in another: "
    "the {}, the {} and the {}. Which one is the odd one out?"
)

Triple = tuple[int, ...]  # the indices of three shapes
Spot = tuple[int, int]


class OddOneOutSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=6, le=48)] = 7  # three, and for each of them one from which it is the odd one
    description: Kind = "coordinates"


class OddOneOutTask(ShapeTask):
    """Names three shapes of which each is the odd one, seen from some shape: so their places do not tell which.

    By left and right alone this could not be had: the one in the middle is never alone on its side.
    """

    summary = "seen from A, which of three shapes is in another direction than the others? (a shape)"
    maker = "proctor.shapes.batch.odd_one_out:OddOneOutMaker"
    Settings = OddOneOutSettings
    instruction = (
        "There are four directions: above left, above right, below left and below right, by centres. "
        f"{ShapeTask.instruction}"
    )

    @property
    def lines_needed(self) -> int:
        """Two that are in the same direction are enough: the question says that the third is in another."""
        return 3 if self.settings.description == "coordinates" else 2

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """Positions among which there are three such shapes; the selected one is put on any of the three."""
        spots = self._draw_spots(random)
        views = DirectionViews(spots)
        fitting = [triple for triple in _triples(min(SEARCHED, len(spots))) if all(views.pivots(triple))]
        spot = random.choice(random.choice(fitting))
        names, kinds = self.board.names, self.board.kinds
        selected = kinds[names.index(selected_answer)] if selected_answer else random.choice(kinds)
        drawn = random.sample([kind for kind in kinds if kind != selected], len(spots) - 1)
        drawn.insert(spot, selected)
        shapes = [Shape(*kind, x, y) for kind, (x, y) in zip(drawn, spots, strict=True)]
        return random.shuffled(shapes)

    def _draw_spots(self, random: Stream) -> list[Spot]:
        for _ in range(TRIES):
            shapes = place_kinds([("", "", "")] * self.settings.shapes, random, self.board)
            spots = [(shape.x, shape.y) for shape in shapes]
            views = DirectionViews(spots)
            if any(all(views.pivots(triple)) for triple in _triples(min(SEARCHED, len(spots)))):
                return spots
        raise TaskError(f"no canvas on which any of three shapes can be the odd one, in {TRIES} tries.")

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        names = [str(shape) for shape in shapes]
        views = DirectionViews([(shape.x, shape.y) for shape in shapes])
        if selected_answer:
            selected = names.index(selected_answer)
        else:
            selected = self.random.first(range(len(names)), lambda index: bool(views.triples_with(index)))
        triple = self.random.choice(views.triples_with(selected))
        pivots = dict(zip(triple, views.pivots(triple), strict=True))
        odd_ones = [selected, *(self.random.choice(triple) for _ in range(1, QUESTIONS))]
        first, *others = [(self._question(names, triple, pivots[odd]), names[odd]) for odd in odd_ones]
        return [first, *(self._other_question(names, triple, views) or pair for pair in others)]

    def _other_question(self, names: list[str], triple: Triple, views: DirectionViews) -> tuple[str, str] | None:
        """About three others, so that the answer is not among the choices of the first; None where none are found."""
        rest = [index for index in range(len(names)) if index not in triple]
        for _ in range(OTHER_TRIES):
            other = tuple(self.random.sample(rest, 3))
            seen = [(odd, pivots) for odd, pivots in zip(other, views.pivots(other), strict=True) if pivots]
            if seen:
                odd, pivots = self.random.choice(seen)
                return self._question(names, other, pivots), names[odd]
        return None

    def _question(self, names: list[str], triple: Triple, pivots: int) -> str:
        pivot = self.random.choice([name for i, name in enumerate(names) if pivots >> i & 1])
        return QUESTION.format(pivot, *(names[i] for i in self.random.shuffled(triple)))

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


class DirectionViews:
    """From where shapes are seen in which direction. A set of shapes is a number with their bits, for speed."""

    def __init__(self, spots: Sequence[Spot]) -> None:
        self._left, self._below = (_before([spot[axis] for spot in spots]) for axis in (0, 1))

    def triples_with(self, shape: int) -> list[Triple]:
        """Those of which each can be the odd one."""
        others = [other for other in range(len(self._left)) if other != shape]
        triples = ((shape, *pair) for pair in combinations(others, 2))
        return [triple for triple in triples if all(self.pivots(triple))]

    def pivots(self, triple: Triple) -> list[int]:
        """For each of the three, the shapes from which it is the odd one."""
        a, b, c = triple
        ab, bc, ca = self._parting(a, b), self._parting(b, c), self._parting(c, a)
        themselves = 1 << a | 1 << b | 1 << c
        return [odd & ~themselves for odd in (ab & ca & ~bc, ab & bc & ~ca, bc & ca & ~ab)]

    def _parting(self, a: int, b: int) -> int:
        """The shapes between two, one way or the other, which see them in different directions (and one of the two)."""
        return (self._left[a] ^ self._left[b]) | (self._below[a] ^ self._below[b])


def _before(coordinates: Sequence[int]) -> list[int]:
    """For each shape, those with a smaller coordinate."""
    before = [0] * len(coordinates)
    passed = 0
    for i in sorted(range(len(coordinates)), key=coordinates.__getitem__):
        before[i] = passed
        passed |= 1 << i
    return before


@cache
def _triples(shapes: int) -> tuple[Triple, ...]:
    return tuple(combinations(range(shapes), 3))
