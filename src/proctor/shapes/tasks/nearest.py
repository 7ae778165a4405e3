"""Which shape is nearest to this one, or third farthest from it?"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from proctor.core.errors import TaskError
from proctor.core.random import Stream
from proctor.shapes.canvas import Shape
from proctor.shapes.places import ORDINALS, from_nearer_end
from proctor.shapes.reading import places_in_text
from proctor.shapes.typed import ShapeTask

TRIES = 200  # of 48 shapes, every second canvas is kept
NEAREST, FARTHEST = "nearest to", "farthest from"
QUESTION = "Which of the other shapes is {} the {}?"


class NearestSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=3, le=48)] = 7
    description: Literal["coordinates"] = "coordinates"  # the others do not tell how far apart shapes are


class NearestTask(ShapeTask):
    """Ranks shapes by their distance from another, the reference, from which no two are equally far.

    Each of them is equally likely to be asked for, however near it is.
    """

    summary = "which shape is nearest to A, third farthest from it …? (a shape)"
    maker = "proctor.shapes.batch.nearest:NearestMaker"
    Settings = NearestSettings
    instruction = f"Distances are straight lines from centre to centre. {ShapeTask.instruction}"

    @property
    def lines_needed(self) -> int:
        return int(self.settings.shapes)

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """A canvas is kept if a shape drawn blindly, other than the selected one, can be the reference.

        So every pair of reference and answer is equally likely. Were more canvases kept, a shape that can be the
        reference itself would be the answer more often, since it leaves fewer to be seen from.
        """
        for _ in range(TRIES):
            shapes = super().draw_shapes(random, selected_answer)
            if _is_reference(random.choice(_without(selected_answer, shapes)), shapes):
                return shapes
        raise TaskError(f"no canvas of {len(shapes)} shapes without equal distances in {TRIES} tries.")

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        candidates = _without(selected_answer, shapes)
        reference = self.random.first(candidates, lambda shape: _is_reference(shape, shapes))
        others = sorted(_without(str(reference), shapes), key=lambda shape: _squared_distance(reference, shape))
        line = [str(shape) for shape in others]
        return [
            (QUESTION.format(name_rank(line.index(name), len(line)), reference), name)
            for name in self.wanted_shapes(line, selected_answer)
        ]

    def choices(self, shapes: list[Shape], question: str) -> tuple[str, ...]:
        """All but the reference."""
        return tuple(name for name in super().choices(shapes, question) if name not in question)

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the numbers in the text: counts for each shape how many others come before it."""
        asked = re.search(rf"is (?:([\w-]+) )?({NEAREST}|{FARTHEST}) the (.+?)\?", question)
        if asked is None:
            return "(question not understood)"
        places = {name: complex(*place) for name, place in places_in_text(description).items()}
        reference = places.pop(asked[3])
        sign = 1 if asked[2] == NEAREST else -1
        lengths = {name: sign * abs(place - reference) for name, place in places.items()}
        number = ORDINALS.index(asked[1]) if asked[1] else 0
        found = [name for name, own in lengths.items() if sum(other < own for other in lengths.values()) == number]
        return found[0] if len(found) == 1 else "(not one shape)"


def _without(name: str | None, shapes: list[Shape]) -> list[Shape]:
    return [shape for shape in shapes if str(shape) != name]


def _squared_distance(a: Shape, b: Shape) -> int:
    return (a.x - b.x) ** 2 + (a.y - b.y) ** 2


def _is_reference(shape: Shape, shapes: list[Shape]) -> bool:
    """Whether no two shapes are equally far from this one."""
    return len({_squared_distance(shape, other) for other in shapes}) == len(shapes)


def name_rank(index: int, length: int) -> str:
    number, words = from_nearer_end(index, length, NEAREST, FARTHEST)
    return f"{ORDINALS[number]} {words}" if number else words
