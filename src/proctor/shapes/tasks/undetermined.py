"""Does it follow from the lines that one shape is to the left of another, or can it not be determined?"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated

from msgspec import Meta, Struct

from proctor.randomness import Stream
from proctor.shapes.answers import UNDETERMINED
from proctor.shapes.canvas import Shape
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.typed import EntailmentTask

Tree = dict[int, list[int]]  # the neighbours of each shape; shapes are known by their rank along the axis
Pairs = dict[int, list[tuple[int, int]]]  # by their distance in the tree, the lower shape first

ENOUGH = 7  # shapes, for those asked about to have a neighbour on either side


class UndeterminedSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=4, le=48)] = 10


class UndeterminedTask(EntailmentTask):
    """The lines relate shapes along one axis and form a tree: everything hangs together.

    Asked about are two shapes that no line names together. Where the lines between them all lead the same way, the
    answer follows; where they turn, nothing does. The distance of the two in the tree is drawn first, among those at
    which there are pairs of both sorts. From seven shapes on, a shape asked about is named in just two lines, and
    has a neighbour on either side: so neither the distance nor a line that names it tells the answer.
    """

    summary = "is A to the left of B, as far as the lines tell? (Yes / No / Cannot be determined)"
    Settings = UndeterminedSettings

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        axis = self.random.choice(tuple(AXES))
        names = [str(shape) for shape in sorted(shapes, key=lambda shape: getattr(shape, axis))]
        tree = draw_tree(len(names), self.random)
        edges = [(low, high) for low in tree for high in tree[low] if low < high]
        self.description = "\n".join(
            ["This is all that is known of a canvas of shapes:"]
            + [
                "- the {} is {} the {}".format(*self._relate(axis, names, *edge))
                for edge in self.random.shuffled(edges)
            ]
        )
        follows, turns = pairs_apart(tree)
        distances = [distance for distance in sorted(follows) if distance in turns]
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            distance = self.random.choice(distances)
            pair = self.random.choice(turns[distance] if answer == UNDETERMINED else follows[distance])
            swapped = bool(self.random.below(2)) if answer == UNDETERMINED else answer == "No"
            asked = self._relate(axis, names, *(reversed(pair) if swapped else pair))
            pairs.append(("Is the {} {} the {}?".format(*asked), answer))
        return pairs

    def _relate(self, axis: str, names: list[str], low: int, high: int) -> tuple[str, str, str]:
        """That one shape is lower than another on the axis, or that this one is higher: chance decides."""
        lower, higher = AXES[axis]
        if self.random.below(2):
            return names[low], RELATIONS[lower], names[high]
        return names[high], RELATIONS[higher], names[low]

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: goes down from each of the two, line by line, to all that must be lower."""
        relation = r"the (\w+ \w+ \w+) (?:is )?(to the left of|to the right of|above|below) the (\w+ \w+ \w+)"
        lower: dict[str, list[str]] = {}  # each shape with those that a line puts to its left or below it
        for a, words, b in re.findall(relation, description):
            low, high = (a, b) if words in ("to the left of", "below") else (b, a)
            lower.setdefault(high, []).append(low)
        ((a, words, b),) = re.findall(relation, question)
        low, high = (a, b) if words in ("to the left of", "below") else (b, a)
        if low in _all_lower(high, lower):
            return "Yes"
        return "No" if high in _all_lower(low, lower) else UNDETERMINED


def draw_tree(n: int, random: Stream) -> Tree:
    """A chain that leads one way, a branch that leads back from its end, and the rest hanging on to them.

    So there are two pairs at the same distance, one along the chain and one around its end. Where there are shapes
    enough, both have a neighbour on either side, and nothing else hangs on to them.
    """
    beyond = 1 if n >= ENOUGH else 0
    distance = 2 + random.below(n - 3 - 3 * beyond)
    back = 1 + random.below(min(distance - 1, n - distance - 1 - 3 * beyond))  # so much of it after the turn
    # The branch may have any of the shapes but the last; whichever way they are sorted, it is the end of the chain.
    *core, end = sorted(random.sample(range(n), distance + 1 + back + 3 * beyond), reverse=bool(random.below(2)))
    aside = random.sample(core, back + beyond)
    chain = [*(rank for rank in core if rank not in aside), end]
    branch = [end, *(rank for rank in reversed(core) if rank in aside)]
    # Nothing more is said of those that will be asked about.
    kept = (chain[1], chain[-2], chain[back - distance - 1], branch[back]) if beyond else ()
    edges = [*pairwise(chain), *pairwise(branch)]
    hosts = [rank for rank in (*core, end) if rank not in kept]
    for rank in random.shuffled([rank for rank in range(n) if rank != end and rank not in core]):
        edges.append((random.choice(hosts), rank))
        hosts.append(rank)
    tree: Tree = {rank: [] for rank in range(n)}
    for a, b in edges:
        tree[a].append(b)
        tree[b].append(a)
    return tree


def pairs_apart(tree: Tree) -> tuple[Pairs, Pairs]:
    """The pairs that may be asked about: those whose order follows from the lines, and those for which it does not."""
    follows, turns = Pairs(), Pairs()
    asked = {rank for rank in tree if len(tree) < ENOUGH or _is_between(rank, tree[rank])}
    for low in tree:
        if low not in asked:
            continue
        ahead = [(low, rank, 1, True) for rank in tree[low]]
        while ahead:
            before, rank, distance, straight = ahead.pop()
            if distance > 1 and rank > low and rank in asked:
                (follows if straight else turns).setdefault(distance, []).append((low, rank))
            for after in tree[rank]:
                if after != before:
                    ahead.append((rank, after, distance + 1, straight and (after > rank) == (rank > before)))
    return follows, turns


def _is_between(rank: int, neighbours: list[int]) -> bool:
    return len(neighbours) == 2 and min(neighbours) < rank < max(neighbours)


def _all_lower(shape: str, lower: dict[str, list[str]]) -> set[str]:
    return {found for other in lower.get(shape, ()) for found in (other, *_all_lower(other, lower))}
