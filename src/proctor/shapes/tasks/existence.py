"""Is there a shape of this kind on the canvas?"""

from __future__ import annotations

from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import lines_to_mention
from proctor.shapes.patterns import (
    draw_existing,
    name_values,
    partly_present,
    shapes_in_text,
    with_article,
    words_of_values,
)
from proctor.shapes.typed import SparingSettings, YesNoTask

QUESTION = "Is there {}?"


class ExistenceTask(YesNoTask):
    """Asks for one to three attributes at once.

    Neither the canvas nor the question alone tells the answer: the canvas is drawn before the answer is
    known, the attributes asked about must occur on it both present and absent, and their values are
    then drawn alike among the present or the absent ones.
    """

    version = "4"
    summary = "is there a shape with these attributes? (Yes / No)"
    maker = "proctor.shapes.batch.existence:ExistenceMaker"
    Settings = SparingSettings
    absent_kinds = 1
    asks_for_mention = True
    examples_apart = "rivals"
    group_by = ("evidence",)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        options = partly_present(self.board, shapes)
        answers = self.wanted_answers(selected_answer)
        self.evidence = 1 if answers[0] == "Yes" else lines_to_mention(len(shapes), self.settings.description)
        return [
            (QUESTION.format(with_article(name_values(*draw_existing(options, answer == "Yes", self.random)))), answer)
            for answer in answers
        ]

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: all words asked for must stand in the name of one shape."""
        sought = words_of_values(question)
        return "Yes" if any(sought <= set(name.split()) for name in shapes_in_text(description)) else "No"
