"""The family's task: questions about a canvas, made to order so that the answers come out balanced."""

from __future__ import annotations

import copy
import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta, Struct

from proctor.core.config import RunConfig
from proctor.core.errors import TaskError, UsageError
from proctor.core.random import Stream, mix, name_key
from proctor.core.reasoning import strip_reasoning
from proctor.core.task import Task as CoreTask
from proctor.core.types import Finding, Probe, Prompt, Sample, Score
from proctor.shapes.canvas import Board, Shape, board_for, draw_canvas
from proctor.shapes.descriptions import DESCRIPTIONS, Kind
from proctor.shapes.loader import load_item, load_row, load_sample, metadata_of
from proctor.shapes.partial import PARTIAL_SOLVING
from proctor.shapes.proof import find_faults

if TYPE_CHECKING:
    from proctor.shapes.batch.maker import Maker

BATCHED = 500  # samples: for fewer, to import numpy takes longer than to make them one by one
ROUNDS = 10  # how often each answer comes in a block, within which the answers are balanced exactly
SAMPLES = 100  # of a run that does not say how many, or a few more to complete a block
LONGEST = 1000  # samples of a block that a run completes unasked


class CanvasSettings(Struct, frozen=True):
    shapes: Annotated[int, Meta(ge=2, le=48)] = 7
    description: Kind = "coordinates"


