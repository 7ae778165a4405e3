"""Shapes in a line are swapped: which one stands where in the end?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from proctor.randomness import Stream
from proctor.shapes.answers import parse_shape
from proctor.shapes.canvas import KINDS, Shape, place_kinds
from proctor.shapes.task import QUESTIONS, Task
from proctor.types import Sample

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh")


class ShuffleSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=22)] = 7  # positions are named from both ends, up to the eleventh
    events: Annotated[int, Meta(ge=0, le=100)] = 5


class ShuffleTrackingTask(Task):
    """Every shape of the line is equally likely to be asked for, whatever happened to it: no single cue helps."""

    summary = "shapes in a line are swapped; which one stands where? (a shape)"
    Settings = ShuffleSettings
    answers = tuple(" ".join(kind) for kind in KINDS)
    instruction = "Answer with the shape's size, colour and form."

    def select_expected_answer(self, i: int, n: int) -> str:
        return self.balanced_answer(i)

    def parse_answer(self, text: str) -> str | None:
        return parse_shape(text)

    def score(self, expected: str, actual: str) -> float:
        return float(expected == actual)

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """The selected shape, where there is one, among others of any kind: each of them could be the one."""
        names = [selected_answer] if selected_answer else []
        kinds = [kind for kind in KINDS if " ".join(kind) in names]
        others = [kind for kind in KINDS if kind not in kinds]
        kinds += random.sample(others, self.settings.shapes - len(kinds))
        return place_kinds(random.shuffled(kinds), random)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        line = [str(shape) for shape in shapes]
        lines = [f"Shapes stand in a line, from top to bottom: {', '.join(line)}."]
        for _ in range(self.settings.events):
            i, j = self.random.sample(range(len(line)), 2)
            lines.append(f"The {line[i]} and the {line[j]} swap places.")
            line[i], line[j] = line[j], line[i]
        self.description = "\n".join(lines)
        asked = self.random.sample(line, min(QUESTIONS, len(line)))
        if selected_answer is not None:
            asked = [selected_answer, *(shape for shape in asked if shape != selected_answer)]
        return [(f"Which shape is {_place(line.index(shape), len(line))} now?", shape) for shape in asked]

    def proofs(self, sample: Sample) -> Iterator[str]:
        yield from self.compare_with_key(sample, solve)


def _place(index: int, length: int) -> str:
    from_end = length - 1 - index
    return f"{ORDINALS[index]} from the top" if index <= from_end else f"{ORDINALS[from_end]} from the bottom"


def solve(description: str, question: str) -> str:
    """The answer from the words alone: keeps the place of every shape instead of the line."""
    first, *events = description.splitlines()
    line = first.partition(": ")[2].rstrip(".").split(", ")
    asked = re.match(r"Which shape is (\w+) from the (top|bottom)", question)
    if asked is None:
        return "(question not understood)"
    index = ORDINALS.index(asked[1])
    index = index if asked[2] == "top" else len(line) - 1 - index
    place = {shape: position for position, shape in enumerate(line)}
    for event in events:
        a, b = re.findall(r"[Tt]he (\w+ \w+ \w+)", event)
        place[a], place[b] = place[b], place[a]
    return next(shape for shape, position in place.items() if position == index)
