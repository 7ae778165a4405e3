"""The loader: canvas, description, question and worked examples become one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from proctor.errors import TaskError
from proctor.randomness import Stream
from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import DESCRIPTIONS
from proctor.types import Message, Prompt, Sample

if TYPE_CHECKING:
    from proctor.shapes.task import Task

TRIES = 50  # canvases tried for a worked example whose question is a new one


class Item(NamedTuple):
    """A canvas with a question about it."""

    shapes: list[Shape]
    description: str
    question: str
    answer: str
    choices: tuple[str, ...]


def load_sample(task: Task, index: int, count: int, few_shot: int) -> Sample:
    item = load_item(task, index, count)
    return Sample(
        id=f"{task.seed}-{index}",
        index=index,
        input=_prompt(task, item, _shots(task, index, few_shot, item)),
        target=item.answer,
        seed=task.item_key(index),
        choices=item.choices,
        metadata=msgspec.to_builtins(task.settings) | {"question": item.question},
    )


def load_item(task: Task, index: int, count: int) -> Item:
    return _item(task, index, Stream(task.item_key(index)), task.select_expected_answer(index, count))


def _item(task: Task, index: int, random: Stream, wanted: str | None) -> Item:
    shapes = task.draw_shapes(random, wanted)
    task.random, task.description = random, None
    pairs = task.generate_questions(shapes, wanted)
    if not pairs:
        raise TaskError(f"{task.name}, item {index}: generate_questions returned no pair.")
    question, answer = pairs[0]
    if not answer:
        raise TaskError(f"{task.name}, item {index}: the answer to {question!r} is empty.")
    if wanted is not None and answer != wanted:
        raise TaskError(f"{task.name}, item {index}: wanted the answer {wanted!r}, generate_questions gave {answer!r}.")
    return Item(shapes, _describe(task, shapes), question, answer, task.choices(shapes, question))


def _describe(task: Task, shapes: list[Shape]) -> str:
    """The base description, the task's own, or both."""
    if task.description is not None and not task.extends_description:
        return task.description
    base = DESCRIPTIONS[task.settings.description](shapes)
    return base if task.description is None else f"{base}\n{task.description}"


def _shots(task: Task, index: int, few_shot: int, item: Item) -> list[Item]:
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


def _prompt(task: Task, item: Item, shots: list[Item]) -> Prompt:
    def ask(item: Item) -> str:
        return f"{item.description}\n\n{item.question} {task.instruction}".rstrip()

    if not shots:
        return ask(item)
    turns = [turn for shot in shots for turn in (Message("user", ask(shot)), Message("assistant", shot.answer))]
    return (*turns, Message("user", ask(item)))
