"""Where is one shape relative to another, after many single steps from neighbour to neighbour?"""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from typing import Annotated

from msgspec import Meta, Struct

from proctor.core.errors import TaskError
from proctor.core.random import Stream
from proctor.shapes.canvas import HALF_WIDTH, Board, Shape
from proctor.shapes.places import AXES, RELATIONS
from proctor.shapes.typed import DirectionTask

Square = tuple[int, int]  # counted from the middle of the paper, to the right and upwards

SIDE = 2 * max(HALF_WIDTH.values()) + 1  # of a square: the largest shapes on neighbouring ones do not touch
STEPS: tuple[Square, ...] = ((-1, 0), (1, 0), (0, 1), (0, -1))
ALTERNATIVES = {"x": "to the left or to the right of", "y": "above or below"}
TRIES = 1_000  # paths; of four hops, every seventh is as wanted
HEADING = "Shapes stand on squared paper. One step leads to the next square in the same row or column:"
LINE = "- the {} is one step {} the {}"
QUESTION = "Is the {} {} the {}?"


class MultiHopSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=3, le=48)] = 10
    hops: Annotated[int, Meta(ge=2, le=47)] = 5

    def __post_init__(self) -> None:
        if self.hops >= self.shapes:
            raise ValueError(f"hops={self.hops} needs shapes={self.hops + 1} or more, got shapes={self.shapes}")


