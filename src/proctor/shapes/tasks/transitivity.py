"""Where is one shape relative to another that it is not described next to?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from proctor.randomness import Stream
from proctor.shapes.canvas import Shape, place_kinds
from proctor.shapes.places import RELATIONS
from proctor.shapes.typed import DirectionTask
from proctor.types import Sample

OPPOSITES = {"Left": "Right", "Right": "Left", "Above": "Below", "Below": "Above"}


class TransitivitySettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=5, le=48)] = 7  # a pivot and a neighbour on each side of it


class TransitivityTask(DirectionTask):
    """Shapes stand in a cross: a pivot, and a chain from it in each of the four directions.

    Each shape is described relative to the one before it in its chain. Asked about are two shapes of one arm of the
    cross with others between them. Every cross has both arms, so neither it nor the question tells the answer.
    """

    summary = "where is A relative to B, by way of the shapes between? (four directions)"
    Settings = TransitivitySettings
    answers = tuple(RELATIONS)
    instruction = "Answer Left, Right, Above or Below."

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """A pivot off the edge, a shape on each side of it in the order of the answers, and the rest anywhere."""
        lines = self.board.cells
        row, column = 1 + random.below(lines - 2), 1 + random.below(lines - 2)
        left, right = random.below(column), column + 1 + random.below(lines - 1 - column)
        below, above = random.below(row), row + 1 + random.below(lines - 1 - row)
        beside = (random.below(lines), left), (random.below(lines), right)
        cross = [r * lines + c for r, c in ((row, column), *beside, (above, column), (below, column))]
        others = [cell for cell in range(lines**2) if cell not in cross]
        cells = cross + random.sample(others, self.settings.shapes - len(cross))
        return place_kinds(random.sample(self.board.kinds, self.settings.shapes), random, self.board, cells)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        pivot = shapes[0]
        chains = _chains(shapes, self.random)
        self.description = "\n".join(
            ["On a canvas of shapes:"]
            + [
                f"- the {shape} is {RELATIONS[side]} the {before}"
                for side in self.random.shuffled(self.answers)
                for before, shape in zip([pivot, *chains[side]], chains[side], strict=False)
            ]
        )
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            # The arm from its far end on the side of the answer, through the pivot, to its other end.
            arm = [*reversed(chains[answer]), pivot, *chains[OPPOSITES[answer]]]
            apart = [(a, b) for i, a in enumerate(arm) for b in arm[i + 2 :]]
            a, b = self.random.choice(apart)
            pairs.append((f"Where is the {a} relative to the {b}?", answer))
        return pairs

    def proofs(self, sample: Sample) -> Iterator[str]:
        yield from self.compare_with_key(sample, solve)


def _chains(shapes: list[Shape], random: Stream) -> dict[str, list[Shape]]:
    """From the pivot outwards, one chain on each side: what is said of their shapes is true of the canvas.

    The pivot comes first, then a shape for each side. Any other is beside the pivot as well as above or below it:
    chance decides which of the two chains it joins.
    """
    pivot, *others = shapes
    chains = {side: [shape] for side, shape in zip(RELATIONS, others, strict=False)}
    for shape in others[len(RELATIONS) :]:
        if random.below(2):
            chains["Left" if shape.x < pivot.x else "Right"].append(shape)
        else:
            chains["Below" if shape.y < pivot.y else "Above"].append(shape)
    axes = {"Left": "x", "Right": "x", "Above": "y", "Below": "y"}
    return {side: _outwards(pivot, chain, axes[side]) for side, chain in chains.items()}


def _outwards(pivot: Shape, chain: list[Shape], axis: str) -> list[Shape]:
    return sorted(chain, key=lambda shape: abs(getattr(shape, axis) - getattr(pivot, axis)))


def solve(description: str, question: str) -> str:
    """The answer from the words alone: puts every shape on squared paper, one step per line, and compares places."""
    asked = re.match(r"Where is the (.+) relative to the (.+)\?", question)
    if asked is None:
        return "(question not understood)"
    steps = {"to the left of": (-1, 0), "to the right of": (1, 0), "above": (0, 1), "below": (0, -1)}
    places: dict[str, tuple[int, int]] = {}
    for shape, words, before in re.findall(rf"- the (.+) is ({'|'.join(steps)}) the (.+)", description):
        x, y = places.setdefault(before, (0, 0))
        places[shape] = (x + steps[words][0], y + steps[words][1])
    (ax, ay), (bx, by) = places[asked[1]], places[asked[2]]
    if (ax == bx) == (ay == by):
        return "(not on one arm)"
    return ("Left" if ax < bx else "Right") if ay == by else ("Below" if ay < by else "Above")
