"""Shapes in a line are swapped: which one stands where in the end?"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Shape
from proctor.shapes.places import name_place as name_rank
from proctor.shapes.places import read_place
from proctor.shapes.typed import ShapeTask

HEADING = "Shapes stand in a line, from top to bottom:"
SWAP = "The {} and the {} swap places."
QUESTION = "Which shape is {} now?"
SCALE = 2**31


Swap = tuple[int, ...]  # two places


class ShuffleSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=48)] = 7
    events: Annotated[int, Meta(ge=0, le=100)] = 15


class ShuffleTrackingTask(ShapeTask):
    """Every shape of the line is equally likely to be the answer, and of n shapes, one in n is where it began.

    After few swaps more of them still are. So where a shape of these is to be asked for, it sometimes exchanges its
    part in the history with a shape that has moved, just often enough.
    """

    summary = "shapes in a line are swapped; which one stands where? (a shape)"
    maker = "proctor.shapes.batch.shuffle_tracking:ShuffleTrackingMaker"
    Settings = ShuffleSettings

    @property
    def lines_needed(self) -> int:
        """Whoever leaves out a line does not know what happened there; but of two shapes, there is only one swap."""
        return int(1 + self.settings.events) if self.settings.shapes > 2 else 1

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        line = [str(shape) for shape in sorted(shapes, key=lambda shape: -shape.y)]
        swaps = [tuple(self.random.sample(range(len(line)), 2)) for _ in range(self.settings.events)]
        asked = self.wanted_shapes(line, selected_answer)
        swaps = self._with_a_part_for(line.index(asked[0]), swaps, len(line))
        lines = [f"{HEADING} {', '.join(line)}."]
        for i, j in swaps:
            lines.append(SWAP.format(line[i], line[j]))
            line[i], line[j] = line[j], line[i]
        self.description = "\n".join(lines)
        return [(QUESTION.format(name_place(line.index(shape), len(line))), shape) for shape in asked]

    def _with_a_part_for(self, place: int, swaps: list[Swap], length: int) -> list[Swap]:
        """The swaps, or if the shape at this place ends where it began, often these with its place exchanged."""
        line = list(range(length))
        for i, j in swaps:
            line[i], line[j] = line[j], line[i]
        moved = [i for i in range(length) if line[i] != i]
        kept = self.random.below(SCALE) < kept_of_scale(length, len(swaps))
        number = self.random.below(
            max(1, len(moved))
        )  # drawn also where it is not needed: the batch path draws in step
        if kept or line[place] != place or not moved:
            return swaps
        exchanged = {place: moved[number], moved[number]: place}
        return [tuple(exchanged.get(i, i) for i in swap) for swap in swaps]

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


@cache
def kept_of_scale(shapes: int, events: int) -> int:
    """Of SCALE shapes that end where they began, how many may be asked for, so that of all asked for one in n does.

    After e random swaps of n shapes, a shape is where it began with a probability of (1 + (n-1) ((n-3)/(n-1))^e) / n.
    """
    if shapes == 2:  # both move with every swap
        return SCALE
    whole: int = (shapes - 1) ** events
    rest: int = (shapes - 1) * (shapes - 3) ** events
    return SCALE * whole // (whole + rest)


def name_place(index: int, length: int) -> str:
    """The index counts from the top, as the line is listed."""
    return name_rank(length - 1 - index, length, "y")
