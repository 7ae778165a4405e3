"""Items as data: one by one for a training loop, or as lines of JSON by the million."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from proctor.shapes.canvas import Shape
from proctor.shapes.loader import load_item, load_shots

if TYPE_CHECKING:
    from proctor.shapes.task import Task


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


def json_lines(task: Task, part: range, count: int, few_shot: int) -> Iterator[bytes]:
    """The rows of these items of `count`, in pieces of whole lines."""
    from proctor.shapes.batch.registered_makers import REGISTERED_MAKERS  # numpy: only where data is made in bulk

    maker = REGISTERED_MAKERS.get(type(task))
    if maker is not None and few_shot == 0:
        yield from maker(task).json_lines(part)
        return
    for index in part:
        yield msgspec.json.encode(load_row(task, index, count, few_shot)) + b"\n"


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
