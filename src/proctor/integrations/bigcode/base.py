"""The harness's `Task`: ours, with its defaults."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from proctor.code.forms import Form, Infilling
from proctor.code.stopwords import cut
from proctor.code.task import Task as CodeTask
from proctor.core.task import NoSettings
from proctor.core.types import Output, Sample
from proctor.integrations.bigcode.answers import find_answer
from proctor.models.scripted import Oracle

END_OF_TEXT = "<|endoftext|>"
_TOKEN = re.compile(r"\w+|[^\w\s]")


class Task(CodeTask):
    Settings = NoSettings

    def __init__(self, stop_words: Sequence[str] | None = None, requires_execution: bool = True) -> None:
        super().__init__(stop_words, requires_execution)
        if self.stop_words and END_OF_TEXT not in self.stop_words:
            self.stop_words = [*self.stop_words, END_OF_TEXT]  # as the harness does

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

    def _truncate(self, sample: Sample, completion: str) -> str:
        """Without the stop word that ended it, which some servers leave and others drop."""
        return super()._truncate(sample, cut(completion, self.stop_words or ()))

    def _postprocessed(self, form: Form, generation: str, completion: str, index: int) -> str:
        """As the server gave it, if the task keeps all of it; else with the ending by which it keeps most.

        A generation of the harness ends with a stop word or with the end of the text, whichever the model came to, and
        here nobody knows which. Most tasks cut there, if there is anything to cut; some drop the last block of what
        they find and so need an ending, any; and some count delimiters, of which there must not be one more.
        """
        if isinstance(form, Infilling):
            generation = completion  # of a gap, the harness hands over what fills it
        start = generation.removesuffix(completion)
        found: list[tuple[int, str]] = []
        errors: list[Exception] = []
        for ending in dict.fromkeys(["", *(self.stop_words or ()), END_OF_TEXT]):
            try:
                done = super()._postprocessed(form, generation + ending, completion, index)
            except Exception as error:
                errors.append(error)
                continue
            if ending and done.endswith(ending):  # it has no use for it
                continue
            found.append((self._kept(done, start + ending, completion, index), done))
            if found[-1][0] == len(_TOKEN.findall(completion)):
                break
        if not found:
            raise errors[0]
        return max(found, key=lambda one: one[0])[1]  # of equals, the first

    def _kept(self, done: str, blank: str, completion: str, index: int) -> int:
        """How many tokens of a completion are in what a task made of it, and would not be there without it."""
        try:
            given = Counter(_TOKEN.findall(self._run_postprocessing(blank, index)))
        except Exception:
            given = Counter()
        return ((Counter(_TOKEN.findall(done)) - given) & Counter(_TOKEN.findall(completion))).total()
