"""Items as a data set for a training loop."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from proctor import catalog
from proctor.errors import UsageError
from proctor.shapes.loader import load_item
from proctor.shapes.task import Task
from proctor.task import create_task


class Example(NamedTuple):
    """What a training loop needs of an item."""

    description: str
    question: str
    answer: str


class ShapeDataset(Sequence[Example]):
    """The items of a task by index, made when they are asked for: fit for a PyTorch DataLoader, without needing it.

    >>> dataset = ShapeDataset("shapes/count", n=100_000, seed=1, shapes=10)
    >>> description, question, answer = dataset[0]
    """

    def __init__(self, task: str, n: int = 1000, seed: int = 0, **settings: Any) -> None:
        if not isinstance(n, int) or not isinstance(seed, int) or n < 0:
            raise UsageError(f"n is a number of items and seed a whole number, not {n!r} and {seed!r}.")
        made = create_task(catalog.task_class(task), task, settings)
        if not isinstance(made, Task):
            raise UsageError(f"{task} is no task of the shapes family.")
        self.task = made
        self.task.seed = seed
        self._n = n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._n))]
        index = operator.index(index)  # of numpy, too
        if not -self._n <= index < self._n:
            raise IndexError(f"item {index} of {self._n}")
        item = load_item(self.task, index % self._n, self._n)
        return Example(item.description, item.question, item.answer)