class MultiHopTask(DirectionTask):
    """Shapes stand on squared paper; each line tells the step from one to a neighbour, and the lines form a tree.

    A path of so many hops leads from one of the shapes asked about to the other; the rest hang on to those between.
    The two are level on neither axis, so that every answer is true of them, by axis and order. From four hops on, one
    of the two lines that name them leads towards the other shape and one away from it, so that neither tells the
    answer. Shorter paths cannot turn back.
    """

    version = "4"
    summary = "is A to the left or to the right of B, or above or below it, after many steps? (four directions)"
    maker = "proctor.shapes.batch.multi_hop:MultiHopMaker"
    Settings = MultiHopSettings
    answers = tuple(RELATIONS)
    instruction = "Answer Left, Right, Above or Below."

    @property
    def lines_needed(self) -> int:
        return int(self.settings.hops)

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """The path in its order, and then the others, each next to one that is there already.

        Next to an end of the path, they would stand more often on its far side, where there is more room, and so give
        away where the other end is.
        """
        reach = reach_of(self.board)
        squares = draw_path(self.settings.hops, reach, random)
        hosts, taken = squares[1:-1], set(squares)
        while len(squares) < self.settings.shapes:
            free = [s for host in hosts for s in around(host) if s not in taken and _on_paper(s, reach)]
            square = random.choice(free)
            squares.append(square)
            hosts.append(square)
            taken.add(square)
        kinds = random.sample(self.board.kinds, len(squares))
        return [Shape(*kind, x * SIDE, y * SIDE) for kind, (x, y) in zip(kinds, squares, strict=True)]

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        self.evidence = self.lines_needed
        # As draw_shapes lists them: the path in its order comes first.
        path, others = shapes[: self.settings.hops + 1], shapes[self.settings.hops + 1 :]
        steps, hosts = list(pairwise(path)), path[1:-1]
        for shape in others:
            steps.append((self.random.choice([host for host in hosts if _are_neighbours(host, shape)]), shape))
            hosts.append(shape)
        steps = self.random.shuffled(steps)
        lines = [_tell(b, a) if self.random.below(2) else _tell(a, b) for a, b in steps]
        self.description = "\n".join([HEADING, *lines])
        first, *further = self.wanted_answers(selected_answer)
        ends = path[0], path[-1]
        asked = [(first, ends), *((answer, self._other_pair(shapes, ends, answer)) for answer in further)]
        return [(_ask(answer, *pair), answer) for answer, pair in asked]

    def _other_pair(self, shapes: list[Shape], ends: tuple[Shape, Shape], answer: str) -> tuple[Shape, Shape]:
        """Two for another question: not level on the axis of its answer, and not neighbours, if there are such."""
        axis = next(axis for axis, answers in AXES.items() if answer in answers)
        pairs = [p for p in combinations(shapes, 2) if p != ends and getattr(p[0], axis) != getattr(p[1], axis)]
        apart = [pair for pair in pairs if not _are_neighbours(*pair)]
        return self.random.choice(apart or pairs or [ends])

    def choices(self, shapes: list[Shape], question: str) -> tuple[str, ...]:
        return next(AXES[axis] for axis, words in ALTERNATIVES.items() if words in question)

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: puts the second shape at the origin and the others where the lines say."""
        asked = re.match(r"Is the (\w+ \w+ \w+) (to the left|above) or .+ the (\w+ \w+ \w+)\?", question)
        if asked is None:
            return "(question not understood)"
        first, words, second = asked.groups()
        told = re.findall(r"- the (\w+ \w+ \w+) is one step (?:to the )?(\w+)(?: of)? the (\w+ \w+ \w+)", description)
        steps = {"left": (-1, 0), "right": (1, 0), "above": (0, 1), "below": (0, -1)}
        places = {second: (0, 0)}
        for _ in told:  # each time through, the neighbours of those already placed find their places
            for a, side, b in told:
                dx, dy = steps[side]
                if b in places:
                    places.setdefault(a, (places[b][0] + dx, places[b][1] + dy))
                elif a in places:
                    places[b] = (places[a][0] - dx, places[a][1] - dy)
        x, y = places[first]
        return ("Left" if x < 0 else "Right") if words == "to the left" else ("Below" if y < 0 else "Above")


def reach_of(board: Board) -> int:
    """How many squares there are from the middle of the paper to its edge."""
    return (board.bound - max(HALF_WIDTH.values())) // SIDE


def draw_path(hops: int, reach: int, random: Stream) -> list[Square]:
    """Different squares, each next to the one before it, from one end to another that is level with it on neither axis.

    From four hops on, exactly one of its end hops leads away from the other end. Which of the two ends comes first is
    then left to chance: so whatever is seen of an end, it leads away as often as not.
    """
    for _ in range(TRIES):
        path = _grow(hops, reach, random)
        if len(path) > hops and not _is_level(path) and (hops < 4 or _turns_back(path) != _turns_back(path[::-1])):
            return path[::-1] if random.below(2) else path
    raise TaskError(f"no path of {hops} hops found in {TRIES} tries.")


def _grow(hops: int, reach: int, random: Stream) -> list[Square]:
    """A path that goes to any free square next to its end. One that is stuck draws on: all take as many draws."""
    path = [(0, 0)]
    for _ in range(hops):
        free = [s for s in around(path[-1]) if s not in path and _on_paper(s, reach)]
        number = random.below(len(free))
        path += free[number : number + 1]
    return path


def around(square: Square) -> list[Square]:
    return [(square[0] + dx, square[1] + dy) for dx, dy in STEPS]


def _on_paper(square: Square, reach: int) -> bool:
    return max(map(abs, square)) <= reach


def _is_level(path: list[Square]) -> bool:
    (ax, ay), (bx, by) = path[0], path[-1]
    return ax == bx or ay == by


def _turns_back(path: list[Square]) -> bool:
    """Whether the first hop leads away from the end."""
    (ax, ay), (bx, by), (x, y) = path[0], path[1], path[-1]
    return (bx - ax) * (x - ax) + (by - ay) * (y - ay) < 0


def _are_neighbours(a: Shape, b: Shape) -> bool:
    return abs(a.x - b.x) + abs(a.y - b.y) == SIDE


def _tell(a: Shape, b: Shape) -> str:
    side = "Left" if a.x < b.x else "Right" if a.x > b.x else "Above" if a.y > b.y else "Below"
    return LINE.format(a, RELATIONS[side], b)


def _ask(answer: str, *ends: Shape) -> str:
    """Names first the end of which the answer is true."""
    axis = next(axis for axis, answers in AXES.items() if answer in answers)
    a, b = sorted(ends, key=lambda shape: getattr(shape, axis), reverse=answer != AXES[axis][0])
    return QUESTION.format(a, ALTERNATIVES[axis], b)
