"""Shapes move about: which one is leftmost, or third highest, in the end?"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from proctor.shapes.canvas import HALF_WIDTH, Shape
from proctor.shapes.places import SIDES, place_along, read_place
from proctor.shapes.reading import places_in_text
from proctor.shapes.typed import ShapeTask

WAYS = {"x": ("to the left", "to the right"), "y": ("down", "up")}
ACROSS = {"x": "y", "y": "x"}
MOVE = "The {} moves {} {}."
QUESTION = "Which shape is {} now?"


class MoveSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=48)] = 7
    events: Annotated[int, Meta(ge=1, le=100)] = 10
    description: Literal["coordinates"] = "coordinates"


class MoveTrackingTask(ShapeTask):
    """Every shape is equally likely to be asked for, however often it moved, by its place from any of the four sides.

    There is always a shape that can move. On a new canvas each can: between two columns of the grid there is a strip
    that stays clear of both, and no shape is level with it. Later, the shape that moved last could at least move back.
    """

    summary = "shapes move; which one is leftmost, second highest … now? (a shape)"
    maker = "proctor.shapes.batch.move_tracking:MoveTrackingMaker"
    Settings = MoveSettings
    extends_description = True
    instruction = f"x grows to the right and y grows upwards. {ShapeTask.instruction}"

    @property
    def lines_needed(self) -> int:
        return int(self.settings.shapes + self.settings.events)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        now = list(shapes)
        self.description = "\n".join(self._move(now) for _ in range(self.settings.events))
        first, *others = self.wanted_shapes([str(shape) for shape in now], selected_answer)
        axis = self.random.choice(tuple(SIDES))
        # Along the other axis every shape may stand anywhere: what stands where tells nothing about the first answer.
        asked = [(first, axis), *((name, ACROSS[axis]) for name in others)]
        return [(QUESTION.format(place_along(now, name, axis)), name) for name, axis in asked]

    def _move(self, shapes: list[Shape]) -> str:
        """Moves one of those that can, each as likely as the others."""
        bound = self.board.bound
        index = self.random.first(range(len(shapes)), lambda index: bool(free_moves(shapes, index, bound)))
        axis, distance = self.random.choice(free_moves(shapes, index, bound))
        shape = shapes[index]
        shapes[index] = msgspec.structs.replace(shape, **{axis: getattr(shape, axis) + distance})
        return MOVE.format(shape, abs(distance), WAYS[axis][distance > 0])

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: adds up the steps of each shape and counts how many others are nearer."""
        places = {name: list(place) for name, place in places_in_text(description).items()}
        signs = {"left": (0, -1), "right": (0, 1), "up": (1, 1), "down": (1, -1)}
        for name, distance, way in re.findall(r"The (.+) moves (\d+) (?:to the )?(\w+)\.", description):
            axis, sign = signs[way]
            places[name][axis] += sign * int(distance)
        side, number = read_place(question.removeprefix("Which shape is ").split(" now?")[0])
        axis, sign = signs[{"top": "up", "bottom": "down"}.get(side, side)]
        ahead = {name: sign * place[axis] for name, place in places.items()}
        nearer = {name: sum(other > own for other in ahead.values()) for name, own in ahead.items()}
        return next((name for name, count in nearer.items() if count == number), "(no such place)")


def free_moves(shapes: list[Shape], index: int, bound: int) -> list[tuple[str, int]]:
    """Along which axis a shape can move, and how far: in bounds, touching no other and level with none in the end."""
    shape, others = shapes[index], shapes[:index] + shapes[index + 1 :]
    reach = bound - HALF_WIDTH[shape.size]
    moves = []
    for axis, across in ACROSS.items():
        start, beside = getattr(shape, axis), getattr(shape, across)
        taken = {start}
        for other in others:
            place = getattr(other, axis)
            near = HALF_WIDTH[shape.size] + HALF_WIDTH[other.size]
            if abs(getattr(other, across) - beside) <= near:
                taken.update(range(place - near, place + near + 1))
            else:
                taken.add(place)
        moves += [(axis, end - start) for end in range(-reach, reach + 1) if end not in taken]
    return moves
