"""The loader: canvas, description, question and worked examples become one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from proctor.errors import TaskError
from proctor.randomness import Stream
from proctor.shapes.canvas import Shape
from proctor.shapes.descriptions import DESCRIPTIONS
from proctor.types import Message, Prompt, Sample

if TYPE_CHECKING:
    from proctor.shapes.task import Task

TRIES = 50  # canvases tried for a worked example whose question is a new one


def load_sample(task: Task, index: int, count: int, few_shot: int) -> Sample:
    wanted = task.select_expected_answer(index, count)
    description, question, answer = _item(task, index, Stream(task.item_key(index)), wanted)
    shots = _shots(task, index, few_shot, description, question)
    return Sample(
        id=f"{task.seed}-{index}",
        index=index,
        input=_prompt(task, description, question, shots),
        target=answer,
        seed=task.item_key(index),
        choices=task.answers,
        metadata=msgspec.to_builtins(task.settings) | {"question": question},
    )


def _item(task: Task, index: int, random: Stream, wanted: str | None) -> tuple[str, str, str]:
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
    return _describe(task, shapes), question, answer


def _describe(task: Task, shapes: list[Shape]) -> str:
    """The base description, the task's own, or both."""
    if task.description is not None and not task.extends_description:
        return task.description
    base = DESCRIPTIONS[task.settings.description](shapes)
    return base if task.description is None else f"{base}\n{task.description}"


def _shots(task: Task, index: int, few_shot: int, description: str, question: str) -> list[tuple[str, str, str]]:
    """Worked examples from canvases of their own, whose answers know nothing of the evaluated one."""
    shots: list[tuple[str, str, str]] = []
    asked, shown = {question}, {description}
    for attempt in range(TRIES + few_shot):
        if len(shots) == few_shot:
            return shots
        random = Stream(task.item_key(index), attempt + 1)
        wanted = random.choice(task.answers) if task.answers else None
        shot = _item(task, index, random, wanted)
        # A task that knows few questions at all may ask the same again, of another canvas.
        if shot[0] not in shown and (shot[1] not in asked or attempt >= TRIES // 2):
            shots.append(shot)
            asked.add(shot[1])
            shown.add(shot[0])
    raise TaskError(f"{task.name}, item {index}: cannot find {few_shot} different worked examples; ask for fewer.")


def _prompt(task: Task, description: str, question: str, shots: list[tuple[str, str, str]]) -> Prompt:
    def ask(description: str, question: str) -> str:
        return f"{description}\n\n{question} {task.instruction}".rstrip()

    if not shots:
        return ask(description, question)
    turns = []
    for shot_description, shot_question, shot_answer in shots:
        turns.append(Message("user", ask(shot_description, shot_question)))
        turns.append(Message("assistant", shot_answer))
    return (*turns, Message("user", ask(description, question)))
