"""The contract that every family fulfils: a task makes samples, asks, judges and sums up."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from proctor.config import RunConfig
from proctor.errors import UsageError, did_you_mean
from proctor.metrics.summary import MeanScore, Tally
from proctor.models.model import Model, Request, Sampling
from proctor.randomness import mix
from proctor.types import Output, Sample, Score


class NoSettings(Struct, frozen=True):
    pass


class Task(ABC):
    """An exam. Subclasses give `samples` and `score_text`, or `judge` where the outputs are judged together."""

    name: str = ""  # given by the catalog
    version: ClassVar[str] = "1"  # raised whenever the same answer could get another score
    summary: ClassVar[str] = ""  # one line for `proctor list`
    Settings: ClassVar[type[Struct]] = NoSettings
    metric: ClassVar[str] = "accuracy"  # the name of the mean score
    group_by: ClassVar[tuple[str, ...]] = ()  # metadata keys by which the report is always broken down
    fixed: ClassVar[bool] = False  # a given data set: the seed does not change it
    max_tokens: ClassVar[int] = 64
    stop: ClassVar[tuple[str, ...]] = ()

    settings: Any = NoSettings()

    @abstractmethod
    def samples(self, config: RunConfig) -> Iterator[Sample]:
        """The samples from config.limit_start on, one by one, each the same whatever came before it."""

    def count(self, config: RunConfig) -> int | None:
        """How many samples there will be, where that is known beforehand."""
        return config.limit

    async def ask(self, sample: Sample, epoch: int, model: Model, config: RunConfig) -> tuple[Output, ...]:
        """What the candidate makes of the sample; config.samples outputs, asked for at once."""
        first = epoch * config.samples
        requests = [self.request(sample, first + i, config) for i in range(config.samples)]
        if len(requests) == 1:
            return (await model.generate(requests[0]),)
        return tuple(await asyncio.gather(*(model.generate(request) for request in requests)))

    def request(self, sample: Sample, number: int, config: RunConfig) -> Request:
        sampling = Sampling(
            max_tokens=config.max_tokens or self.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            top_k=config.top_k,
            stop=(*self.stop, *config.stop),
            # Every completion has a seed of its own, so that epochs differ and a rerun does not.
            seed=mix(config.seed, sample.index, number) >> 33,
        )
        return Request(sample.input, sampling, number, sample)

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """The score of the outputs: by default each text is scored, and the values are averaged."""
        return average([self.score_text(sample, output.text) for output in outputs])

    def score_text(self, sample: Sample, text: str) -> Score:
        """The score of one text."""
        raise TypeError(f"{type(self).__name__} defines neither score_text nor judge")  # the catalog lets none pass

    def tally(self) -> Tally:
        """Collects records and says their metrics."""
        return MeanScore(self.metric)

    def gold(self, sample: Sample) -> str:
        """The text of a perfect answer: `proctor check` expects full marks for it."""
        return str(sample.target)

    def proofs(self, sample: Sample) -> Iterable[str]:
        """Faults that a second, independent solver finds in the sample; `proctor check` expects none."""
        return ()


def average(scores: Sequence[Score]) -> Score:
    if len(scores) == 1:
        return scores[0]
    values = [score.value for score in scores if score.value is not None]
    outcomes = {score.outcome for score in scores}
    return Score(
        value=math.fsum(values) / len(values) if values else None,
        outcome=outcomes.pop() if len(outcomes) == 1 else "mixed",
        answer=[score.answer for score in scores],
    )


def create_task(task_class: type[Task], name: str, settings: Mapping[str, Any]) -> Task:
    """A task of this class with these settings, which may come as text from a command line."""
    known = [field.name for field in msgspec.structs.fields(task_class.Settings)]
    for key in settings:
        if key not in known:
            listing = f"Settings: {', '.join(known)}." if known else "It has no settings."
            raise UsageError(f"{name} has no setting {key!r}{did_you_mean(key, known)} {listing}")
    task = task_class()
    task.name = name
    try:
        task.settings = msgspec.convert(dict(settings), task_class.Settings, strict=False)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).replace("`", "").partition(" - at $.")
        raise UsageError(f"{name}: setting {place or ''}: {problem[0].lower()}{problem[1:]}.") from None
    return task
