"""Is one shape between two others?"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from proctor.core.random import Stream
from proctor.shapes.canvas import HALF_WIDTH, Shape
from proctor.shapes.descriptions import Kind
from proctor.shapes.reading import nearer_pairs
from proctor.shapes.typed import YesNoTask

AXES = {"x": "left and right", "y": "above and below"}
ACROSS = {"x": "y", "y": "x"}
QUESTION = "Looking only at {}, is the {} between the {} and the {}?"
TRIES = 8  # canvases, of which more than half will do; of twenty shapes and more, few

# Ranks of shapes among five or seven: an end with which the answer is Yes, the one asked about, the other end, and an
# end with which the answer is No. Of seven, there are two such ways.
Ranks = tuple[int, ...]
OF_FIVE: tuple[Ranks, ...] = ((0, 1, 2, 4),)
OF_SEVEN: tuple[Ranks, ...] = ((0, 1, 2, 6), (2, 3, 6, 4))


class Way(NamedTuple):
    """How to ask: along an axis, one way or the other, about shapes of these ranks."""

    axis: str
    backwards: bool
    ranks: Ranks

    def among(self, shapes: list[Shape]) -> list[int]:
        """The indices of the shapes that have these ranks."""
        key = [getattr(shape, self.axis) for shape in shapes].__getitem__
        row = sorted(range(len(shapes)), key=key, reverse=self.backwards)
        return [row[rank] for rank in self.ranks]


class BetweenSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=5, le=48)] = 7  # five, to have the same places in questions of either answer
    description: Kind = "coordinates"


class BetweenTask(YesNoTask):
    """Of any three shapes, the one in the middle is between the others; but its place must not tell.

    So several shapes are drawn and put in order, and the ranks of those asked about are such that each is as likely
    with one answer as with the other, and so is each pair of ends.

    The answer decides between two ends. Which of these two has which place along the other axis is decided by a coin:
    so nothing that is seen along that axis tells anything. Canvases are drawn until the two touch no shape either way.
    """

    summary = "is A between B and C, by left and right or by above and below? (Yes / No)"
    maker = "proctor.shapes.batch.between:BetweenMaker"
    Settings = BetweenSettings
    _drawn: tuple[list[Shape], Way, list[int]] = ([], Way("x", False, ()), [])  # a canvas, and what is asked about it

    @property
    def lines_needed(self) -> int:
        return 3 if self.settings.description == "coordinates" else 2

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        way = self._draw_way(self.settings.shapes, random)
        for _ in range(TRIES):
            shapes = super().draw_shapes(random, selected_answer)
            four = way.among(shapes)
            exchanged = _exchange(shapes, ACROSS[way.axis], four[0], four[3])
            if not (_touches_any(exchanged, four[0]) or _touches_any(exchanged, four[3])):
                break
        else:
            exchanged = shapes
        if random.below(2):
            shapes = exchanged
        self._drawn = shapes, way, four
        return shapes

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        pairs: list[tuple[str, str]] = []
        for answer in self.wanted_answers(selected_answer):
            canvas, way, four = self._drawn
            if pairs or canvas is not shapes:
                way = self._draw_way(len(shapes), self.random)
                four = way.among(shapes)
            yes_end, asked, end, no_end = (shapes[i] for i in four)
            a, b = self.random.shuffled([end, yes_end if answer == "Yes" else no_end])
            pairs.append((QUESTION.format(AXES[way.axis], asked, a, b), answer))
        return pairs

    def _draw_way(self, shapes: int, random: Stream) -> Way:
        """Drawn before the canvas: which ranks are asked about must not depend on which canvases will do."""
        ranks = random.choice(ranks_to_ask(shapes))
        drawn = sorted(random.sample(range(shapes), 1 + max(ranks_to_ask(shapes)[0])))
        return Way(random.choice(tuple(AXES)), bool(random.below(2)), tuple(drawn[rank] for rank in ranks))

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: between two shapes, one has exactly one of them before it."""
        asked = re.match(r"Looking only at (\w+) .+, is the (.+) between the (.+) and the (.+)\?", question)
        if asked is None:
            return "(question not understood)"
        pairs = nearer_pairs(description, "left" if asked[1] == "left" else "top")
        return "Yes" if sum((end, asked[2]) in pairs for end in (asked[3], asked[4])) == 1 else "No"


def ranks_to_ask(shapes: int) -> tuple[Ranks, ...]:
    return OF_SEVEN if shapes >= 1 + max(OF_SEVEN[0]) else OF_FIVE


def _exchange(shapes: list[Shape], axis: str, a: int, b: int) -> list[Shape]:
    """The same shapes, but two of them have each other's place along an axis."""
    exchanged = list(shapes)
    exchanged[a] = msgspec.structs.replace(shapes[a], **{axis: getattr(shapes[b], axis)})
    exchanged[b] = msgspec.structs.replace(shapes[b], **{axis: getattr(shapes[a], axis)})
    return exchanged


def _touches_any(shapes: list[Shape], index: int) -> bool:
    one = shapes[index]
    return any(
        max(abs(one.x - other.x), abs(one.y - other.y)) <= HALF_WIDTH[one.size] + HALF_WIDTH[other.size]
        for other in shapes[:index] + shapes[index + 1 :]
    )
