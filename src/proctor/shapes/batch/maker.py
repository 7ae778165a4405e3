"""The maker: what the loader does for one item, for thousands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import NamedTuple

import msgspec
import numpy as np

from proctor.core.types import Sample
from proctor.shapes.batch.canvas import Canvas, draw_canvas
from proctor.shapes.batch.phrases import Column, Phrasebook
from proctor.shapes.batch.streams import Integers, Streams, Unsigned, mix_rows
from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import COORDINATES_HEADING, RELATIONS_HEADING, lines_to_mention, relation
from proctor.shapes.task import ROUNDS, Task
from proctor.shapes.typed import QUESTIONS

ROWS = 4096  # made at once: their arrays stay in the processor's cache
PAIRS = 200_000  # … also where pairs of shapes are described
SPAN = 16 * ROWS  # answers are balanced block by block: the more blocks at once, the better


_read_samples = msgspec.json.Decoder(Sample).decode_lines


class Batch(NamedTuple):
    """Some items as columns of phrases, a row for each."""

    keys: Unsigned
    number: Integers  # of the item, in two phrases
    thousands: list[bytes]  # phrases beyond the book's that numbers begin with
    canvas: Canvas
    prompt: list[Column]
    description: list[Column]
    question: list[Column]
    choices: list[Column]
    answer: Integers
    evidence: list[Column]  # of a sample or a row, with its key; empty where the task does not say


class Maker(ABC):
    """One task's items in batches. Every method draws as the task's own method does, number by number."""

    def __init__(self, task: Task) -> None:
        self.task, self.board, self.n = task, task.board, task.settings.shapes
        self.book = Phrasebook()
        self.names = self.book.add(self.board.names)
        self.answers = self.book.add(task.answers)
        self._write_syntax()
        if not self.brings_description:
            self._write_base()
        self.write_phrases()

    brings_description = False  # the task's own text takes the place of the base description
    constant_evidence = False  # the evidence of every item is `lines_needed` of the task

    @abstractmethod
    def write_phrases(self) -> None:
        """Adds to the book what the task's texts are made of."""

    @abstractmethod
    def ask(self, canvas: Canvas, streams: Streams, wanted: Integers) -> tuple[list[Column], list[Column]]:
        """The task's part of the description, and the first question; `wanted` are numbers of answers."""

    def draw_shapes(self, streams: Streams, wanted: Integers) -> Canvas:
        return draw_canvas(self.n, streams, self.board)

    def choices(self, canvas: Canvas, wanted: Integers) -> list[Column]:
        """`Task.choices` of each question, as JSON without its brackets; called after `ask`, for the same rows."""
        return [self._all_answers]

    def evidence(self, canvas: Canvas, wanted: Integers) -> int | Integers | None:
        """`Task.evidence` of each question; called after `ask`, for the same rows."""
        return self.task.lines_needed if self.constant_evidence else None

    def lines_to_mention(self, shapes: Integers) -> Integers:
        kind = self.task.settings.description
        return np.array([lines_to_mention(number, kind) for number in range(self.n + 1)])[shapes]

    def json_lines(self, part: range) -> Iterator[bytes]:
        """The rows of these items as lines of JSON, in pieces."""
        for batch in self._batches(part):
            columns: list[Column] = [self._id, batch.number, self._index, batch.number]
            columns += [self._prompt, *batch.prompt, self._description, *batch.description]
            columns += [self._question, *batch.question, self._choices, *batch.choices]
            columns += [self._answer, batch.answer, self._shapes, self._shapes_of(batch.canvas)]
            columns += [self._settings, *batch.evidence, self._end_of_line]
            yield from self.book.write(columns, len(batch.answer), batch.thousands)

    def samples(self, part: range) -> Iterator[Sample]:
        """The same items as a run takes them: written as JSON, too, and read back, which is the fastest way to them."""
        for batch in self._batches(part):
            seeds = [b"%d" % key for key in batch.keys.tolist()]
            seed = self.book.end + len(batch.thousands) + np.arange(len(seeds))
            columns: list[Column] = [self._id, batch.number, self._index, batch.number]
            columns += [self._input, *batch.prompt, self._target, batch.answer, self._seed, seed]
            columns += [self._choices_of_sample, *batch.choices, self._metadata, *batch.question]
            columns += [self._end_of_question, *batch.evidence, self._end_of_metadata, self._end_of_line]
            for piece in self.book.write(columns, len(seeds), [*batch.thousands, *seeds]):
                yield from _read_samples(piece)

    def _batches(self, part: range) -> Iterator[Batch]:
        for start in range(part.start, part.stop, SPAN):
            indices = np.arange(start, min(start + SPAN, part.stop))
            wanted = self._wanted(indices)
            rows = min(ROWS, max(1, PAIRS // self.n**2))
            for at in range(0, len(indices), rows):
                yield self._draw(indices[at : at + rows], wanted[at : at + rows])

    def _draw(self, indices: Integers, wanted: Integers) -> Batch:
        keys = mix_rows(*self.task.item_key_parts, last=indices)
        streams = Streams.seeded(keys)
        canvas = self.draw_shapes(streams, wanted)
        description, question = self.ask(canvas, streams, wanted)
        if not self.brings_description:
            description = [*self._base(canvas), *description]
        prompt = [*description, self._blank_line, *question, self._instruction]
        choices, evidence = self.choices(canvas, wanted), self.evidence(canvas, wanted)
        said: list[Column] = [] if evidence is None else [self._evidence, self._number + evidence]
        number, thousands = self._in_digits(indices)
        answer = self.answers + wanted
        return Batch(keys, number, thousands, canvas, prompt, description, question, choices, answer, said)

    def _in_digits(self, indices: Integers) -> tuple[Integers, list[bytes]]:
        """Each index as two phrases: its thousands, which are new to the book and come back too, and the rest."""
        thousands, units = np.divmod(indices, 1000)
        heads = range(int(thousands[0]), int(thousands[-1]) + 1)
        head = np.where(thousands == 0, self._nothing, self.book.end + thousands - heads.start)
        tail = np.where(thousands == 0, self._number, self._three_digits) + units
        return np.stack([head, tail], axis=1), [b"%d" % number for number in heads]

    def _wanted(self, indices: Integers) -> Integers:
        """`Task.balanced_answer` of each item, as the number of the answer."""
        answers = len(self.task.answers)
        block, place = np.divmod(indices, ROUNDS * answers)
        blocks, inverse = np.unique(block, return_inverse=True)
        # A stream of several keys begins where one of their mix would: the last of them is the block.
        streams = Streams(mix_rows(*self.task.balance_key_parts, last=blocks))
        order = streams.sample(ROUNDS * answers, ROUNDS * answers)
        return order[inverse, place] % answers

    def skip_wanted_answers(self, streams: Streams) -> None:
        """The task draws an answer for each of its questions before the first."""
        streams.skip(QUESTIONS)

    # -- what every row has ---------------------------------------------------------------------

    def _write_syntax(self) -> None:
        settings = msgspec.json.encode(self.task.settings).decode()
        name, version = (msgspec.json.encode(text).decode() for text in (self.task.name, self.task.version))
        add = self.book.add_json
        self._id = add([f'{{"id":"{self.task.seed}-'])
        self._index = add(['","index":'])
        self._prompt = add([f',"task":{name},"version":{version},"prompt":"'])
        self._blank_line = self.book.add(["\n\n"])
        self._instruction = self.book.add([f" {self.task.instruction}".rstrip()])
        self._description = add(['","description":"'])
        self._question = add(['","question":"'])
        self._choices = add(['","choices":['])
        self._answer = add(['],"answer":"'])
        self._shapes = add(['","shots":[],"shapes":['])
        self._settings = add([f'],"settings":{settings}'])
        self._evidence = add([',"evidence":'])
        self._end_of_line = add(["}\n"])
        self._all_answers = add([msgspec.json.encode(self.task.answers).decode()[1:-1]])
        self._input = add([',"input":"'])
        self._target = add(['","target":"'])
        self._seed = add(['","seed":'])
        self._choices_of_sample = add([',"choices":['])
        self._metadata = add([f'],"metadata":{settings[:-1]},"question":"'])
        self._end_of_question = add(['"'])
        self._end_of_metadata = add(["}"])
        self._nothing = add([""])
        self._number = self.book.add_json(f"{number}" for number in range(1000))
        self._three_digits = self.book.add_json(f"{number:03}" for number in range(1000))
        self._listed_name = add(f'"{name}",' for name in self.board.names)
        self._last_name = add(f'"{name}"' for name in self.board.names)
        bound = range(-self.board.bound, self.board.bound + 1)
        self._shape_to_x = self.book.add_json(
            f'{{"size":"{size}","colour":"{colour}","form":"{form}","x":{x},'
            for size, colour, form in self.board.kinds
            for x in bound
        )
        self._shape_from_y = self.book.add_json(f'"y":{y}}},' for y in bound)
        self._last_from_y = self.book.add_json(f'"y":{y}}}' for y in bound)

    def names_of(self, kinds: Integers) -> Integers:
        """These kinds as a JSON list of names, without its brackets; for `choices`."""
        pieces = self._listed_name + kinds
        pieces[:, -1] += self._last_name - self._listed_name
        return pieces

    def _shapes_of(self, canvas: Canvas) -> Integers:
        pieces = self._interleaved(canvas, self._shape_to_x, self._shape_from_y)
        pieces[:, -1] += self._last_from_y - self._shape_from_y
        return pieces

    def _interleaved(self, canvas: Canvas, to_x: int, from_y: int) -> Integers:
        """For each shape two phrases: its kind up to x, and the rest."""
        bound = self.board.bound
        pieces = np.empty((len(canvas.kinds), 2 * self.n), np.int64)
        pieces[:, 0::2] = to_x + canvas.kinds * (2 * bound + 1) + canvas.x + bound
        pieces[:, 1::2] = from_y + canvas.y + bound
        return pieces

    # -- the base descriptions --------------------------------------------------------------------

    def _write_base(self) -> None:
        self._kind_of_base = self.task.settings.description
        bound = range(-self.board.bound, self.board.bound + 1)
        if self._kind_of_base == "coordinates":
            self._heading = self.book.add([COORDINATES_HEADING])
            self._line_to_x = self.book.add(f"\n- {name} at ({x}, " for name in self.board.names for x in bound)
            self._line_from_y = self.book.add(f"{y})" for y in bound)
            return
        self._heading = self.book.add([RELATIONS_HEADING])
        # Four shapes around a fifth show all relations.
        words = [relation(Shape("", "", "", x, y), Shape("", "", "", 0, 0)) for y in (-1, 1) for x in (-1, 1)]
        self._relations = self.book.add(
            f"\n- the {a} is {word} the {b}" for word in words for a in self.board.names for b in self.board.names
        )
        pairs = permutations(range(self.n), 2) if self._kind_of_base == "full" else combinations(range(self.n), 2)
        self._first, self._second = np.array(list(pairs)).T

    def _base(self, canvas: Canvas) -> list[Column]:
        if self._kind_of_base == "coordinates":
            return [self._heading, self._interleaved(canvas, self._line_to_x, self._line_from_y)]
        a, b = self._first, self._second
        word = 2 * (canvas.y[:, a] > canvas.y[:, b]) + (canvas.x[:, a] > canvas.x[:, b])
        kinds = len(self.board.kinds)
        return [self._heading, self._relations + (word * kinds + canvas.kinds[:, a]) * kinds + canvas.kinds[:, b]]
