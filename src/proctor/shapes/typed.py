"""Tasks by the type of their answer: each balances its answers, reads them with its parser and marks them exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from proctor.core.random import Stream
from proctor.shapes.canvas import Shape, place_kinds
from proctor.shapes.descriptions import Kind
from proctor.shapes.replies import UNDETERMINED
from proctor.shapes.task import Task

QUESTIONS = 3  # pairs that a task makes of one canvas


SHORT = 100  # letters of a reply that is worth remembering: others hardly come twice
WORDS = 2  # of a reply that says the same whatever was asked

Parser = Callable[[str, str], str | None]


def parse_once(parse: Parser, text: str, question: str) -> str | None:
    """What the parser reads in the text. Short replies, such as a single word, are read once and remembered."""
    if len(text) > SHORT:
        return parse(text, question)
    return _remembered(parse, text, "" if text.count(" ") < WORDS else question)


@lru_cache(maxsize=4096)
def _remembered(parse: Parser, text: str, question: str) -> str | None:
    return parse(text, question)


class SparingSettings(Struct, frozen=True):
    """For tasks that also ask for what is not there."""

    shapes: Annotated[int, Meta(ge=2, le=47)] = 7
    description: Kind = "coordinates"


class TypedTask(Task):
    parser: ClassVar[str]  # of `proctor.shapes.answers`

    def parse_answer(self, text: str, question: str = "") -> str | None:
        if text in self.answers:
            return text
        from proctor.shapes import answers  # many patterns: a run in which nothing has to be read does without

        return parse_once(getattr(answers, self.parser), text, question)

    def select_expected_answer(self, i: int, n: int) -> str:
        return self.balanced_answer(i)

    def score(self, expected: str, actual: str) -> float:
        return float(expected == actual)

    def wanted_answers(self, selected_answer: str | None) -> list[str]:
        """An answer for each question of a canvas: the selected one first, the others by chance."""
        drawn = [self.random.choice(self.answers) for _ in range(QUESTIONS)]
        return [selected_answer, *drawn[1:]] if selected_answer else drawn


class YesNoTask(TypedTask):
    answers = ("Yes", "No")
    instruction: ClassVar[str] = "Answer Yes or No."
    parser = "parse_yes_no"


class EntailmentTask(TypedTask):
    """Does it follow from the text, or its opposite, or neither?"""

    answers = ("Yes", "No", UNDETERMINED)
    instruction: ClassVar[str] = f"Answer Yes, No or {UNDETERMINED}."
    parser = "parse_entailment"


class NumberTask(TypedTask):
    instruction: ClassVar[str] = "Answer with a number."
    parser = "parse_integer"


class DirectionTask(TypedTask):
    parser = "parse_direction"


class ColourTask(TypedTask):
    """The answer is one of the colours that there are on the board."""

    instruction: ClassVar[str] = "Answer with a colour."
    parser = "parse_colour"

    @property
    def answers(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.board.colours


class ShapeTask(TypedTask):
    """The answer is one of the shapes shown, each as likely as the others."""

    instruction: ClassVar[str] = "Answer with the shape's size, colour and form."
    parser = "parse_shape"

    @property
    def answers(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.board.names

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """The selected shape, where there is one, among others of any kind: each of them could be the one."""
        kinds = [kind for kind in self.board.kinds if " ".join(kind) == selected_answer]
        others = [kind for kind in self.board.kinds if kind not in kinds]
        kinds += random.sample(others, self.settings.shapes - len(kinds))
        return place_kinds(random.shuffled(kinds), random, self.board)

    def choices(self, shapes: list[Shape], question: str) -> tuple[str, ...]:
        return tuple(str(shape) for shape in shapes)

    def wanted_shapes(self, names: Sequence[str], selected_answer: str | None) -> list[str]:
        """A shape for each question, the selected one first. The others may be the same: they tell nothing about it."""
        drawn = [self.random.choice(names) for _ in range(QUESTIONS)]
        return [selected_answer, *drawn[1:]] if selected_answer else drawn
