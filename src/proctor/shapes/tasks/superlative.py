"""Which shape is leftmost, or third highest?"""

from __future__ import annotations

from proctor.shapes.canvas import Shape
from proctor.shapes.patterns import shapes_in_text
from proctor.shapes.places import draw_place, read_place
from proctor.shapes.reading import nearer_pairs
from proctor.shapes.typed import ShapeTask

QUESTION = "Which shape is {}?"


class SuperlativeTask(ShapeTask):
    """Every shape is equally likely to be asked for, by its place from any of the four sides."""

    summary = "which shape is leftmost, second highest …? (a shape)"
    maker = "proctor.shapes.batch.superlative:SuperlativeMaker"
    asks_for_rank = True

    @property
    def lines_needed(self) -> int:
        return int(self.settings.shapes - (self.settings.description != "coordinates"))

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        names = self.wanted_shapes([str(shape) for shape in shapes], selected_answer)
        return [(QUESTION.format(draw_place(shapes, name, self.random)), name) for name in names]

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: counts for each shape how many others are nearer to the side."""
        side, number = read_place(question.removeprefix("Which shape is ").split("?")[0])
        nearer = dict.fromkeys(shapes_in_text(description), 0)
        for _, other in nearer_pairs(description, side):
            nearer[other] += 1
        return next((shape for shape, count in nearer.items() if count == number), "(no such place)")
