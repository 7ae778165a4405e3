"""What is different for the code of a task file: where it looks for files, and that it draws no progress bars."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

_TASKS = "bigcode_eval/tasks/"


def opener(folder: Path) -> Callable[..., Any]:
    """`open` that finds files of the harness from any working directory: few-shot examples, for instance."""

    def open_for_task(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if isinstance(file, str | Path) and "r" in mode and not os.path.exists(file) and not os.path.isabs(file):
            places = [parent / file for parent in (folder, *folder.parents)]
            places.append(folder / str(file).removeprefix(_TASKS))
            file = next((place for place in places if place.exists()), file)
        return open(file, mode, *args, **kwargs)

    return open_for_task


class tqdm:  # noqa: N801
    """A bar that is not drawn: there is one for the whole run."""

    def __init__(self, iterable: Iterable[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        self._iterable = iterable

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable or ())

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **kwargs: None

    @staticmethod
    def write(s: str, *args: Any, **kwargs: Any) -> None:
        print(s)


def trange(*args: int, **kwargs: Any) -> tqdm:
    return tqdm(range(*args))
