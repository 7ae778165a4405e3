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


class BetweenSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=5, le=48)] = 7  # five, to have the same places in questions of either answer
    description: Kind = "coordinates"


class BetweenTask(YesNoTask):
    """Of any three shapes, the one in the middle is between the others; but its place must not tell.

    So five shapes are drawn and put in order. Asked about is the second or the fourth; the two others are the
    third and the first or last. The second is between the first and the third, and not between the third and the
    last. Each place is as likely with one answer as with the other, and so is each pair of ends.
    """

    summary = "is A between B and C, by left and right or by above and below? (Yes / No)"
    Settings = BetweenSettings

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        return [(self._question(shapes, answer == "Yes"), answer) for answer in self.wanted_answers(selected_answer)]

    def _question(self, shapes: list[Shape], between: bool) -> str:
        axis, words = self.random.choice(tuple(AXES.items()))
        five = sorted(self.random.sample(shapes, 5), key=lambda shape: getattr(shape, axis))
        if self.random.below(2):
            five.reverse()
        first, second, third, _, last = five
        a, b = self.random.shuffled([third, first if between else last])
        return f"Looking only at {words}, is the {second} between the {a} and the {b}?"

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: between two shapes, one has exactly one of them before it."""
        asked = re.match(r"Looking only at (\w+) .+, is the (.+) between the (.+) and the (.+)\?", question)
        if asked is None:
            return "(question not understood)"
        pairs = nearer_pairs(description, "left" if asked[1] == "left" else "top")
        return "Yes" if sum((end, asked[2]) in pairs for end in (asked[3], asked[4])) == 1 else "No"
