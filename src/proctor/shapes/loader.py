"""The loader: canvas, description, question and worked examples become one sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proctor.errors import TaskError
from proctor.randomness import Stream
from proctor.shapes.canvas import draw_canvas
from proctor.shapes.descriptions import coordinates
from proctor.types import Message, Prompt, Sample

if TYPE_CHECKING:
    from proctor.shapes.task import Task

TRIES = 50  # canvases tried for a worked example whose question is a new one


def load_sample(task: Task, index: int, count: int, few_shot: int) -> Sample:
    wanted = task.select_expected_answer(index, count)
    description, question, answer = _item(task, Stream(task.item_key(index)), wanted)
    shots = _shots(task, index, few_shot, question)
    return Sample(
        id=f"{task.seed}-{index}",
        index=index,
        input=_prompt(task, description, question, shots),
        target=answer,
        seed=task.item_key(index),
        choices=task.answers,
        metadata={"shapes": task.settings.shapes, "description": description, "question": question},
    )


def _item(task: Task, random: Stream, wanted: str | None) -> tuple[str, str, str]:
    shapes = draw_canvas(task.settings.shapes, random)
    task.random = random
    pairs = task.generate_questions(shapes, wanted)
    if not pairs:
        raise TaskError(f"{task.name}: generate_questions returned no pair.")
    question, answer = pairs[0]
    if not answer:
        raise TaskError(f"{task.name}: the answer to {question!r} is empty.")
    if wanted is not None and answer != wanted:
        raise TaskError(f"{task.name}: asked for the answer {wanted!r}, generate_questions gave {answer!r}.")
    return coordinates(shapes), question, answer


def _shots(task: Task, index: int, few_shot: int, question: str) -> list[tuple[str, str, str]]:
    """Worked examples from canvases of their own, whose answers know nothing of the evaluated one."""
    shots: list[tuple[str, str, str]] = []
    asked = {question}
    for attempt in range(TRIES + few_shot):
        if len(shots) == few_shot:
            return shots
        random = Stream(task.item_key(index), attempt + 1)
        wanted = random.choice(task.answers) if task.answers else None
        shot = _item(task, random, wanted)
        if shot[1] not in asked:
            shots.append(shot)
            asked.add(shot[1])
    raise TaskError(f"{task.name}: cannot find {few_shot} worked examples with different questions; ask for fewer.")


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
