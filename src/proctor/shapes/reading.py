"""What a description says of places, read back from its words: for solvers, which see nothing else."""

from __future__ import annotations

import re
from itertools import permutations

# Which of two shapes is nearer to a side: by the words of a relation, or by the smaller number.
_WORDS = {"left": "left", "right": "right", "bottom": "below", "top": "above"}
_OPPOSITES = {"left": "right", "right": "left", "below": "above", "above": "below"}
_AXES = {"left": (0, 1), "right": (0, -1), "bottom": (1, 1), "top": (1, -1)}
_RELATION = re.compile(r"- the (.+) is (above|below) and to the (left|right) of the (.+)")
_PLACE = re.compile(r"- (.+) at \((-?\d+), (-?\d+)\)")


def places_in_text(description: str) -> dict[str, tuple[int, int]]:
    """The centre of each shape, from a list of coordinates."""
    return {name: (int(x), int(y)) for name, x, y in _PLACE.findall(description)}


def nearer_pairs(description: str, side: str) -> set[tuple[str, str]]:
    """All pairs of which the first shape is nearer to the side than the second, from any kind of description."""
    pairs = set()
    for a, vertical, horizontal, b in _RELATION.findall(description):
        for word in (vertical, horizontal):
            if word == _WORDS[side]:
                pairs.add((a, b))
            elif word == _OPPOSITES[_WORDS[side]]:
                pairs.add((b, a))
    axis, sign = _AXES[side]
    numbers = {name: sign * place[axis] for name, place in places_in_text(description).items()}
    return pairs | {(a, b) for a, b in permutations(numbers, 2) if numbers[a] < numbers[b]}
