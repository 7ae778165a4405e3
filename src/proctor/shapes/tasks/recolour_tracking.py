"""Shapes turn to other colours: which one has the shape at this place in the end?"""

from __future__ import annotations

import math
import re
from itertools import product
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from proctor.randomness import Stream
from proctor.shapes.canvas import FORMS, SIZES, Board, Kind, Shape, place_kinds
from proctor.shapes.typed import ColourTask

EVENT = "The {} turns {}."
QUESTION = "What colour is the shape at ({}, {}) now?"
GROUPS = tuple(product(SIZES, FORMS))


class RecolourSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=4, le=42)] = 9  # at least one of each colour
    events: Annotated[int, Meta(ge=1, le=100)] = 15
    description: Literal["coordinates"] = "coordinates"


class RecolourTrackingTask(ColourTask):
    """Every colour is there in the end, whatever the answer will be; asked about is any shape that has the one wanted.

    The history is drawn backwards, from a canvas of all colours. Kinds are different at every moment, so that a
    shape can be named by the kind it has just then; and many shapes have the same size and form, so that it takes
    the whole history to know which of them it is. The questions need the canvas that was drawn last, with its history.
    """

    summary = "shapes turn to other colours; what colour is the one at this place now? (a colour)"
    maker = "proctor.shapes.batch.recolour_tracking:RecolourTrackingMaker"
    Settings = RecolourSettings
    extends_description = True
    absent_kinds = len(GROUPS)  # one of each, so that every shape can turn at every moment

    recolourings: list[tuple[int, str]]  # which shape turns to which colour, of the canvas drawn last

    @property
    def lines_needed(self) -> int:
        return int(self.settings.shapes + self.settings.events)

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """The canvas before the events; they are found on the way back to it."""
        kinds = draw_kinds(self.settings.shapes, random, self.board)
        self.recolourings = []
        for _ in range(self.settings.events):
            index = random.below(len(kinds))
            size, colour, form = kinds[index]
            self.recolourings.insert(0, (index, colour))
            kinds[index] = size, random.choice(free_colours(size, form, kinds, self.board)), form
        return place_kinds(kinds, random, self.board)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        now, lines = list(shapes), []
        for index, colour in self.recolourings:
            lines.append(EVENT.format(now[index], colour))
            now[index] = msgspec.structs.replace(now[index], colour=colour)
        self.description = "\n".join(lines)
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            asked = self.random.choice([shape for shape in now if shape.colour == answer])
            pairs.append((QUESTION.format(asked.x, asked.y), answer))
        return pairs

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: keeps where each name is to be found, event by event."""
        places = dict(re.findall(r"- (.+) at (\(.+\))", description))
        for size, old, form, new in re.findall(r"The (\w+) (\w+) (\w+) turns (\w+)\.", description):
            places[f"{size} {new} {form}"] = places.pop(f"{size} {old} {form}")
        return next(
            (name.split()[1] for name, place in places.items() if f"at {place} now" in question), "(no shape there)"
        )


def draw_kinds(n: int, random: Stream, board: Board) -> list[Kind]:
    """n kinds with all colours among them, of as few sizes and forms as leave every shape a colour to turn to."""
    together = len(board.colours) - 1
    groups = random.sample(GROUPS, math.ceil(n / together))
    groups = random.shuffled([groups[i % len(groups)] for i in range(n)])
    kinds = [(size, colour, form) for (size, form), colour in zip(groups, random.shuffled(board.colours), strict=False)]
    for size, form in groups[len(kinds) :]:
        kinds.append((size, random.choice(free_colours(size, form, kinds, board)), form))
    return random.shuffled(kinds)


def free_colours(size: str, form: str, kinds: list[Kind], board: Board) -> list[str]:
    """What a shape can turn to, without becoming of the same kind as another."""
    return [colour for colour in board.colours if (size, colour, form) not in kinds]
