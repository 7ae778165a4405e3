"""What a reply answers: Yes or No, a number, a direction, a colour, a shape, or one of a set of your own.

Each parser takes the whole reply and returns the answer in the form that the tasks use, or None where a person could
not tell. The question, where it is given, decides what the reply alone leaves open: of "3 small squares and 2 large
ones", which number was asked for. How the place of the answer is found is described in `proctor.shapes.replies.reader`.
"""

from __future__ import annotations

from collections.abc import Sequence

from proctor.shapes.replies import UNDETERMINED
from proctor.shapes.replies.asked import read_about
from proctor.shapes.replies.choices import choice_of
from proctor.shapes.replies.colours import COLOURS
from proctor.shapes.replies.directions import DIRECTIONS
from proctor.shapes.replies.numbers import NUMBERS
from proctor.shapes.replies.polar import ENTAILMENT, YES_NO
from proctor.shapes.replies.reader import read_reply
from proctor.shapes.replies.shapes import SHAPES

__all__ = [
    "UNDETERMINED",
    "parse_choice",
    "parse_colour",
    "parse_direction",
    "parse_entailment",
    "parse_integer",
    "parse_shape",
    "parse_yes_no",
]


def parse_yes_no(text: str, question: str = "") -> str | None:
    return read_about(text, YES_NO, question)


def parse_entailment(text: str, question: str = "") -> str | None:
    """Yes, No or Cannot be determined."""
    return read_about(text, ENTAILMENT, question)


def parse_integer(text: str, question: str = "") -> str | None:
    """An integer in digits or in words; "none" is 0."""
    answer = read_about(text, NUMBERS, question)
    return answer if answer and answer.removeprefix("-").isdecimal() else None


def parse_direction(text: str, question: str = "") -> str | None:
    """Left, Right, Above, Below, or two of them, such as Above Left."""
    return read_about(text, DIRECTIONS, question)


def parse_colour(text: str, question: str = "") -> str | None:
    return read_about(text, COLOURS, question)


def parse_shape(text: str, question: str = "") -> str | None:
    """A shape by size, colour and form, in any order."""
    return read_about(text, SHAPES, question)


def parse_choice(text: str, choices: Sequence[str]) -> str | None:
    """One of the choices, in their own spelling; upper and lower case are the same, except in single letters."""
    return read_reply(text, choice_of(tuple(choices)))
