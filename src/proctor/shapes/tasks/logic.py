"""Is a statement about the canvas true, with and, or and not?"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import product
from operator import ge
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

# What a sentence says of its two parts, each of which is "there is …" or "there is no …".
SENTENCES: dict[str, Callable[[bool, bool], bool]] = {
    "{} and {}": lambda a, b: a and b,
    "{} or {}, or both": lambda a, b: a or b,
    "either {} or {}, but not both": lambda a, b: a != b,
}


Truths = tuple[bool, ...]  # one for each of the two parts
MANY = 2  # more of a thing than that are no more evidence
QUESTION = "Is it true that {}?"


class LogicSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=46)] = 7  # two kinds at least are there, and two are not
    description: Kind = "coordinates"


class LogicTask(YesNoTask):
    """Every form of sentence is true as often as false, and its parts are drawn so that the answer comes out.

    Both parts are about the same attributes, with different values: so neither follows from the other, and whether
    two things are there is as likely for any two of them. Of other things, such as red shapes and red circles, the
    question alone would tell something.
    """

    summary = "is a statement with and, or, not true of the canvas? (Yes / No)"
    maker = "proctor.shapes.batch.logic:LogicMaker"
    Settings = LogicSettings
    absent_kinds = 2
    asks_for_mention = True
    group_by = ("evidence",)

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        options = [option for option in partly_present(self.board, shapes) if min(map(len, option[1:])) >= 2]
        pairs: list[tuple[str, str]] = []
        for answer in self.wanted_answers(selected_answer):
            sentence = self.random.choice(tuple(SENTENCES))
            pattern, things, denied = self._draw_parts(options, self.random.choice(fitting_truths(sentence, answer)))
            if not pairs:
                counts = count_values(pattern, shapes)
                present = tuple(min(counts[values], MANY) for values in things)
                seen = shapes_to_see(len(shapes), present, sentence, denied)
                self.evidence = lines_to_mention(seen, self.settings.description)
            parts = [state(pattern, values, no) for values, no in zip(things, denied, strict=True)]
            pairs.append((QUESTION.format(sentence).format(*parts), answer))
        return pairs

    def _draw_parts(self, options: list[Option], truths: Truths) -> tuple[Pattern, list[Values], Truths]:
        """Two statements of these truths, about different things: their values, and whether each is denied."""
        denied = tuple(bool(self.random.below(2)) for _ in truths)
        exist = [truth != no for truth, no in zip(truths, denied, strict=True)]
        pattern, present, absent = self.random.choice(options)
        first = self.random.choice(present if exist[0] else absent)
        second = self.random.choice([values for values in (present if exist[1] else absent) if values != first])
        return pattern, [first, second], denied

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: settles the two parts, then counts how many of them are true."""
        names = shapes_in_text(description)
        parts = re.findall(r"there is (an?|no) (.*?)(?= and there| or there|, |\?)", question)
        true = sum(
            any(words_of_values(what) <= set(name.split()) for name in names) == (article != "no")
            for article, what in parts
        )
        enough = {1} if "either" in question else {1, 2} if " or there" in question else {2}
        return "Yes" if true in enough else "No"


def fitting_truths(sentence: str, answer: str) -> list[tuple[bool, bool]]:
    """What may be true of the two parts, for the answer to be this one."""
    return [t for t in product((True, False), (True, False)) if SENTENCES[sentence](*t) == (answer == "Yes")]


@cache
def shapes_to_see(shapes: int, present: tuple[int, ...], sentence: str, denied: Truths) -> int:
    """How many shapes to see, to know if the sentence is true; of its two things, so many are present (two: or more).

    What was seen is there, what was not may be: as many of the two things as there are shapes left. It can help to
    leave out a thing that is there: if one shape is left and neither was seen, not both of them can be there.
    """
    for seen in range(shapes):
        for visible in product(*((False, True)[: 1 + number] for number in present)):
            hidden = sum(number for number, saw in zip(present, visible, strict=True) if not saw)
            fits = sum(visible) <= seen and hidden <= shapes - seen
            if fits and _is_settled(visible, shapes - seen, sentence, denied):
                return seen
    return shapes


def _is_settled(visible: Truths, left: int, sentence: str, denied: Truths) -> bool:
    """Whether the sentence is true, or false, whichever of the things not seen are among the shapes left."""
    possible = [
        there
        for there in product((False, True), repeat=2)
        if all(map(ge, there, visible)) and sum(there) - sum(visible) <= left
    ]
    return len({SENTENCES[sentence](there[0] != denied[0], there[1] != denied[1]) for there in possible}) == 1


def state(pattern: Pattern, values: Values, denied: bool) -> str:
    thing = name_values(pattern, values)
    return f"there is {f'no {thing}' if denied else with_article(thing)}"
