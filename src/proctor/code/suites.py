"""Tasks that run several programs per generation: one per test case or test set."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from proctor.code.execution import Judge, Trial, run_programs, trial_of
from proctor.code.keyed import KeyedTask
from proctor.core.types import Sample
from proctor.metrics.passing import PassAtK, mean_pass_at_k
from proctor.metrics.summary import Tally
from proctor.sandbox import Limits, Program


class ProgramGroup(Struct, frozen=True):
    """Programs that run concurrently with the same limits."""

    programs: Sequence[Program]
    limits: Limits
    judge: Judge = trial_of


class SuiteTask(KeyedTask):
    """A task that defines `groups`. A generation passes if all programs of all groups do."""

    @abstractmethod
    def groups(self, doc: Any, generation: str) -> Iterable[ProgramGroup]:
        """The groups of programs, run in order until one has a failure."""

    def sum_up(self, trials: Sequence[Trial]) -> Trial:
        """Merges trials: the first failure, else the last one."""
        decisive = next((trial for trial in trials if not trial.passed), trials[-1])
        return msgspec.structs.replace(decisive, seconds=sum(trial.seconds for trial in trials))

    async def run_trials(self, sample: Sample, generations: list[str]) -> list[Trial]:
        doc = self.rows()[sample.index]
        return await asyncio.gather(*(self._run_trial(doc, generation) for generation in generations))

    async def _run_trial(self, doc: Any, generation: str) -> Trial:
        groups = iter(self.groups(doc, generation))
        trials: list[Trial] = []
        # In a thread: unpacking test cases may take long.
        while group := await asyncio.to_thread(next, groups, None):
            verdicts = await asyncio.gather(*(self.sandbox.judge(p, group.limits) for p in group.programs))
            judged = [group.judge(p, verdict) for p, verdict in zip(group.programs, verdicts, strict=True)]
            trials += judged
            if not all(trial.passed for trial in judged):
                break
        return self.sum_up(trials)

    def process_results(self, generations: list[list[str]], references: list[Any]) -> dict[str, float]:
        counts = []
        for of_one, reference in zip(generations, references, strict=True):
            doc = self.row_of(reference)
            counts.append((len(of_one), sum(self._run_here(doc, generation).passed for generation in of_one)))
        return mean_pass_at_k(counts, self.ks)

    def _run_here(self, doc: Any, generation: str) -> Trial:
        trials: list[Trial] = []
        for group in self.groups(doc, generation):
            trials += run_programs(group.programs, group.limits, group.judge)
            if not all(trial.passed for trial in trials):
                break
        return self.sum_up(trials)

    def tally(self) -> Tally:
        return PassAtK(self.ks)

    def _counts_itself(self) -> bool:
        return False  # process_results is only for callers outside a run
