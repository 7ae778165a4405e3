"""Where is one shape relative to another that it is not described next to?"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import RELATIONS_HEADING
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.tasks.coordinate import QUESTION
from proctor.shapes.typed import QUESTIONS, DirectionTask

LINE = "- the {} is {} the {}"


class TransitivitySettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=5, le=48)] = 7  # two with one between them, and a neighbour beyond each


class TransitivityTask(DirectionTask):
    """Shapes follow each other along one axis; only neighbours are described, in any order, from either side.

    Asked about are two that have others between them. Both also have a neighbour beyond: so each of them is said to be
    on one side of something and on the other side of something else, and no line alone tells the answer.
    """

    version = "4"
    summary = "where is A relative to B, by way of the shapes between? (four directions)"
    maker = "proctor.shapes.batch.transitivity:TransitivityMaker"
    Settings = TransitivitySettings
    examples_apart = "asked"
    answers = tuple(RELATIONS)
    group_by = ("evidence",)
    instruction = "Answer Left, Right, Above or Below."
    _axis = "x"

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        first = selected_answer or self.random.choice(self.answers)
        axis = self._axis = next(axis for axis, answers in AXES.items() if first in answers)
        row = sorted(shapes, key=lambda shape: getattr(shape, axis))
        self._describe(row, axis)
        pairs: list[tuple[str, str]] = []
        used: list[tuple[int, int]] = []
        for answer in [first, *(self.random.choice(AXES[axis]) for _ in range(1, QUESTIONS))]:
            apart = pairs_apart(len(row))
            places = self.random.choice([pair for pair in apart if pair not in used] or apart)
            used.append(places)
            if not pairs:
                self.evidence = places[1] - places[0]
            low, high = (row[place] for place in places)
            a, b = (low, high) if answer == AXES[axis][0] else (high, low)
            pairs.append((QUESTION.format(a, b), answer))
        return pairs

    def choices(self, shapes: list[Shape], question: str) -> tuple[str, ...]:
        return AXES[self._axis]  # which one it is can be seen at once

    def _describe(self, row: list[Shape], axis: str) -> None:
        low, high = (RELATIONS[answer] for answer in AXES[axis])
        lines = [
            LINE.format(before, low, after) if self.random.below(2) == 0 else LINE.format(after, high, before)
            for before, after in pairwise(row)
        ]
        self.description = "\n".join([RELATIONS_HEADING, *self.random.shuffled(lines)])

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: walks from the second shape each way until it meets the first."""
        asked = re.match(r"Where is the (.+) relative to the (.+)\?", question)
        if asked is None:
            return "(question not understood)"
        steps: dict[str, dict[str, str]] = {word: {} for word in ("left", "right", "above", "below")}
        opposites = {"left": "right", "right": "left", "above": "below", "below": "above"}
        line = r"- the (.+) is (?:to the )?(left|right|above|below)(?: of)? the (.+)"
        for shape, word, other in re.findall(line, description):
            steps[word][other] = shape
            steps[opposites[word]][shape] = other
        for word, step in steps.items():
            place = asked[2]
            while place in step:
                place = step[place]
                if place == asked[1]:
                    return word.capitalize()
        return "(not in one row)"


@cache
def pairs_apart(n: int) -> tuple[tuple[int, int], ...]:
    """The places in a row of n that have others between them and beyond them."""
    return tuple((low, high) for low in range(1, n - 1) for high in range(low + 2, n - 1))
