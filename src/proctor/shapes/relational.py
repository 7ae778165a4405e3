"""What a sample shows by how it relates to the question: the cues of the relational probes.

Shapes and groups of shapes are known only by whether they are those asked about (the first, the second …) or one of the
choices, and by what they have in common with the shape asked about; numbers are left open. So what is learnt from one
sample holds for all that are alike, whatever shapes they are about.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from proctor.shapes.canvas import FORMS, LARGE, SIZES

Values = int  # attributes of a shape or a group, a bit for each of the words below
Pattern = tuple[str, tuple[int, ...]]  # the words of a line, and how each shape in it relates to the question

_GROUPS = (SIZES, LARGE.colours, FORMS)
_BITS = {word: 1 << bit for bit, word in enumerate(word for words in _GROUPS for word in words)}
_ATTRIBUTES = tuple(sum(_BITS[word] for word in words) for words in _GROUPS)
_VALUE = rf"(?:{'|'.join(_BITS)})s?\b"
_TOKEN = re.compile(rf"(?P<values>\b{_VALUE}(?:(?: and)? {_VALUE})*)|(?P<place>\(-?\d+, -?\d+\))|-?\b\d+\b")
MANY = 3  # a line that names more shapes lists them, such as those that stand in a line
_ACROSS = re.compile(r"\b(?:left|right|leftmost|rightmost)\b")
_UP = re.compile(r"\b(?:above|below|top|bottom|highest|lowest)\b")


class LineCue(NamedTuple):
    words: str  # with values and numbers left open
    values: tuple[Values, ...]  # the shapes and groups that it names
    place: tuple[int, int] | None


class RelationalView(NamedTuple):
    """A sample as the relational probes see it."""

    question: Hashable  # its words, with values and numbers left open, and the answers where they are not shapes
    asked: tuple[Values, ...]  # the shapes or groups that it names
    lines: tuple[LineCue, ...]
    choices: tuple[Values, ...]  # empty where the answers are no shapes or colours
    ranks: dict[Values, tuple[int, int]]  # of each shape with coordinates, along the question's axis and the other

    @property
    def listed(self) -> set[Values]:
        return {values for line in self.lines if line.words.startswith("- ") for values in line.values}


def read_view(description: str, question: str, choices: Sequence[str]) -> RelationalView:
    places = re.findall(r"\(-?\d+, -?\d+\)", question)
    words, asked, _ = _read(question, ())
    lines = tuple(_read(line, places) for line in description.splitlines())
    masks = tuple(_values(choice) for choice in choices)
    of_shapes = all(masks)
    vertical = bool(_UP.search(question)) and not _ACROSS.search(question)
    known = words if of_shapes else (words, tuple(choices))
    return RelationalView(known, asked, lines, masks if of_shapes else (), _ranks(lines, vertical))


def names_axis(seen: RelationalView) -> bool:
    """Whether the question is about left and right or about above and below."""
    words = seen.question if isinstance(seen.question, str) else str(seen.question)
    return bool(_UP.search(words)) != bool(_ACROSS.search(words))


def _read(text: str, places: Sequence[str]) -> LineCue:
    """A line; a place that the question names is marked."""
    values: list[Values] = []
    place = None

    def leave_open(match: re.Match[str]) -> str:
        nonlocal place
        if match["values"]:
            values.append(_values(match[0]))
            return "_"
        if match["place"]:
            x, y = match[0][1:-1].split(", ")
            place = int(x), int(y)
            return "@" if match[0] in places else "#"
        return "#"

    words = _TOKEN.sub(leave_open, text)
    return LineCue(words, tuple(values), place)


def _values(text: str) -> Values:
    """The attributes in a text that names nothing else, else 0."""
    words = [word.removesuffix("s") for word in text.split() if word != "and"]
    return sum(_BITS[word] for word in words) if all(word in _BITS for word in words) else 0


def _ranks(lines: Iterable[LineCue], vertical: bool) -> dict[Values, tuple[int, int]]:
    places = {line.values[0]: line.place for line in lines if line.place and len(line.values) == 1}
    columns = [{x: i for i, x in enumerate(sorted(p[axis] for p in places.values()))} for axis in (0, 1)]
    own, other = (1, 0) if vertical else (0, 1)
    return {name: (columns[own][place[own]], columns[other][place[other]]) for name, place in places.items()}


def _fits(values: Values, asked: Values) -> bool:
    """Whether the shape is of the group, or the other way round; a shape fits only itself."""
    return values & asked in (values, asked)


def relate(values: Values, asked: Sequence[Values]) -> int:
    """Which of those asked about it is, as bits; for another, what it has in common with the only one asked about."""
    role = sum(1 << k for k, one in enumerate(asked) if _fits(values, one))
    if role or len(asked) != 1:
        return role
    return -sum(1 << k for k, attribute in enumerate(_ATTRIBUTES) if values & asked[0] & attribute)


def pattern_of(line: LineCue, seen: RelationalView, choice: Values = 0) -> Pattern:
    """A choice is marked by a bit of its own."""
    codes = (2 * relate(v, seen.asked) + (bool(choice) and _fits(v, choice)) for v in line.values)
    return line.words, tuple(codes)


def line_at(seen: RelationalView, number: int, choice: Values = 0) -> Hashable:
    return seen.question, pattern_of(seen.lines[number], seen, choice)


def single_lines(seen: RelationalView, choice: Values = 0) -> Iterator[Hashable]:
    """Each line; of a choice, those that name it."""
    for line in seen.lines:
        if not choice or any(_fits(values, choice) for values in line.values):
            yield seen.question, pattern_of(line, seen, choice)


def pairs_of_lines(seen: RelationalView, choice: Values = 0) -> Iterator[Hashable]:
    """Two lines, one of which names what is asked about or the choice, with the shapes that they have in common."""
    lines = [(line, pattern_of(line, seen, choice)) for line in seen.lines]
    if choice:  # there are many choices: lines that have nothing to do with any of this are left out
        lines = [(line, pattern) for line, pattern in lines if _concerns(pattern) or len(line.values) > MANY]
    telling = [_concerns(pattern, odd_only=bool(choice)) for _, pattern in lines]
    pairs = {
        (seen.question, lines[i][1], lines[j][1], _links(*lines[i], lines[j][0]))
        for i, j in combinations(range(len(lines)), 2)
        if telling[i] or telling[j]
    }
    yield from pairs


def _concerns(pattern: Pattern, *, odd_only: bool = False) -> bool:
    """Whether a line names what is asked about or the choice; codes of a choice are odd."""
    words, codes = pattern
    if odd_only:
        return any(code & 1 for code in codes)
    return "@" in words or any(code > 0 for code in codes)


def _links(one: LineCue, pattern: Pattern, other: LineCue) -> Hashable:
    """Which shape beyond those asked about stands in both lines, and of two shapes with places, which is where."""
    shared = tuple(
        (i, j)
        for i, values in enumerate(one.values)
        if pattern[1][i] <= 0
        for j, others in enumerate(other.values)
        if values == others
    )
    if one.place and other.place:
        return shared, one.place[0] < other.place[0], one.place[1] < other.place[1]
    return shared


def count_of(seen: RelationalView, number: int) -> Hashable:
    """How many of the shapes listed are of one group that the question names."""
    if number >= len(seen.asked):
        return None
    return seen.question, sum(_fits(values, seen.asked[number]) for values in seen.listed)


def touching(seen: RelationalView, number: int) -> Hashable:
    """How many lines beyond the list name one of those asked about, and how many a group that it is of."""
    if number >= len(seen.asked):
        return None
    named = [v for line in seen.lines if not line.words.startswith("- ") for v in line.values]
    exact = sum(values == seen.asked[number] for values in named)
    return seen.question, exact, sum(_fits(values, seen.asked[number]) for values in named) - exact


def rank_of(seen: RelationalView, number: int, axis: int) -> Hashable:
    """The rank of one of the shapes asked about, along the question's axis (0) or the other (1)."""
    if number >= len(seen.asked):
        return None
    ranks = seen.ranks.get(seen.asked[number])
    return seen.question, ranks and ranks[axis]


def rank_of_choice(seen: RelationalView, choice: Values, axis: int) -> Hashable:
    ranks = seen.ranks.get(choice)
    return seen.question, ranks and ranks[axis]


def order_across(seen: RelationalView) -> Hashable:
    """The order of the shapes asked about along the axis that the question is not about."""
    ranks = [seen.ranks.get(one, (0, 0))[1] for one in seen.asked]
    return seen.question, tuple(sorted(range(len(ranks)), key=ranks.__getitem__))


def ranks_across(seen: RelationalView) -> Hashable:
    return seen.question, tuple(seen.ranks.get(one, (0, 0))[1] for one in seen.asked)
