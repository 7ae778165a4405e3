"""The loader: canvas, description, question and worked examples become one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from proctor.errors import ProctorError, TaskError
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
    description: str
    question: str
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
        item.description,
        item.question,
        item.answer,
        [(f"{shot.description}\n\n{shot.question}", shot.answer) for shot in shots],
        item.shapes,
        task.settings,
    )


def load_item(task: Task, index: int, count: int) -> Item:
    return _item(task, index, Stream(task.item_key(index)), task.select_expected_answer(index, count))


def _item(task: Task, index: int, random: Stream, wanted: str | None) -> Item:
    task.random, task.description = random, None
    try:
        shapes = task.draw_shapes(random, wanted)
        pairs = task.generate_questions(shapes, wanted)
    except ProctorError:
        raise
    except Exception as error:
        raise TaskError(f"{task.name}, item {index}: {type(error).__name__}: {error}") from error
    if not pairs:
        raise TaskError(f"{task.name}, item {index}: generate_questions returned no pair.")
    question, answer = pairs[0]
    if not answer:
        raise TaskError(f"{task.name}, item {index}: the answer to {question!r} is empty.")
    if wanted is not None and answer != wanted:
        raise TaskError(f"{task.name}, item {index}: wanted the answer {wanted!r}, generate_questions gave {answer!r}.")
    brought = task.description is not None and not task.extends_description
    canvas = "" if brought else task.describe(shapes)
    return Item(shapes, canvas, task.description or "", question, answer, task.choices(shapes, question))


def load_shots(task: Task, index: int, few_shot: int, item: Item) -> list[Item]:
    """Worked examples from canvases of their own, whose answers know nothing of the evaluated one."""
    shots: list[Item] = []
    asked, shown = {item.question}, {item.description}
    for attempt in range(TRIES + few_shot):
        if len(shots) == few_shot:
            break
        random = Stream(task.item_key(index), attempt + 1)
        wanted = random.choice(task.answers) if task.answers else None
        shot = _item(task, index, random, wanted)
        # A task that knows few questions at all may ask the same again, of another canvas.
        if shot.description not in shown and (shot.question not in asked or attempt >= TRIES // 2):
            shots.append(shot)
            asked.add(shot.question)
            shown.add(shot.description)
    if len(shots) < few_shot:
        raise TaskError(f"{task.name}, item {index}: cannot find {few_shot} different worked examples; ask for fewer.")
    return shots


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
