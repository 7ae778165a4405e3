"""Is a statement about the canvas true, with and, or and not?"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

from proctor.shapes.canvas import Shape
from proctor.shapes.patterns import Option, draw_existing, name_values, partly_present, shapes_in_text, words_of_values
from proctor.shapes.typed import SparingSettings, YesNoTask

TRIES = 20

# What a sentence says of its two parts, each of which is "there is …" or "there is no …".
SENTENCES: dict[str, Callable[[bool, bool], bool]] = {
    "{} and {}": lambda a, b: a and b,
    "{} or {}, or both": lambda a, b: a or b,
    "either {} or {}, but not both": lambda a, b: a != b,
}


class LogicTask(YesNoTask):
    """Every form of sentence is true as often as false, and its parts are drawn so that the answer comes out."""

    summary = "is a statement with and, or, not true of the canvas? (Yes / No)"
    Settings = SparingSettings
    absent_kinds = 1
    asks_for_mention = True

    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        options = partly_present(self.board, shapes)
        pairs = []
        for answer in self.wanted_answers(selected_answer):
            sentence = self.random.choice(tuple(SENTENCES))
            wanted = [t for t in product((True, False), repeat=2) if SENTENCES[sentence](*t) == (answer == "Yes")]
            pairs.append(
                (f"Is it true that {sentence.format(*self._parts(options, self.random.choice(wanted)))}?", answer)
            )
        return pairs

    def _parts(self, options: list[Option], truths: tuple[bool, ...]) -> list[str]:
        """Two statements of these truths, about different things unless the canvas has nothing else to offer."""
        for _ in range(TRIES):
            denied = [bool(self.random.below(2)) for _ in truths]
            exists = [truth != no for truth, no in zip(truths, denied, strict=True)]
            what = [name_values(*draw_existing(options, there, self.random)) for there in exists]
            if what[0] != what[1]:
                break
        return [f"there is {'no' if no else 'a'} {thing}" for no, thing in zip(denied, what, strict=True)]

    @staticmethod
    def solve(description: str, question: str) -> str:
        """The answer from the words alone: settles the two parts, then counts how many of them are true."""
        names = shapes_in_text(description)
        parts = re.findall(r"there is (a|no) (.*?)(?= and there| or there|, |\?)", question)
        true = sum(
            any(words_of_values(what) <= set(name.split()) for name in names) == (article == "a")
            for article, what in parts
        )
        enough = {1} if "either" in question else {1, 2} if " or there" in question else {2}
        return "Yes" if true in enough else "No"
