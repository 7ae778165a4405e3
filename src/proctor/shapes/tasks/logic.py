"""Is a statement about the canvas true, with either … or, and, not?"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import product
from operator import ge, ne
from typing import Annotated

from msgspec import Meta, Struct

from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import Kind, lines_to_mention
from proctor.shapes.patterns import (
    Option,
    Pattern,
    Values,
    count_values,
    name_values,
    partly_present,
    shapes_in_text,
    with_article,
    words_of_values,
)
from proctor.shapes.typed import YesNoTask

# What a sentence says of its parts, each of which is "there is …" or "there is no …".
SENTENCES: dict[str, Callable[..., bool]] = {
    "either {} or {}, but not both": lambda a, c: a != c,
    "either {} and {}, or {}, but not both": lambda a, b, c: (a and b) != c,
}


Truths = tuple[bool, ...]  # one for each part
PARTS = 3  # at most
MANY = PARTS  # more of a thing than that are no more evidence
QUESTION = "Is it true that {}?"


class LogicSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=3, le=45)] = 7  # three kinds at least are there, and three are not
    description: Kind = "coordinates"


class LogicTask(YesNoTask):
    """Every sentence says that one of two sides is true and the other is false: so neither side alone tells anything.

    With either answer, the left side is true as often as false, and a part of it tells no more than all of it. Of a
    plain "A and B" one part would tell much: where A is false, so is the whole.

    All parts are about the same attributes, with different values: so none follows from the others, and whether things
    are there is as likely for any of them. Of other things, such as red shapes and red circles, the question alone
    would tell something.
    """

    version = "4"
    summary = "is a statement with either … or, and, not true of the canvas? (Yes / No)"
    maker = "proctor.shapes.batch.logic:LogicMaker"
    Settings = LogicSettings
    absent_kinds = PARTS
    asks_for_mention = True
    group_by = ("evidence",)

    @property
    def lines_needed(self) -> int:
        """Both sides must be known. A line that relates two shapes may tell both."""
        return 2 if self.settings.description == "coordinates" else 1

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        options = [option for option in partly_present(self.board, shapes) if min(map(len, option[1:])) >= PARTS]
        pairs: list[tuple[str, str]] = []
        for answer in self.wanted_answers(selected_answer):
            sentence = self.random.choice(tuple(SENTENCES))
            pattern, things, denied = self._draw_parts(options, self._draw_truths(sentence, answer))
            if not pairs:
                counts = count_values(pattern, shapes)
                present = tuple(min(counts[values], MANY) for values in things)
                seen = shapes_to_see(len(shapes), present, sentence, denied)
                self.evidence = lines_to_mention(seen, self.settings.description)
            parts = [state(pattern, values, no) for values, no in zip(things, denied, strict=True)]
            pairs.append((QUESTION.format(sentence).format(*parts), answer))
        return pairs

    def _draw_truths(self, sentence: str, answer: str) -> Truths:
        """What is true of each part: of the left side by chance, of the right side as the answer wants it."""
        left = bool(self.random.below(2))
        return (*self.random.choice(truths_of_left(sentence, left)), left != (answer == "Yes"))

    def _draw_parts(self, options: list[Option], truths: Truths) -> tuple[Pattern, list[Values], Truths]:
        """Statements of these truths, about different things: their values, and whether each is denied."""
        # As many are drawn for a sentence of two parts: the batch path draws in step.
        denied = tuple(bool(self.random.below(2)) for _ in range(PARTS))[: len(truths)]
        pattern, present, absent = self.random.choice(options)
        things: list[Values] = []
        for truth, no in zip(truths, denied, strict=True):
            fitting = present if truth != no else absent
            things.append(self.random.choice([values for values in fitting if values not in things]))
        return pattern, things, denied

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: settles the parts, and then counts how many of the two sides are true."""
        names = shapes_in_text(description)
        *left, right = (
            any(words_of_values(what) <= set(name.split()) for name in names) == (article != "no")
            for article, what in re.findall(r"there is (an?|no) (.*?)(?= and there| or there|, )", question)
        )
        return "Yes" if [all(left), right].count(True) == 1 else "No"


def truths_of_left(sentence: str, left: bool) -> list[Truths]:
    """What may be true of the parts before the last, for all of them together to be true or not."""
    return [t for t in product((True, False), repeat=sentence.count("{}") - 1) if all(t) == left]


@cache
def shapes_to_see(shapes: int, present: tuple[int, ...], sentence: str, denied: Truths) -> int:
    """How many shapes to see, to know if the sentence is true; of its things, so many are present (MANY: or more).

    What was seen is there, what was not may be: as many of the things as there are shapes left. It can help to leave
    out a thing that is there: if one shape is left and none of two things was seen, not both of them can be there.
    """
    for seen in range(shapes):
        left = min(shapes - seen, PARTS)  # all the things can be among more shapes, too
        for visible in product(*((False, True)[: 1 + number] for number in present)):
            hidden = sum(number for number, saw in zip(present, visible, strict=True) if not saw)
            if sum(visible) <= seen and hidden <= shapes - seen and _is_settled(visible, left, sentence, denied):
                return seen
    return shapes


@cache
def _is_settled(visible: Truths, left: int, sentence: str, denied: Truths) -> bool:
    """Whether the sentence is true, or false, whichever of the things not seen are among the shapes left."""
    possible = [
        there
        for there in product((False, True), repeat=len(visible))
        if all(map(ge, there, visible)) and sum(there) - sum(visible) <= left
    ]
    return len({SENTENCES[sentence](*map(ne, there, denied)) for there in possible}) == 1


def state(pattern: Pattern, values: Values, denied: bool) -> str:
    thing = name_values(pattern, values)
    return f"there is {f'no {thing}' if denied else with_article(thing)}"
