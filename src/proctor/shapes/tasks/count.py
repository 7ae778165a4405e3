"""How many shapes of this kind are on the canvas?"""

from __future__ import annotations

from functools import cache
from typing import Annotated

from msgspec import Meta, Struct

from proctor.core.random import Stream
from proctor.shapes.canvas import Board, Shape, place_kinds
from proctor.shapes.descriptions import Kind, lines_to_mention
from proctor.shapes.patterns import (
    PATTERNS,
    Pattern,
    all_values,
    capacity,
    count_values,
    kinds_with,
    name_values,
    shapes_in_text,
    words_of_values,
)
from proctor.shapes.typed import NumberTask

QUESTION = "How many {} are there?"


class CountSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=27)] = 7  # beyond, there are too few kinds for numbers as large
    description: Kind = "coordinates"


class CountTask(NumberTask):
    """Asks for a number from 0 up to the largest that the canvas can show beside all smaller ones.

    Neither the canvas nor the question alone tells the answer: every canvas has, for one pattern of attributes,
    values that occur 0, 1, 2 … times, whatever the answer will be, and the one asked about is any of them.
    """

    summary = "how many shapes have these attributes? (a number)"
    maker = "proctor.shapes.batch.count:CountMaker"
    Settings = CountSettings
    absent_kinds = 10  # with fewer, larger numbers would find no room on one canvas
    asks_for_mention = True
    group_by = ("evidence",)

    @property
    def answers(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(map(str, range(largest_count(self.board, self.settings.shapes) + 1)))

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        board = self.board
        most = largest_count(board, self.settings.shapes)
        pattern = random.choice(patterns_for(board, self.settings.shapes, most))
        values = random.shuffled(all_values(board, pattern))
        kinds = [
            kind
            for number in range(most + 1)
            for kind in random.sample(kinds_with(board, pattern, values[number]), number)
        ]
        others = [kind for v in values[most + 1 :] for kind in kinds_with(board, pattern, v)]
        kinds += random.sample(others, self.settings.shapes - len(kinds))
        return place_kinds(random.shuffled(kinds), random, board)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        complete = self._complete_patterns(shapes)
        pairs: list[tuple[str, str]] = []
        for answer in self.wanted_answers(selected_answer):
            pattern = self.random.choice(complete)
            counts = count_values(pattern, shapes)
            fitting = [values for values in all_values(self.board, pattern) if counts[values] == int(answer)]
            what = name_values(pattern, self.random.choice(fitting), plural=True)
            if not pairs:
                # There may be more of them among the shapes that were not seen, unless all that exist were.
                seen = int(answer) if int(answer) == capacity(self.board, pattern) else len(shapes)
                self.evidence = lines_to_mention(seen, self.settings.description)
            pairs.append((QUESTION.format(what), answer))
        return pairs

    def _complete_patterns(self, shapes: list[Shape]) -> list[Pattern]:
        """The patterns for which every answer is true of some values."""
        wanted = {int(answer) for answer in self.answers}
        complete = []
        for pattern in PATTERNS:
            counts = count_values(pattern, shapes)
            if wanted <= {counts[values] for values in all_values(self.board, pattern)}:
                complete.append(pattern)
        return complete

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: counts the names in which all words asked for stand."""
        sought = words_of_values(question)
        return str(sum(sought <= set(name.split()) for name in shapes_in_text(description)))


@cache
def largest_count(board: Board, shapes: int) -> int:
    """The largest number asked for: all numbers up to it must find room on one canvas."""
    return max(most for most in range(1, shapes + 1) if patterns_for(board, shapes, most))


@cache
def patterns_for(board: Board, shapes: int, most: int) -> tuple[Pattern, ...]:
    """The patterns that can show values 0, 1 … most times among so many shapes, and put the rest elsewhere."""
    rest = shapes - most * (most + 1) // 2
    return tuple(
        pattern
        for pattern in PATTERNS
        if capacity(board, pattern) >= most
        and 0 <= rest <= (len(all_values(board, pattern)) - most - 1) * capacity(board, pattern)
    )
