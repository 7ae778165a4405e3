"""Does it follow from the lines that one shape is to the left of another, or can it not be determined?"""

from __future__ import annotations

import copy
import re
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from proctor.core.random import Stream
from proctor.shapes.canvas import Shape
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.replies import UNDETERMINED
from proctor.shapes.typed import EntailmentTask

Pairs = dict[int, list[tuple[int, int]]]  # by their distance in the tree, the lower shape first

HEADING = "This is all that is known of a canvas of shapes:"
LINE = "- the {} is {} the {}"
QUESTION = "Is the {} {} the {}?"
ENOUGH = 7  # shapes, for those asked about to have a neighbour on either side


class Tree(NamedTuple):
    """Nodes in the order in which they were joined, each to one before it."""

    ranks: list[int]  # of the shapes, along the axis
    hosts: list[int]  # the node that each was joined to; of the first, itself


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
    maker = "proctor.shapes.batch.undetermined:UndeterminedMaker"
    Settings = UndeterminedSettings
    group_by = ("evidence",)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        axis = self.random.choice(tuple(AXES))
        names = [str(shape) for shape in sorted(shapes, key=lambda shape: getattr(shape, axis))]
        tree = draw_tree(len(names), self.random)
        edges = [sorted((tree.ranks[node], tree.ranks[tree.hosts[node]])) for node in range(1, len(names))]
        lines = [LINE.format(*self._relate(axis, names, *edge)) for edge in self.random.shuffled(edges)]
        self.description = "\n".join([HEADING, *lines])
        follows, turns = pairs_apart(tree)
        distances = [distance for distance in sorted(follows) if distance in turns]
        pairs: list[tuple[str, str]] = []
        used: list[tuple[int, int]] = []
        for answer in self.wanted_answers(selected_answer):
            distance = self.random.choice(distances)
            fitting, rivals = (turns, follows) if answer == UNDETERMINED else (follows, turns)
            if pairs:
                others = [pair for pairs_at in fitting.values() for pair in pairs_at if pair not in used]
                pair = self.random.choice(others or fitting[distance])
                used.append(pair)
            else:
                # Any line that was not read could have told which of the two is lower.
                self.evidence = len(lines) if answer == UNDETERMINED else distance
                # The pair that would be asked about were the answer of the other sort is left out of the worked
                # examples too: else their answers would tell of which sort this one is.
                rival = copy.copy(self.random).choice(rivals[distance])
                pair = self.random.choice(fitting[distance])
                used += [pair, rival]
            by_chance = bool(self.random.below(2))
            swapped = by_chance if answer == UNDETERMINED else answer == "No"
            asked = self._relate(axis, names, *(reversed(pair) if swapped else pair))
            pairs.append((QUESTION.format(*asked), answer))
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
    enough, both have a neighbour on either side, and nothing else hangs on to them. Chain and branch together are a
    path, along which nodes are numbered; those that hang on to it follow.
    """
    beyond = 1 if n >= ENOUGH else 0
    distance = 2 + random.below(n - 3 - 3 * beyond)
    back = 1 + random.below(min(distance - 1, n - distance - 1 - 3 * beyond))  # so much of it after the turn
    descending = bool(random.below(2))
    length = distance + 1 + back + 3 * beyond
    drawn = random.shuffled(range(n))
    # Whichever way they are sorted, the last is the end of the chain; any of the others may be on the branch.
    end = min(drawn[:length]) if descending else max(drawn[:length])
    others = [rank for rank in drawn[:length] if rank != end]
    branch, chain = others[: back + beyond], others[back + beyond :]
    path = [*sorted(chain, reverse=descending), end, *sorted(branch, reverse=not descending)]
    turn = len(chain)
    # Nothing more is said of those that will be asked about.
    kept = (1, turn - 1, back + 2, turn + back) if beyond else ()
    free = [node for node in range(length) if node not in kept]
    hosts = [0, *range(length - 1)]
    for node in range(length, n):
        hosts.append(random.choice(free))
        free.append(node)
    return Tree([*path, *drawn[length:]], hosts)


def pairs_apart(tree: Tree) -> tuple[Pairs, Pairs]:
    """The pairs that may be asked about: those whose order follows from the lines, and those for which it does not."""
    follows, turns = Pairs(), Pairs()
    asked = _asked(tree)
    away: list[list[tuple[int, int]]] = []  # for each node and each before it: distance, and whether all leads one way
    for node, (rank, host) in enumerate(zip(*tree, strict=True)):
        up = 1 if tree.ranks[host] > rank else -1
        away.append([])
        for other in range(node):
            distance, way = away[max(host, other)][min(host, other)] if host != other else (0, up)
            if other > host:  # what is known leads from the other to the host
                way = -way
            away[node].append((distance + 1, up if way == up else 0))
            if distance and asked[node] and asked[other]:
                low, high = sorted((rank, tree.ranks[other]))
                (follows if way == up else turns).setdefault(distance + 1, []).append((low, high))
    return follows, turns


def _asked(tree: Tree) -> list[bool]:
    """Whether each node may be asked about: where there are shapes enough, if it is between two neighbours."""
    lower, higher = [0] * len(tree.ranks), [0] * len(tree.ranks)
    for node, host in list(enumerate(tree.hosts))[1:]:
        low, high = sorted((node, host), key=tree.ranks.__getitem__)
        higher[low] += 1
        lower[high] += 1
    return [len(tree.ranks) < ENOUGH or ends == (1, 1) for ends in zip(lower, higher, strict=True)]


def _all_lower(shape: str, lower: dict[str, list[str]]) -> set[str]:
    return {found for other in lower.get(shape, ()) for found in (other, *_all_lower(other, lower))}
