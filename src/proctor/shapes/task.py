"""The family's task: questions about a canvas, made to order so that the answers come out balanced."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta, Struct

from proctor.config import RunConfig
from proctor.randomness import Stream, mix, name_key
from proctor.shapes.canvas import Board, Shape, board_for, draw_canvas
from proctor.shapes.descriptions import DESCRIPTIONS, Kind
from proctor.shapes.loader import load_item, load_row, load_sample
from proctor.shapes.partial import PARTIAL_SOLVING
from proctor.shapes.proof import find_faults
from proctor.task import Task as CoreTask
from proctor.types import Probe, Sample, Score

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
    asks_for_mention: ClassVar[bool] = False  # what is asked for is there if the text mentions it
    asks_for_rank: ClassVar[bool] = False  # what is asked for is the place of a shape along the question's axis
    maker: ClassVar[str] = ""  # module:Class that makes the same items in batches; text, since it needs numpy
    absent_kinds: ClassVar[int] = 0  # how many kinds must stay off the canvas, to be asked for
    random: Stream  # renewed for every canvas
    seed: int = 0

    @property
    def lines_needed(self) -> int:
        """With fewer lines of the description nobody can know an answer: probes that see fewer must not."""
        related = getattr(self.settings, "description", None) in ("full", "partial")
        return 1 if related or self.asks_for_mention else 2

    @property
    def partial_solving(self) -> Mapping[str, float | None]:
        """Probes that cannot be kept from beating chance, with how often each is right at the default settings."""
        return PARTIAL_SOLVING.get(type(self).__name__, {})

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
        return self.answers[_order_of_block(self.balance_key_parts, i // block, block)[i % block] % len(self.answers)]

    def describe(self, shapes: Sequence[Shape]) -> str:
        """The canvas in words: the base description."""
        return DESCRIPTIONS[self.settings.description](shapes)

    @staticmethod
    def solve(description: str, question: str) -> str | None:
        """The answer from the words alone, found in another way than the questions are made; for `proctor check`."""
        return None

    # -- the core's contract ------------------------------------------------------------------

    def has_pictures(self) -> bool:
        """The canvas can be drawn unless the task describes it in its own way, as the first item shows."""
        return bool(load_item(self, 0, self.default_limit).canvas)

    def draw_row(self, row: Mapping[str, Any], ending: str) -> bytes:
        from proctor.shapes.drawing import png, svg  # numpy

        shapes = msgspec.convert(row["shapes"], list[Shape])
        return png(shapes, self.board) if ending == "png" else svg(shapes, self.board).encode()

    def draw_sample(self, sample: Sample, config: RunConfig) -> str | None:
        self.seed = config.seed
        item = load_item(self, sample.index, config.limit_start + self.count(config))
        made = (sample.seed, sample.metadata.get("question"), sample.target)
        if not item.canvas or made != (self.item_key(sample.index), item.question, item.answer):
            return None
        from proctor.shapes.drawing import svg  # numpy

        return svg(item.shapes, self.board)

    def proofs(self, sample: Sample) -> Iterator[str]:
        solve = None if type(self).solve is Task.solve else self.solve
        return find_faults(sample, self.describe, solve, self.instruction)

    def count(self, config: RunConfig) -> int:
        return config.limit or self.default_limit

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        self.seed = config.seed
        end = config.limit_start + self.count(config)
        for index in range(config.limit_start, end):
            yield load_sample(self, index, end, config.few_shot, config.modality)

    def probes(self, config: RunConfig) -> Iterable[Probe]:
        from proctor.shapes.probes import probe  # numpy

        self.seed = config.seed
        return probe(self, self.count(config))

    def json_lines(self, config: RunConfig, part: range) -> Iterator[bytes]:
        self.seed = config.seed
        # Not inherited: a class that changes a task may draw otherwise.
        maker = vars(type(self)).get("maker")
        if maker and config.few_shot == 0:
            module, _, name = maker.partition(":")
            yield from getattr(import_module(module), name)(self).json_lines(part)
            return
        for index in part:
            yield msgspec.json.encode(load_row(self, index, self.count(config), config.few_shot)) + b"\n"

    def item_key(self, index: int) -> int:
        return mix(*self.item_key_parts, index)

    @property
    def item_key_parts(self) -> tuple[int, int]:
        return name_key(f"{type(self).__name__} {self.version}"), self.seed

    @property
    def balance_key_parts(self) -> tuple[int, int, int]:
        """Another order of answers for every task: one key does not fit all."""
        return name_key("balance"), *self.item_key_parts

    def score_text(self, sample: Sample, text: str) -> Score:
        answer = self.parse_answer(text)
        if answer is None:
            return Score(0, "unparsed")
        return Score(self.score(str(sample.target), answer), answer=answer)


@lru_cache(maxsize=8)
def _order_of_block(key: tuple[int, ...], number: int, size: int) -> list[int]:
    return Stream(*key, number).shuffled(range(size))
