"""Shapes in a line are swapped: which one stands where in the end?"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Shape
from proctor.shapes.places import name_place as name_rank
from proctor.shapes.places import read_place
from proctor.shapes.typed import ShapeTask

HEADING = "Shapes stand in a line, from top to bottom:"
SWAP = "The {} and the {} swap places."
QUESTION = "Which shape is {} now?"


class ShuffleSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=48)] = 7
    events: Annotated[int, Meta(ge=0, le=100)] = 5


class ShuffleTrackingTask(ShapeTask):
    """Every shape of the line is equally likely to be asked for, whatever happened to it: no single cue helps."""

    summary = "shapes in a line are swapped; which one stands where? (a shape)"
    maker = "proctor.shapes.batch.shuffle_tracking:ShuffleTrackingMaker"
    Settings = ShuffleSettings

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        line = [str(shape) for shape in sorted(shapes, key=lambda shape: -shape.y)]
        lines = [f"{HEADING} {', '.join(line)}."]
        for _ in range(self.settings.events):
            i, j = self.random.sample(range(len(line)), 2)
            lines.append(SWAP.format(line[i], line[j]))
            line[i], line[j] = line[j], line[i]
        self.description = "\n".join(lines)
        asked = self.wanted_shapes(line, selected_answer)
        return [(QUESTION.format(name_place(line.index(shape), len(line))), shape) for shape in asked]

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: keeps the place of every shape instead of the line."""
        first, *events = description.splitlines()
        line = first.partition(": ")[2].rstrip(".").split(", ")
        side, number = read_place(question.removeprefix("Which shape is ").split(" now?")[0])
        index = number if side == "top" else len(line) - 1 - number
        place = {shape: position for position, shape in enumerate(line)}
        for event in events:
            a, b = re.findall(r"[Tt]he (\w+ \w+ \w+)", event)
            place[a], place[b] = place[b], place[a]
        return next(shape for shape, position in place.items() if position == index)


def name_place(index: int, length: int) -> str:
    """The index counts from the top, as the line is listed."""
    return name_rank(length - 1 - index, length, "y")
