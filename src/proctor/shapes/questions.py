"""What a question asks about, read from its words."""

from __future__ import annotations

import re

from proctor.shapes.canvas import FORMS, LARGE, SIZES

Thing = frozenset[str]  # attributes: of one kind of shape if they are three, else of all shapes that have them

_ATTRIBUTES = tuple(map(frozenset, (SIZES, LARGE.colours, FORMS)))
_WORD = rf"(?:{'|'.join((*SIZES, *LARGE.colours, *FORMS))})"
_THING = re.compile(rf"\b{_WORD}(?: (?:and )?{_WORD})*(?=s?\b)", re.IGNORECASE)


def things_in(text: str) -> list[Thing]:
    """'Are there more red circles than large shapes?' names {red, circle} and {large}."""
    return [frozenset(match[0].lower().replace(" and ", " ").split()) for match in _THING.finditer(text)]


def asks_alike(question: str, other: str) -> bool:
    """Whether one is the other in a new order, or about mostly the same things, perhaps in more or less detail.

    From the answer to one, that to the other could be had without the canvas: A is to the left of B, so B is to the
    right of A; there is a red circle, so there is a red shape.
    """
    if sorted(question.lower().split()) == sorted(other.lower().split()):
        return True
    mine, theirs = things_in(question), things_in(other)
    return _shares_most(mine, theirs) and _shares_most(theirs, mine)


def names_same(question: str, other: str) -> bool:
    """Whether a shape could be among the things that both are about, such as a red circle and small red shapes."""
    return any(_overlap(mine, theirs) for mine in things_in(question) for theirs in things_in(other))


def _overlap(thing: Thing, other: Thing) -> bool:
    return all(thing & values == other & values or not (thing & values and other & values) for values in _ATTRIBUTES)


def _shares_most(things: list[Thing], others: list[Thing]) -> bool:
    """Whether more than half of the things are among the others, or the same in more or less detail."""
    shared = sum(any(thing <= other or other <= thing for other in others) for thing in things)
    return 2 * shared > len(things)
