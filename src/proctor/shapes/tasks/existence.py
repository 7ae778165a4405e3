"""Is there a shape of this kind on the canvas?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations, product

from proctor.shapes.answers import parse_yes_no
from proctor.shapes.canvas import COLOURS, FORMS, SIZES, Shape
from proctor.shapes.task import Task
from proctor.types import Sample

ATTRIBUTES: Mapping[str, tuple[str, ...]] = {"size": SIZES, "colour": COLOURS, "form": FORMS}
PATTERNS = tuple(pattern for length in range(1, len(ATTRIBUTES) + 1) for pattern in combinations(ATTRIBUTES, length))
QUESTIONS = 3


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

    def score(self, expected: str, actual: str) -> float:
        return float(expected == actual)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        pairs: list[tuple[str, str]] = []
        while len(pairs) < QUESTIONS:
            wanted = selected_answer if selected_answer and not pairs else self.random.choice(self.answers)
            pairs.append((_question(*self._draw(shapes, wanted)), wanted))
        return pairs

    def _draw(self, shapes: list[Shape], answer: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Attributes and values to ask about, for which this answer is true."""
        choices = []
        for pattern in PATTERNS:
            present = {tuple(getattr(shape, a) for a in pattern) for shape in shapes}
            values = list(product(*(ATTRIBUTES[a] for a in pattern)))
            if len(present) < len(values):
                choices.append((pattern, [v for v in values if (v in present) == (answer == "Yes")]))
        pattern, fitting = self.random.choice(choices)
        return pattern, self.random.choice(fitting)

    def proofs(self, sample: Sample) -> Iterator[str]:
        prompt = sample.input if isinstance(sample.input, str) else sample.input[-1].content
        solved = solve(prompt)
        if solved != sample.target:
            yield f"the text says {solved}, the key says {sample.target}"


def _question(pattern: tuple[str, ...], values: tuple[str, ...]) -> str:
    if pattern[-1] == "form":
        return f"Is there a {' '.join(values)}?"
    return f"Is there a shape that is {' and '.join(values)}?"


def solve(prompt: str) -> str:
    """The answer from the words of the prompt alone: every word asked for must stand in one line of the list."""
    canvas, _, question = prompt.rpartition("\n\n")
    listed = [set(line.split(" at ")[0].removeprefix("- ").split()) for line in canvas.splitlines()[1:]]
    sought = set(re.findall(r"\w+", question.split("?")[0])) - {
        "Is",
        "there",
        "a",
        "shape",
        "that",
        "is",
        "and",
    }
    return "Yes" if any(sought <= words for words in listed) else "No"
