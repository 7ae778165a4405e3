"""Attribute patterns: what shapes can have in common, such as being large and green."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations, product

from proctor.core.random import Stream
from proctor.shapes.canvas import FORMS, LARGE, SIZES, Board, Kind, Shape

Pattern = tuple[str, ...]  # names of attributes
Values = tuple[str, ...]  # a value for each of them

ATTRIBUTES = ("size", "colour", "form")  # in the order of a kind
PATTERNS: tuple[Pattern, ...] = tuple(
    pattern for length in range(1, len(ATTRIBUTES) + 1) for pattern in combinations(ATTRIBUTES, length)
)
_WORDS = (*SIZES, *LARGE.colours, *FORMS)


@cache
def all_values(board: Board, pattern: Pattern) -> tuple[Values, ...]:
    values = {"size": SIZES, "colour": board.colours, "form": FORMS}
    return tuple(product(*(values[name] for name in pattern)))


@cache
def kinds_with(board: Board, pattern: Pattern, values: Values) -> tuple[Kind, ...]:
    """The kinds of shapes that have these values."""
    wanted = dict(zip(pattern, values, strict=True))
    return tuple(kind for kind in board.kinds if wanted.items() <= dict(zip(ATTRIBUTES, kind, strict=True)).items())


@cache
def capacity(board: Board, pattern: Pattern) -> int:
    """How many kinds share one set of values."""
    return len(board.kinds) // len(all_values(board, pattern))


def count_values(pattern: Pattern, shapes: Iterable[Shape]) -> Counter[Values]:
    """How many shapes have each set of values, for those that occur."""
    return Counter(tuple(getattr(shape, name) for name in pattern) for shape in shapes)


Option = tuple[Pattern, list[Values], list[Values]]


def partly_present(board: Board, shapes: Sequence[Shape]) -> list[Option]:
    """The attributes of which some values occur on the canvas and some do not, with the one and the other."""
    options = []
    for pattern in PATTERNS:
        counts = count_values(pattern, shapes)
        present = [values for values in all_values(board, pattern) if values in counts]
        absent = [values for values in all_values(board, pattern) if values not in counts]
        if absent:
            options.append((pattern, present, absent))
    return options


def draw_existing(options: Sequence[Option], exists: bool, random: Stream) -> tuple[Pattern, Values]:
    """Attributes with values that occur, or that do not."""
    pattern, present, absent = random.choice(options)
    return pattern, random.choice(present if exists else absent)


def name_values(pattern: Pattern, values: Values, *, plural: bool = False) -> str:
    """'large green triangles', or 'large green shapes' where the form is left open."""
    words = values if pattern[-1] == "form" else (*values, "shape")
    return " ".join(words) + ("s" if plural else "")


def with_article(name: str) -> str:
    """'an orange circle'; of all that there is, only this colour begins with a vowel."""
    return f"{'an' if name.startswith('orange') else 'a'} {name}"


def words_of_values(question: str) -> set[str]:
    """The values that a question names; for solvers, which see only its words."""
    words = {word.strip("?.,") for word in question.split()}
    return {value for value in _WORDS if value in words or f"{value}s" in words}


def shapes_in_text(description: str) -> set[str]:
    """The names of all shapes that a description mentions; for solvers."""
    words = description.split()
    return {" ".join(words[i - 2 : i + 1]) for i, word in enumerate(words) if word in FORMS and i >= 2}
