"""The family's task: questions about a canvas, made to order so that the answers come out balanced."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from proctor.config import RunConfig
from proctor.randomness import Stream, mix, name_key
from proctor.shapes.canvas import Board, Shape, board_for, draw_canvas
from proctor.shapes.descriptions import Kind
from proctor.shapes.loader import load_sample
from proctor.task import Task as CoreTask
from proctor.types import Sample, Score

ROUNDS = 10  # how often each answer comes in a block, within which the answers are balanced exactly


class CanvasSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=48)] = 7
    description: Kind = "coordinates"


class Task(CoreTask):
    """Extend it with `generate_questions`, and where the defaults do not fit, the other methods."""

    Settings: ClassVar[type[Struct]] = CanvasSettings
    answers: tuple[str, ...] = ()  # the possible answers, where the set is closed
    instruction: ClassVar[str] = ""  # how to answer, said after the question
    max_tokens: ClassVar[int] = 32
    default_limit: ClassVar[int] = 100

    description: str | None = None  # set in generate_questions, it takes the place of the base description …
    extends_description: ClassVar[bool] = False  # … or is added to it
    absent_kinds: ClassVar[int] = 0  # how many kinds must stay off the canvas, to be asked for
    random: Stream  # renewed for every canvas
    seed: int = 0

    @abstractmethod
    def generate_questions(self, shapes: list[Shape], selected_answer: str | None = None) -> list[tuple[str, str]]:
        """(question, answer) pairs. The first is evaluated, with selected_answer as its answer if given."""

    @property
    def board(self) -> Board:
        return board_for(self.settings.shapes + self.absent_kinds)

    def draw_shapes(self, random: Stream, selected_answer: str | None) -> list[Shape]:
        """The canvas. From it alone, nobody must be able to tell which answer was selected."""
        return draw_canvas(self.settings.shapes, random, self.board)

    def select_expected_answer(self, i: int, n: int) -> str | None:
        """The answer wanted for item i of n; None leaves it to chance."""
        return None

    def choices(self, shapes: list[Shape], question: str) -> tuple[str, ...]:
        """The answers that this question about the canvas leaves open, where the set is closed."""
        return self.answers

    def parse_answer(self, text: str) -> str | None:
        """The answer that the text gives, or None where it gives none."""
        return text.strip() or None

    def score(self, expected: str, actual: str) -> float:
        """Full marks for an answer that contains the expected one."""
        return float(expected in actual)

    def balanced_answer(self, i: int) -> str:
        """Each of `answers` equally often in every block of items, in an order that the seed decides."""
        block = ROUNDS * len(self.answers)
        order = Stream(name_key("balance"), self.seed, i // block).shuffled(range(block))
        return self.answers[order[i % block] % len(self.answers)]

    def compare_with_key(self, sample: Sample, solve: Callable[[str, str], str]) -> Iterator[str]:
        """The fault, if a solver that reads only description and question comes to another answer."""
        prompts = [sample.input] if isinstance(sample.input, str) else [m.content for m in sample.input]
        for prompt, answer in zip(prompts[::2], [*prompts[1::2], sample.target], strict=True):
            description, _, question = prompt.rpartition("\n\n")
            solved = solve(description, question)
            if solved != answer:
                yield f"the text says {solved}, the key says {answer}"

    # -- the core's contract ------------------------------------------------------------------

    def count(self, config: RunConfig) -> int:
        return config.limit or self.default_limit

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        self.seed = config.seed
        count = self.count(config)
        for index in range(config.limit_start, config.limit_start + count):
            yield load_sample(self, index, count, config.few_shot)

    def item_key(self, index: int) -> int:
        return mix(name_key(f"{type(self).__name__} {self.version}"), self.seed, index)

    def score_text(self, sample: Sample, text: str) -> Score:
        answer = self.parse_answer(text)
        if answer is None:
            return Score(0, "unparsed")
        return Score(self.score(str(sample.target), answer), answer=answer)
