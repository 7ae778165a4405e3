"""Is one shape between two others?"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import Kind
from proctor.shapes.reading import nearer_pairs
from proctor.shapes.typed import YesNoTask

AXES = {"x": "left and right", "y": "above and below"}
QUESTION = "Looking only at {}, is the {} between the {} and the {}?"
TRIES = 8  # every second one will do, unless there are five shapes in all


class BetweenSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=5, le=48)] = 7  # five, to have the same places in questions of either answer
    description: Kind = "coordinates"


class BetweenTask(YesNoTask):
    """Of any three shapes, the one in the middle is between the others; but its place must not tell.

    So five shapes are drawn and put in order. Asked about is the second or the fourth; the two others are the
    third and the first or last. The second is between the first and the third, and not between the third and the
    last. Each place is as likely with one answer as with the other, and so is each pair of ends.

    The first and the last are drawn so that seen along the other axis, they are on the same side of the two others:
    shapes that are near to each other one way are farther apart the other way, which would tell something too.
    """

    summary = "is A between B and C, by left and right or by above and below? (Yes / No)"
    maker = "proctor.shapes.batch.between:BetweenMaker"
    Settings = BetweenSettings

    @property
    def lines_needed(self) -> int:
        return 3 if self.settings.description == "coordinates" else 2

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        return [(self._question(shapes, answer == "Yes"), answer) for answer in self.wanted_answers(selected_answer)]

    def _question(self, shapes: list[Shape], between: bool) -> str:
        words, (first, second, third, last) = self._draw_four(shapes)
        a, b = self.random.shuffled([third, first if between else last])
        return QUESTION.format(words, second, a, b)

    def _draw_four(self, shapes: list[Shape]) -> tuple[str, list[Shape]]:
        """The first, second, third and last of five; after TRIES draws, wherever they are the other way."""
        for _ in range(TRIES):
            axis, words = self.random.choice(tuple(AXES.items()))
            five = sorted(self.random.sample(shapes, 5), key=lambda shape: getattr(shape, axis))
            if self.random.below(2):
                five.reverse()
            four = [*five[:3], five[4]]
            first, *middle, last = (shape.y if axis == "x" else shape.x for shape in four)
            if all((first < place) == (last < place) for place in middle):
                break
        return words, four

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: between two shapes, one has exactly one of them before it."""
        asked = re.match(r"Looking only at (\w+) .+, is the (.+) between the (.+) and the (.+)\?", question)
        if asked is None:
            return "(question not understood)"
        pairs = nearer_pairs(description, "left" if asked[1] == "left" else "top")
        return "Yes" if sum((end, asked[2]) in pairs for end in (asked[3], asked[4])) == 1 else "No"
