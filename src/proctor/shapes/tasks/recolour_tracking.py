"""Colours change places: which one has the shape at this place in the end?"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from proctor.core.random import Stream
from proctor.shapes.canvas import Board, Kind, Shape, place_kinds
from proctor.shapes.typed import ColourTask

EVENT = "All {0} shapes turn {1}, and at the same time all {1} shapes turn {0}."
QUESTION = "What colour is the shape at ({}, {}) now?"


class RecolourSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=4, le=48)] = 9  # at least one of each colour
    events: Annotated[int, Meta(ge=1, le=100)] = 15
    description: Literal["coordinates"] = "coordinates"


class RecolourTrackingTask(ColourTask):
    """Every colour is on the canvas, at the end as at the beginning; asked about is any shape that has the one wanted.

    An event exchanges two colours. Whatever came before and comes after, another pair would have led to another
    answer: no event can be left out, and none tells anything about the others.
    """

    summary = "colours change places; what colour is the shape at this place now? (a colour)"
    maker = "proctor.shapes.batch.recolour_tracking:RecolourTrackingMaker"
    Settings = RecolourSettings
    extends_description = True

    exchanges: list[list[str]]  # which two colours change places, on the canvas drawn last

    @property
    def lines_needed(self) -> int:
        """The shape's own line, and every event."""
        return 1 + int(self.settings.events)

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """The canvas before the events, which are drawn with it: all questions about it are about one history."""
        shapes = place_kinds(draw_kinds(self.settings.shapes, random, self.board), random, self.board)
        self.exchanges = [random.sample(self.board.colours, 2) for _ in range(self.settings.events)]
        return shapes

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        colours, lines = [shape.colour for shape in shapes], []
        for a, b in self.exchanges:
            lines.append(EVENT.format(a, b))
            colours = [b if colour == a else a if colour == b else colour for colour in colours]
        self.description = "\n".join(lines)
        self.evidence = self.lines_needed
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            asked = self.random.choice([s for s, colour in zip(shapes, colours, strict=True) if colour == answer])
            pairs.append((QUESTION.format(asked.x, asked.y), answer))
        return pairs

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: the colour that goes back, event by event, to the one in the list."""
        place = question[question.index("(") : question.index(")") + 1]
        began = next((line.split()[2] for line in description.splitlines() if line.endswith(f" at {place}")), None)
        events = re.findall(r"^All (\w+) shapes turn (\w+),", description, re.M)
        colours: dict[str, None] = dict.fromkeys(re.findall(r"^- \w+ (\w+) ", description, re.M))
        for colour in colours:
            earlier = colour
            for a, b in reversed(events):
                earlier = {a: b, b: a}.get(earlier, earlier)
            if earlier == began:
                return colour
        return "(no shape there)"


def draw_kinds(n: int, random: Stream, board: Board) -> list[Kind]:
    """n kinds with all colours among them."""
    drawn = random.sample(board.kinds, len(board.kinds))
    firsts = [next(kind for kind in drawn if kind[1] == colour) for colour in board.colours]
    others = [kind for kind in drawn if kind not in firsts]
    return random.shuffled([*firsts, *others[: n - len(firsts)]])
