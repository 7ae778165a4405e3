"""The loader: canvas, description, question and worked examples become one sample."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from proctor.errors import TaskError, UsageError
from proctor.randomness import Stream
from proctor.shapes.canvas import Shape
from proctor.types import Image, Message, Modality, Prompt, Sample, Text

if TYPE_CHECKING:
    from proctor.shapes.task import Task

TRIES = 50  # canvases tried for a worked example whose question is a new one


class Item(NamedTuple):
    """A canvas with a question about it."""

    shapes: list[Shape]
    canvas: str  # the shapes in words; empty where the task brings its own description
    story: str  # what the task says instead, or in addition
    question: str
    answer: str
    choices: tuple[str, ...]

    @property
    def description(self) -> str:
        return "\n".join(part for part in (self.canvas, self.story) if part)


class Row(Struct):
    """What `proctor generate` writes for one item."""

    id: str
    index: int
    task: str
    version: str
    prompt: Prompt  # what a model is given: a text, or with worked examples a list of messages
    description: str
    question: str
    choices: tuple[str, ...]
    answer: str
    shots: list[tuple[str, str]]  # what is asked, with its own description, and the answer
    shapes: list[Shape]
    settings: Any


def load_sample(task: Task, index: int, count: int, few_shot: int, modality: Modality) -> Sample:
    """The same canvas, question and worked examples in every modality."""
    item = load_item(task, index, count)
    return Sample(
        id=f"{task.seed}-{index}",
        index=index,
        input=_prompt(task, item, load_shots(task, index, few_shot, item), modality),
        target=item.answer,
        seed=task.item_key(index),
        choices=item.choices,
        metadata=msgspec.to_builtins(task.settings) | {"question": item.question},
    )


def load_row(task: Task, index: int, count: int, few_shot: int) -> Row:
    item = load_item(task, index, count)
    shots = load_shots(task, index, few_shot, item)
    return Row(
        f"{task.seed}-{index}",
        index,
        task.name,
        task.version,
        _prompt(task, item, shots, "text"),
        item.description,
        item.question,
        item.choices,
        item.answer,
        [(f"{shot.description}\n\n{shot.question}", shot.answer) for shot in shots],
        item.shapes,
        task.settings,
    )


def load_item(task: Task, index: int, count: int) -> Item:
    with _named(task, index):
        return _item(task, Stream(task.item_key(index)), task.select_expected_answer(index, count))


def _item(task: Task, random: Stream, wanted: str | None) -> Item:
    task.random, task.description = random, None
    shapes = task.draw_shapes(random, wanted)
    pairs = task.generate_questions(shapes, wanted)
    question, answer = _first(pairs)
    if wanted is not None and answer != wanted:
        raise TaskError(f"wanted the answer {wanted!r}, generate_questions gave {answer!r}.")
    if not isinstance(task.description, str | None):
        raise TaskError(f"self.description is {task.description!r}, not a text.")
    brought = task.description is not None and not task.extends_description
    canvas = "" if brought else task.describe(shapes)
    return Item(shapes, canvas, task.description or "", question, answer, task.choices(shapes, question))


def _first(pairs: Any) -> tuple[str, str]:
    """The pair that is evaluated."""
    if isinstance(pairs, list | tuple) and not pairs:
        raise TaskError("generate_questions returned no pair.")
    match pairs:
        case [[str(question), str(answer)], *_]:
            pass
        case _:
            raise TaskError(f"generate_questions returned {pairs!r:.200}, not a list of pairs of texts.")
    if not question.strip():
        raise TaskError(f"the question with the answer {answer!r} is empty.")
    if not answer.strip():
        raise TaskError(f"the answer to {question!r} is empty.")
    return question, answer


@contextmanager
def _named(task: Task, index: int) -> Iterator[None]:
    """A fault in the making of an item names the task and the item."""
    try:
        yield
    except UsageError:
        raise
    except TaskError as error:
        raise type(error)(f"{task.name}, item {index}: {error}") from error
    except (Exception, SystemExit) as error:
        raise TaskError(f"{task.name}, item {index}: {type(error).__name__}: {error}") from error


class NoExamplesError(TaskError):
    """The task does not know enough canvases or questions."""


def load_shots(task: Task, index: int, few_shot: int, item: Item) -> list[Item]:
    """Worked examples from canvases of their own, whose answers know nothing of the evaluated one."""
    shots: list[Item] = []
    asked_again: list[Item] = []
    same_words: list[Item] = []
    shown = {item.description}
    for attempt in range(TRIES + few_shot):
        if len(shots) == few_shot:
            return shots
        random = Stream(task.item_key(index), attempt + 1)
        with _named(task, index):
            shot = _item(task, random, random.choice(task.answers) if task.answers else None)
        if shot.description in shown:
            continue
        shown.add(shot.description)
        known = any(shot.question == other.question for other in shots)
        (same_words if shot.question == item.question else asked_again if known else shots).append(shot)
    # A task that knows few questions asks them again, of other canvases; one that knows a single question, that one.
    enough = [*shots, *asked_again, *(() if shots else same_words)][:few_shot]
    if len(enough) < few_shot:
        said = f"cannot find {few_shot} different worked examples; ask for fewer."
        raise NoExamplesError(f"{task.name}, item {index}: {said}")
    return enough


def _prompt(task: Task, item: Item, shots: list[Item], modality: Modality) -> Prompt:
    asked = _ask(task, item, modality)
    if isinstance(asked, str) and not shots:
        return asked
    worked = [
        turn
        for shot in shots
        for turn in (Message("user", _ask(task, shot, modality)), Message("assistant", shot.answer))
    ]
    return (*worked, Message("user", asked))


def _ask(task: Task, item: Item, modality: Modality) -> str | tuple[Image, Text]:
    question = f"{item.question} {task.instruction}".rstrip()
    if modality == "text":
        return f"{item.description}\n\n{question}"
    if not item.canvas:
        raise TaskError(f"{task.name}: {item.question!r} is about a description of its own, which has no picture.")
    from proctor.shapes.drawing import caption, png  # numpy

    words = item.description if modality == "both" else item.story
    said = caption(task.board, in_words=modality == "both")
    description = f"{said}\n{words}" if words else said
    return Image(png(item.shapes, task.board)), Text(f"{description}\n\n{question}")
