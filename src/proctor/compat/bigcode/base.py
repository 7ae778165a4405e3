"""The harness's `Task`: ours, with its defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor.code.forms import Form, Infilling
from proctor.code.task import Task as CodeTask
from proctor.compat.bigcode.answers import find_answer
from proctor.models.scripted import Oracle
from proctor.task import NoSettings
from proctor.types import Output, Sample

END_OF_TEXT = "<|endoftext|>"


class Task(CodeTask):
    Settings = NoSettings

    _extended: Sequence[str] | None = None  # the stop words, if the last of them is not the task's own

    def __init__(self, stop_words: Sequence[str] | None = None, requires_execution: bool = True) -> None:
        super().__init__(stop_words, requires_execution)
        if self.stop_words and END_OF_TEXT not in self.stop_words:
            self.stop_words = self._extended = [*self.stop_words, END_OF_TEXT]  # as the harness does

    def solution(self, doc: Any) -> str | None:
        """As the harness has it, a whole generation; where there is none to be had, what completes the prompt."""
        answer = find_answer(self, doc)
        return answer.text if answer is not None else None

    def generation(self, sample: Sample, output: Output) -> str:
        asked_for_solutions = self._config.model == Oracle.name and output.text == sample.target
        answer = find_answer(self, self.rows()[sample.index]) if asked_for_solutions else None
        if answer is not None and answer.whole:
            return output.text  # it has nothing that would have to be taken off
        return super().generation(sample, output)

    def _postprocessed(self, form: Form, generation: str, completion: str, index: int) -> str:
        if isinstance(form, Infilling):
            generation = completion  # of a gap, the harness hands over what fills it
        ending = "" if END_OF_TEXT in completion or self._is_finished(completion) else self._ending()
        return super()._postprocessed(form, generation + ending, completion, index).removesuffix(ending)

    def _ending(self) -> str:
        """What a generation of the harness ends with; servers leave it out. Some tasks drop the last of what they find.

        It is the task's own choice where it has one: many make a pattern of their stop words without escaping them, in
        which the end of the text would not be found.
        """
        words = self.stop_words or []
        own = words[:-1] if words is self._extended else words
        return END_OF_TEXT if END_OF_TEXT in own else next(iter(own), "")
