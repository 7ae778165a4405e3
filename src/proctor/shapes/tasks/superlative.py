"""Which shape is leftmost, or third from the top?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor.shapes.canvas import Shape
from proctor.shapes.patterns import shapes_in_text
from proctor.shapes.places import draw_place, read_place
from proctor.shapes.typed import ShapeTask
from proctor.types import Sample

RELATION = r"- the (.+) is (above|below) and to the (left|right) of the (.+)"


class SuperlativeTask(ShapeTask):
    """Every shape is equally likely to be asked for, by its place from any of the four sides."""

    summary = "which shape is leftmost, second from the top …? (a shape)"

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        names = self.wanted_shapes([str(shape) for shape in shapes], selected_answer)
        return [(f"Which shape is {draw_place(shapes, name, self.random)}?", name) for name in names]

    def proofs(self, sample: Sample) -> Iterator[str]:
        yield from self.compare_with_key(sample, solve)


def solve(description: str, question: str) -> str:
    """The answer from the words alone: counts for each shape how many others are nearer to the side."""
    side, number = read_place(question.removeprefix("Which shape is ").split("?")[0])
    nearer = dict.fromkeys(shapes_in_text(description), 0)
    for shape, other in _nearer_pairs(description, side):
        nearer[other] += 1 if shape != other else 0
    return next((shape for shape, count in nearer.items() if count == number), "(no such place)")


def _nearer_pairs(description: str, side: str) -> set[tuple[str, str]]:
    """All pairs of which the first shape is nearer to the side than the second."""
    words = {"left": "left", "right": "right", "bottom": "below", "top": "above"}
    back = {"left": "right", "right": "left", "below": "above", "above": "below"}
    pairs = set()
    for a, vertical, horizontal, b in re.findall(RELATION, description):
        for word in (vertical, horizontal):
            pairs |= {(a, b)} if word == words[side] else {(b, a)} if word == back[words[side]] else set()
    places = re.findall(r"- (.+) at \((-?\d+), (-?\d+)\)", description)
    for a, ax, ay in places:
        for b, bx, by in places:
            ahead = {"left": int(ax) < int(bx), "right": int(ax) > int(bx), "bottom": int(ay) < int(by)}
            if ahead.get(side, int(ay) > int(by)):
                pairs.add((a, b))
    return pairs
