"""The harness's `Task`: ours, with its defaults."""

from __future__ import annotations

from collections.abc import Sequence

from proctor.code.forms import Form, Infilling
from proctor.code.task import Task as CodeTask
from proctor.task import NoSettings

END_OF_TEXT = "<|endoftext|>"


class Task(CodeTask):
    Settings = NoSettings

    def __init__(self, stop_words: Sequence[str] | None = None, requires_execution: bool = True) -> None:
        super().__init__(stop_words, requires_execution)

    def _postprocessed(self, form: Form, generation: str, completion: str, index: int) -> str:
        if isinstance(form, Infilling):
            generation = completion  # of a gap, the harness hands over what fills it
        if END_OF_TEXT in (self.stop_words or ()) and END_OF_TEXT not in completion:
            generation += END_OF_TEXT  # which the harness leaves to tasks that look for it; servers do not
        return super()._postprocessed(form, generation, completion, index)
