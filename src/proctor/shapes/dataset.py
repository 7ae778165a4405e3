"""Items as a data set for a training loop."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, overload

import msgspec

from proctor.core import registry
from proctor.core.errors import UsageError
from proctor.core.task import create_task
from proctor.core.types import ShotSource
from proctor.shapes.loader import load_row
from proctor.shapes.task import Task


class Example(NamedTuple):
    """What a training loop needs of an item: the same as a line of `proctor generate`."""

    id: str
    prompt: str | list[dict[str, str]]  # what a model is given in a run; with worked examples, messages
    description: str
    question: str
    choices: list[str]
    answer: str
    evidence: int | None = None  # how many lines of the description it takes to answer


class ShapeDataset(Sequence[Example]):
    """The items of a task by index, made when they are asked for: fit for a PyTorch DataLoader, without needing it.

    Threads may share one data set.

    >>> dataset = ShapeDataset("shapes/count", n=100_000, seed=1, shapes=10)
    >>> item = dataset[0]
    >>> dataset.score_answer(item.answer, item)
    1.0
    """

    def __init__(
        self,
        task: str,
        n: int = 1000,
        seed: int = 0,
        *,
        few_shot: int = 0,
        shots: ShotSource = "same",
        **settings: Any,
    ) -> None:
        if not isinstance(n, int) or not isinstance(seed, int) or n < 0:
            raise UsageError(f"n is a number of items and seed a whole number, not {n!r} and {seed!r}.")
        if not isinstance(few_shot, int) or few_shot < 0 or shots not in ("same", "other"):
            raise UsageError(f"few_shot is a number and shots same or other, not {few_shot!r} and {shots!r}.")
        made = create_task(registry.load_task_class(task), task, settings)
        if not isinstance(made, Task):
            raise UsageError(f"{task} is no task of the shapes family.")
        self.task = made.seeded(seed)
        self._n, self._few_shot, self._shots = n, few_shot, shots

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
        row = load_row(self.task, index % self._n, self._n, self._few_shot, self._shots)
        prompt = row.prompt if isinstance(row.prompt, str) else [msgspec.to_builtins(turn) for turn in row.prompt]
        evidence = None if row.evidence is msgspec.UNSET else row.evidence
        return Example(row.id, prompt, row.description, row.question, list(row.choices), row.answer, evidence)

    def score_answer(self, text: str, item: Example | Mapping[str, Any]) -> float:
        """What a run gives this text: from 0 to 1. The item is one of this data set, or a line of a file."""
        return self.task.score_answer(text, item._asdict() if isinstance(item, Example) else item)