class Task(CoreTask):
    """Extend it with `generate_questions`, and where the defaults do not fit, the other methods."""

    version: ClassVar[str] = "3"
    Settings: ClassVar[type[Struct]] = CanvasSettings
    answers: tuple[str, ...] = ()  # the possible answers, where the set is closed
    instruction: ClassVar[str] = ""  # how to answer, said after the question
    max_tokens: ClassVar[int] = 32

    description: str | None = None  # set in generate_questions, it takes the place of the base description …
    extends_description: ClassVar[bool] = False  # … or is added to it
    evidence: int | None = None  # set in generate_questions: the fewest lines that fix the first answer
    asks_for_mention: ClassVar[bool] = False  # what is asked for is there if the text mentions it
    asks_for_rank: ClassVar[bool] = False  # what is asked for is the place of a shape along the question's axis
    maker: ClassVar[str] = ""  # module:Class that makes the same items in batches; text, since it needs numpy
    absent_kinds: ClassVar[int] = 0  # how many kinds must stay off the canvas, to be asked for
    random: Stream  # renewed for every canvas
    seed: int = 0

    @property
    def lines_needed(self) -> int:
        """With fewer lines of the description nobody can know an answer: probes that see fewer must not.

        The evidence of a sample is at least as much, and more where it depends on the question or the canvas.
        """
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
        """The answer that the text gives, without the reasoning before it, or None where it gives none."""
        return strip_reasoning(text) or None

    def score(self, expected: str, actual: str) -> float:
        """Full marks for an answer that contains the expected one; what a model reasons before it does not count."""
        return float(expected in strip_reasoning(actual))

    def balanced_answer(self, i: int) -> str:
        """Each of `answers` equally often in every block of items, in an order that the seed decides."""
        block = ROUNDS * len(self.answers)
        return self.answers[_order_of_block(self.balance_key_parts, i // block, block)[i % block] % len(self.answers)]

    @property
    def block(self) -> int:
        """The number of samples after which every answer has come equally often; 1 where answers are left to chance."""
        balanced = type(self).select_expected_answer is not Task.select_expected_answer
        return ROUNDS * len(self.answers) if balanced and self.answers else 1

    @property
    def default_limit(self) -> int:
        """Whole blocks, so that no constant answer is right more often than it should be."""
        return math.ceil(SAMPLES / self.block) * self.block if self.block <= LONGEST else SAMPLES

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
        task = self.seeded(config.seed)
        item = load_item(task, sample.index, config.limit_start + self.count(config))
        made = (sample.seed, sample.metadata.get("question"), sample.target)
        if not item.canvas or made != (task.item_key(sample.index), item.question, item.answer):
            return None
        from proctor.shapes.drawing import svg  # numpy

        return svg(item.shapes, self.board)

    def proofs(self, sample: Sample) -> Iterator[str]:
        solve = None if type(self).solve is Task.solve else self.solve
        return find_faults(sample, self.describe, solve, self.instruction)

    def findings(self, config: RunConfig) -> Iterable[Finding]:
        from proctor.shapes.audit import audit

        own = [cls for cls in type(self).__mro__ if issubclass(cls, Task) and cls is not Task]
        return audit(self.seeded(config.seed), any("extends_description" in vars(cls) for cls in own))

    def count(self, config: RunConfig) -> int:
        return config.limit or self.default_limit

    def samples(self, config: RunConfig) -> Iterator[Sample]:
        task = self.seeded(config.seed)
        end = config.limit_start + self.count(config)
        part = range(config.limit_start, end)
        if config.few_shot == 0 and config.modality == "text" and len(part) >= BATCHED and (maker := task._maker()):
            yield from maker.samples(part)
            return
        for index in part:
            yield load_sample(task, index, end, config.few_shot, config.modality, config.shots)

    def probes(self, config: RunConfig) -> Iterable[Probe]:
        from proctor.shapes.probes import probe  # numpy

        return probe(self.seeded(config.seed), self.count(config))

    def json_lines(self, config: RunConfig, part: range) -> Iterator[bytes]:
        task = self.seeded(config.seed)
        if config.few_shot == 0 and (maker := task._maker()):
            yield from maker.json_lines(part)
            return
        for index in part:
            row = load_row(task, index, self.count(config), config.few_shot, config.shots)
            yield msgspec.json.encode(row) + b"\n"

    def seeded(self, seed: int) -> Self:
        """The same task with this seed, as an object of its own: runs side by side may have different seeds."""
        task = copy.copy(self)
        task.seed = seed
        return task

    def _maker(self) -> Maker | None:
        """Makes the same items in batches. Not inherited: a class that changes a task may draw otherwise."""
        module, _, name = vars(type(self)).get("maker", "").partition(":")
        if not module:
            return None
        maker: Maker = getattr(import_module(module), name)(self)
        return maker

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
        answer = self._parse(text, str(sample.metadata.get("question", "")))
        if answer is None:
            return Score(0, "unparsed")
        return Score(self.score(str(sample.target), answer), answer=answer)

    def _parse(self, text: str, question: str) -> str | None:
        if not _takes_question(type(self)):
            return self.parse_answer(text)
        parse: Callable[..., str | None] = self.parse_answer
        return parse(text, question)

    def score_answer(self, text: str, item: Mapping[str, Any]) -> float:
        """What a run gives this text: from 0 to 1. The item is a line of `proctor generate`, or has its fields."""
        if item.get("task", self.name) != self.name:
            raise UsageError(f"{self.name} cannot score an item of {item['task']}.")
        index = int(item["id"].rpartition("-")[2])
        sample = Sample(
            id=item["id"],
            index=index,
            input=msgspec.convert(item["prompt"], Prompt),
            target=item["answer"],
            seed=self.item_key(index),
            choices=tuple(item["choices"]),
            metadata=metadata_of(self, item["question"], item.get("evidence")),
        )
        score = self.score_text(sample, text)
        if score.value is None:
            raise TaskError(f"{self.name} gives {text!r:.80} no score: {score.why or score.outcome}.")
        return score.value


@lru_cache(maxsize=64)
def _takes_question(task: type[Task]) -> bool:
    """Does its parser want to know what was asked? One of a task of your own need not."""
    return "question" in inspect.signature(task.parse_answer).parameters


@lru_cache(maxsize=8)
def _order_of_block(key: tuple[int, ...], number: int, size: int) -> list[int]:
    return Stream(*key, number).shuffled(range(size))
