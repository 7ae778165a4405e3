"""Is there a shape of this kind on the canvas?"""

from __future__ import annotations

from collections.abc import Iterator

from proctor.shapes.answers import parse_yes_no
from proctor.shapes.canvas import Shape
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
from proctor.shapes.task import QUESTIONS, Task
from proctor.types import Sample


class ExistenceTask(Task):
    """Asks for one to three attributes at once.

    Neither the canvas nor the question alone tells the answer: the canvas is drawn before the answer is
    known, the attributes asked about must occur on it both present and absent, and their values are
    then drawn alike among the present or the absent ones.
    """

    summary = "is there a shape with these attributes? (Yes / No)"
    answers = ("Yes", "No")
    instruction = "Answer Yes or No."

    def select_expected_answer(self, i: int, n: int) -> str:
        return self.balanced_answer(i)

    def parse_answer(self, text: str) -> str | None:
        return parse_yes_no(text)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        pairs = []
        for number in range(QUESTIONS):
            answer = selected_answer if selected_answer and number == 0 else self.random.choice(self.answers)
            pairs.append((f"Is there a {name_values(*self._draw(shapes, answer))}?", answer))
        return pairs

    def _draw(self, shapes: list[Shape], answer: str) -> tuple[Pattern, Values]:
        """Attributes and values to ask about, for which this answer is true."""
        choices = []
        for pattern in PATTERNS:
            present = count_values(pattern, shapes)
            values = all_values(pattern)
            if len(present) < len(values):
                choices.append((pattern, [v for v in values if (v in present) == (answer == "Yes")]))
        pattern, fitting = self.random.choice(choices)
        return pattern, self.random.choice(fitting)

    def score(self, expected: str, actual: str) -> float:
        return float(expected == actual)

    def proofs(self, sample: Sample) -> Iterator[str]:
        yield from self.compare_with_key(sample, solve)


def solve(description: str, question: str) -> str:
    """The answer from the words alone: all words asked for must stand in the name of one shape."""
    sought = words_of_values(question)
    return "Yes" if any(sought <= set(name.split()) for name in shapes_in_text(description)) else "No"
