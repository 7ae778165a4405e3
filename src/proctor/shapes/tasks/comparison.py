"""Are there more shapes of one kind than of another?"""

from __future__ import annotations

import re
from itertools import combinations

from proctor.shapes.canvas import Board, Shape
from proctor.shapes.patterns import (
    PATTERNS,
    Pattern,
    Values,
    all_values,
    count_values,
    name_values,
    shapes_in_text,
    words_of_values,
)
from proctor.shapes.typed import SparingSettings, YesNoTask


class ComparisonTask(YesNoTask):
    """Two sets of values that occur unequally often are drawn first; the answer decides which is named first."""

    summary = "are there more of these than of those? (Yes / No)"
    Settings = SparingSettings
    absent_kinds = 1

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        unequal = _unequal(self.board, shapes)
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            pattern, fewer, more = self.random.choice(unequal)
            first, second = (more, fewer) if answer == "Yes" else (fewer, more)
            names = [name_values(pattern, values, plural=True) for values in (first, second)]
            pairs.append((f"Are there more {names[0]} than {names[1]}?", answer))
        return pairs

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: counts the names that hold the words on either side of 'than'."""
        names = shapes_in_text(description)
        sides = re.split(r"\bthan\b", question)
        more, fewer = (sum(words_of_values(side) <= set(name.split()) for name in names) for side in sides)
        return "Yes" if more > fewer else "No"


def _unequal(board: Board, shapes: list[Shape]) -> list[tuple[Pattern, Values, Values]]:
    """Patterns with values that fewer and more shapes have; kinds are left to the task that asks if they exist."""
    found = []
    for pattern in PATTERNS:
        if len(pattern) < 3:
            counts = count_values(pattern, shapes)
            for a, b in combinations(all_values(board, pattern), 2):
                if counts[a] != counts[b]:
                    found.append((pattern, a, b) if counts[a] < counts[b] else (pattern, b, a))
    return found
