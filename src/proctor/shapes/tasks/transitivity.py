"""Where is one shape relative to another that it is not described next to?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta, Struct

from proctor.randomness import Stream
from proctor.shapes.canvas import Shape
from proctor.shapes.typed import DirectionTask
from proctor.types import Sample

WORDS = {"Left": "to the left of", "Right": "to the right of", "Above": "above", "Below": "below"}
OPPOSITES = {"Left": "Right", "Right": "Left", "Above": "Below", "Below": "Above"}


class TransitivitySettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=5, le=24)] = 7  # a pivot and a neighbour on each side of it


class TransitivityTask(DirectionTask):
    """Shapes stand in a cross: a pivot, and a chain from it in each of the four directions.

    Each shape is described relative to the one before it in its chain. Asked about are two shapes of one arm of the
    cross with others between them. Every cross has both arms, so neither it nor the question tells the answer.
    """

    summary = "where is A relative to B, by way of the shapes between? (four directions)"
    Settings = TransitivitySettings
    answers = tuple(WORDS)
    instruction = "Answer Left, Right, Above or Below."

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        pivot, *others = (str(shape) for shape in shapes)
        chains = _chains(others, self.random)
        self.description = "\n".join(
            ["On a canvas of shapes:"]
            + [
                f"- the {shape} is {WORDS[side]} the {before}"
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


def _chains(shapes: list[str], random: Stream) -> dict[str, list[str]]:
    """At least one shape on each side, the rest on any."""
    chains = {side: [shape] for side, shape in zip(WORDS, shapes, strict=False)}
    for shape in shapes[len(WORDS) :]:
        chains[random.choice(tuple(WORDS))].append(shape)
    return chains


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
