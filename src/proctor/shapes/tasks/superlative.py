"""Which shape is leftmost, or third from the top?"""

from __future__ import annotations

from proctor.shapes.canvas import Shape
from proctor.shapes.patterns import shapes_in_text
from proctor.shapes.reading import nearer_pairs
from proctor.shapes.typed import ORDINALS, ShapeTask

SIDES = {"x": ("left", "right"), "y": ("bottom", "top")}
SUPERLATIVES = {"left": "leftmost", "right": "rightmost", "bottom": "lowest", "top": "highest"}


class SuperlativeTask(ShapeTask):
    """Every shape is equally likely to be asked for, by its place from any of the four sides."""

    summary = "which shape is leftmost, second from the top …? (a shape)"

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        names = self.wanted_shapes([str(shape) for shape in shapes], selected_answer)
        return [(f"Which shape is {self._place(shapes, name)}?", name) for name in names]

    def _place(self, shapes: list[Shape], name: str) -> str:
        """Counted from the nearer side, so that no place is further off than the ordinals reach."""
        axis, (low, high) = self.random.choice(tuple(SIDES.items()))
        line = [str(shape) for shape in sorted(shapes, key=lambda shape: getattr(shape, axis))]
        from_low, from_high = line.index(name), len(line) - 1 - line.index(name)
        number, side = (from_low, low) if from_low <= from_high else (from_high, high)
        return f"{ORDINALS[number]} from the {side}" if number else SUPERLATIVES[side]

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: counts for each shape how many others are nearer to the side."""
        asked = question.removeprefix("Which shape is ").split("?")[0]
        side = next((side for side, word in SUPERLATIVES.items() if word == asked), asked.split()[-1])
        number = ORDINALS.index(asked.split()[0]) if " from the " in asked else 0
        nearer = dict.fromkeys(shapes_in_text(description), 0)
        for _, other in nearer_pairs(description, side):
            nearer[other] += 1
        return next((shape for shape, count in nearer.items() if count == number), "(no such place)")
