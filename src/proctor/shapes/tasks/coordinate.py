"""Where is one shape relative to another, by their coordinates?"""

from __future__ import annotations

import re
from itertools import permutations
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from proctor.core.random import Stream
from proctor.shapes.canvas import Shape, place_kinds
from proctor.shapes.reading import places_in_text
from proctor.shapes.typed import DirectionTask

QUESTION = "Where is the {} relative to the {}?"
DIRECTIONS = ("Left", "Right", "Above", "Below", "Above Left", "Above Right", "Below Left", "Below Right")


class CoordinateSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=4, le=48)] = 7  # fewer than four cannot show all directions at once
    description: Literal["coordinates"] = "coordinates"


class CoordinateTask(DirectionTask):
    """Compares x with x and y with y: a shape at the same height is just Left or Right.

    Neither the canvas nor the question alone tells the answer: every canvas has pairs that stand in each of the
    eight directions, and the one asked about is any pair that stands in the direction wanted.
    """

    version = "4"
    summary = "where is A relative to B, by their coordinates? (eight directions)"
    maker = "proctor.shapes.batch.coordinate:CoordinateMaker"
    Settings = CoordinateSettings
    answers = DIRECTIONS
    instruction = (
        "x grows to the right and y grows upwards. Answer with Left, Right, Above or Below where the shapes have the "
        "same x or the same y, else with two words: Above Left, Above Right, Below Left or Below Right."
    )

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """Four shapes at the corners of a rectangle of the grid, three of them exactly level; the rest anywhere."""
        lines = range(self.board.cells)
        rows, columns = random.sample(lines, 2), random.sample(lines, 2)
        corners = [row * len(lines) + column for row in rows for column in columns]
        others = [cell for cell in range(len(lines) ** 2) if cell not in corners]
        cells = corners + random.sample(others, self.settings.shapes - 4)
        shapes = place_kinds(random.sample(self.board.kinds, self.settings.shapes), random, self.board, cells)
        shapes[1] = msgspec.structs.replace(shapes[1], y=shapes[0].y)
        shapes[2] = msgspec.structs.replace(shapes[2], x=shapes[0].x)
        return random.shuffled(shapes)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            a, b = self.random.choice([(a, b) for a, b in permutations(shapes, 2) if direction(a, b) == answer])
            pairs.append((QUESTION.format(a, b), answer))
        return pairs

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the numbers in the text, by their signs."""
        places = places_in_text(description)
        asked = re.match(r"Where is the (.+) relative to the (.+)\?", question)
        if asked is None:
            return "(question not understood)"
        (ax, ay), (bx, by) = places[asked[1]], places[asked[2]]
        words = {(0, 1): "Above", (0, -1): "Below", (1, 1): "Right", (1, -1): "Left"}
        differences = enumerate((ay - by, ax - bx))
        return " ".join(words[axis, 1 if d > 0 else -1] for axis, d in differences if d)


def direction(a: Shape, b: Shape) -> str:
    vertical = "" if a.y == b.y else "Above" if a.y > b.y else "Below"
    horizontal = "" if a.x == b.x else "Right" if a.x > b.x else "Left"
    return f"{vertical} {horizontal}".strip()
