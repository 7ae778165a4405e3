"""Are there as many shapes of one kind as of another?"""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Board, Shape
from proctor.shapes.descriptions import Kind, lines_to_mention
from proctor.shapes.patterns import (
    PATTERNS,
    Pattern,
    Values,
    all_values,
    capacity,
    count_values,
    name_values,
    shapes_in_text,
    words_of_values,
)
from proctor.shapes.typed import YesNoTask

QUESTION = "Are there as many {} as {}?"
TWICE = 2  # values that have a number in common, so that there are two equal ones to compare

Option = tuple[Pattern, dict[int, list[Values]]]  # attributes, and their values by how many shapes have them


class ComparisonSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=46)] = 7
    description: Kind = "coordinates"


class ComparisonTask(YesNoTask):
    """Either number alone tells nothing: with both answers, each of two numbers is equally likely on either side.

    The attributes and two numbers are drawn before the answer is used; at least two sets of values occur each so often.
    With Yes both sides have the one number or both have the other, with No each side has its own. "Are there more?"
    could not be asked in this way: of the smallest number there are never more.

    Every canvas has such attributes, if zero counts as a number. Where colour and form do not serve, few shapes are on
    it, or few are missing, or nearly all pairs of colour and form occur once: then size and colour, or size and form.
    """

    version = "4"
    summary = "are there as many of these as of those? (Yes / No)"
    maker = "proctor.shapes.batch.comparison:ComparisonMaker"
    Settings = ComparisonSettings
    examples_apart = "rivals"
    absent_kinds = 2
    group_by = ("evidence",)

    @property
    def lines_needed(self) -> int:
        """Whatever the description: one shape for either number. The relation of two shapes is a single line."""
        return 1 if self.settings.shapes == 2 and self.settings.description != "coordinates" else 2

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        options = comparable(self.board, shapes)
        pairs: list[tuple[str, str]] = []
        for answer in self.wanted_answers(selected_answer):
            pattern, values = self.random.choice(options)
            number, other = self.random.sample(tuple(values), 2)
            first = self.random.choice(values[number])
            if not pairs:
                numbers = (number, number if answer == "Yes" else other)
                seen = shapes_to_see(len(shapes), numbers, capacity(self.board, pattern))
                self.evidence = lines_to_mention(seen, self.settings.description)
            beside = [value for value in values[number if answer == "Yes" else other] if value != first]
            names = [name_values(pattern, value, plural=True) for value in (first, self.random.choice(beside))]
            pairs.append((QUESTION.format(*names), answer))
        return pairs

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: counts the names that hold the words on either side of the second 'as'."""
        names = shapes_in_text(description)
        sides = re.split(r"\bas\b", question)[1:]
        first, second = (sum(words_of_values(side) <= set(name.split()) for name in names) for side in sides)
        return "Yes" if first == second else "No"


def shapes_to_see(shapes: int, numbers: tuple[int, int], most: int) -> int:
    """How many shapes to see, to know if the two numbers are equal, each of which is at most so large.

    That they are: all shapes, or all that could be of these kinds. That they are not: the larger group, and of the
    others so many that those left out could not make up for the difference.
    """
    if numbers[0] == numbers[1]:
        return sum(numbers) if numbers[0] == most else shapes
    return max(shapes - max(numbers), shapes // 2) + 1


def comparable(board: Board, shapes: list[Shape]) -> list[Option]:
    """What may be asked about; that none and none are equally many, only where nothing else can be."""
    numbers = range(len(shapes) + 1)
    return _values_by_number(board, shapes, numbers[1:]) or _values_by_number(board, shapes, numbers)


def _values_by_number(board: Board, shapes: list[Shape], numbers: range) -> list[Option]:
    """The patterns of which values share two or more of these numbers. Kinds are left to the task for them."""
    found = []
    for pattern in PATTERNS:
        if len(pattern) < 3:
            counts = count_values(pattern, shapes)
            having = {n: [values for values in all_values(board, pattern) if counts[values] == n] for n in numbers}
            shared = {number: values for number, values in having.items() if len(values) >= TWICE}
            if len(shared) >= 2:
                found.append((pattern, shared))
    return found
