"""Few-shot examples of the BigCode harness, read from the user's copy of it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

import msgspec

from proctor.code.rows import Rows
from proctor.code.task import Task
from proctor.core.config import user_path
from proctor.core.errors import MissingDataError, UsageError

OWN = "-own-shots"  # ends the name of a task that shows examples of our own
_FOLDER = "few_shot_examples"
_PACKAGES = ("bigcode_eval", "lm_eval")  # the harness's name, and the one that it had before
_OWN_EXAMPLES = Path(__file__).parent / "tasks" / _FOLDER


class HarnessShots(Task):
    """A task under BigCode's name: without the harness's own examples it asks nothing, so that no score is mistaken."""

    SHOTS: str  # the harness's file, below its folder of tasks
    prompts: str = ""
    own_ending: str = OWN  # of the name of the same task without them …
    own_manner: str = "with examples of our own"  # … and how it asks instead

    def fewshot_examples(self) -> Any:
        if not hasattr(self, "_examples"):
            self._examples = self._load_examples()
        return self._examples

    def rows(self) -> Rows:
        self.fewshot_examples()  # before the data set is fetched
        return super().rows()

    def read_examples(self, content: bytes) -> Any:
        """What the harness's file holds."""
        return msgspec.json.decode(content)

    def _load_examples(self) -> Any:
        path = find_in_harness(self.prompts, self.SHOTS)
        if path is not None:
            try:
                return self.read_examples(path.read_bytes())
            except (OSError, ValueError, SyntaxError) as error:
                raise UsageError(f"prompts: cannot read {path}: {error}.") from None
        if self.prompts:
            raise UsageError(f"prompts: there is no {self.SHOTS} in {self.prompts}, or in the harness below it.")
        raise MissingDataError(
            f"{self.name} shows worked examples of the BigCode harness, which are not part of Proctor: say --set "
            "prompts=PATH, a checkout of the harness or its installed package (pip install nvidia-bigcode-eval has a "
            f"fork). {self.name}{self.own_ending} is the same task {self.own_manner}; its scores are not BigCode's."
        )


def find_in_harness(prompts: str, file: str) -> Path | None:
    """A file of the harness's tasks, in a checkout, a package or the folder itself; by default of what is installed."""
    return next((path for folder in _task_folders(prompts) if (path := folder / file).is_file()), None)


def _task_folders(prompts: str) -> Iterator[Path]:
    root = user_path(prompts)
    if prompts and root.is_dir():
        yield from (root, root.parent, root / "tasks", *(root / package / "tasks" for package in _PACKAGES))
        return
    name = prompts or _PACKAGES[0]
    # Past the finders of this process, of which one answers for the harness.
    spec = PathFinder.find_spec(name) if name.isidentifier() else None
    yield from (Path(folder) / "tasks" for folder in (spec and spec.submodule_search_locations) or ())


def own_examples(name: str) -> Any:
    """Ours, from the file of this name."""
    return msgspec.json.decode((_OWN_EXAMPLES / f"{name}.json").read_bytes())
