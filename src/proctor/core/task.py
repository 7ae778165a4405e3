"""The contract that every family fulfils: a task makes samples, asks, judges and sums up."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

from proctor.core.candidate import Candidate
from proctor.core.config import RunConfig
from proctor.core.errors import ProctorError, SettingError, TaskError, UsageError, did_you_mean
from proctor.core.random import mix
from proctor.core.reasoning import reasoning_is_open, strip_reasoning
from proctor.core.types import LENGTH, TRUNCATED, UNPARSED, Finding, Modality, Output, Probe, Record, Sample, Score
from proctor.metrics.summary import MeanScore, Tally
from proctor.models.base import Model, Request, Sampling

if TYPE_CHECKING:
    from proctor.sandbox import Sandbox


# A sample whose outputs are being judged must not keep a place from the next request: the gateway holds
# the limit on requests, and this many samples are under way for each of its places.
SAMPLES_PER_SLOT = 2
CUT_OFF = "the output reached its most tokens before an answer"


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
    max_tokens: ClassVar[int] = 64  # of an answer; a chat model that may reason first gets more
    stop: ClassVar[tuple[str, ...]] = ()
    executes: bool = False  # runs programs: `sandbox` is there before the first sample is asked

    sandbox: Sandbox
    agent_held: str = ""  # where the agent of the run is: trusted, isolated at a level, or remote
    artifacts: Path  # a folder for the files of the run, to be made by whoever writes the first
    settings: Any = NoSettings()

    @classmethod
    def build(cls, settings: Struct, data: str | None) -> Self:
        """A new task with these settings. `data` is a file with its problems, for tasks that take one."""
        if data is not None:
            raise UsageError(f"{cls.__name__} makes its samples itself: it takes no --data.")
        task = cls()
        task.settings = settings
        return task

    @abstractmethod
    def samples(self, config: RunConfig) -> Iterator[Sample]:
        """The samples from config.limit_start on, one by one, each the same whatever came before it."""

    def has_pictures(self) -> bool:
        """Whether samples can also be shown as pictures: whether they heed config.modality."""
        return False

    def draw_row(self, row: Mapping[str, Any], ending: str) -> bytes:
        """The picture, as png or svg, of a row that `json_lines` has written, for tasks that have pictures."""
        raise UsageError(f"{self.name} has no pictures to draw.")

    def draw_sample(self, sample: Sample, config: RunConfig) -> str | None:
        """The sample as a picture for people, as SVG, where it can be drawn; None if it is not this task's."""
        return None

    def count(self, config: RunConfig) -> int | None:
        """How many samples there will be, where that is known beforehand."""
        return config.limit

    def samples_at_once(self, candidate: Candidate, config: RunConfig) -> int:
        """How many samples are examined at once; asked again and again, since places may come and go."""
        judged = self.sandbox.slots if self.executes and not config.generation_only else 0
        return max(candidate.slots, judged) * SAMPLES_PER_SLOT

    async def open(self, config: RunConfig) -> None:  # noqa: B027
        """Called once before the first sample is asked: the place to start what asking and judging need."""

    async def close(self) -> None:  # noqa: B027
        """Called once at the end, whatever happened."""

    @property
    def asks_its_inputs(self) -> bool:
        """Whether a candidate is asked what is in the samples, and nothing else."""
        return type(self).ask is Task.ask

    async def ask(
        self, sample: Sample, epoch: int, candidate: Candidate, config: RunConfig, done: Sequence[Output]
    ) -> AsyncGenerator[Output]:
        """What the candidate makes of the sample, output by output; each is stored before the next is waited for.

        The first of them are there already: `done`, from a run that was cut short.
        """
        if not isinstance(candidate, Model):
            raise UsageError(f"{self.name} is an exam for models; {candidate.name} is none.")
        first = epoch * config.samples
        requests = [self.request(sample, first + i, config) for i in range(len(done), config.samples)]
        if len(requests) == 1:
            yield await candidate.generate(requests[0])
            return
        answers = [asyncio.ensure_future(candidate.generate(request)) for request in requests]
        try:
            for answer in answers:
                yield await answer
        finally:  # one failure calls off the rest
            for answer in answers:
                answer.cancel()
            await asyncio.gather(*answers, return_exceptions=True)

    def request(self, sample: Sample, number: int, config: RunConfig) -> Request:
        sampling = Sampling(
            max_tokens=config.max_tokens or config.max_length or self.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            top_k=config.top_k or None,
            max_length=config.max_length,
            stop=self.stop_strings(config),
            # Every completion has a seed of its own, so that epochs differ and a rerun does not.
            seed=mix(config.seed, sample.index, number) >> 33,
        )
        return Request(sample.input, sampling, number, sample)

    def stop_strings(self, config: RunConfig) -> tuple[str, ...]:
        """Where an answer ends."""
        return (*self.stop, *config.stop)

    def generation(self, sample: Sample, output: Output) -> str:
        """What is judged of an output, and what a file of generations holds."""
        return output.text

    def generations(self, record: Record) -> list[str]:
        """The same for all outputs of a record."""
        return [self.generation(record.sample, output) for output in record.outputs]

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """The score of the outputs: by default each text is scored, and the values are averaged."""
        return average([self.score_output(sample, output) for output in outputs])

    def score_output(self, sample: Sample, output: Output) -> Score:
        """The score of one output: that of its text, unless it ended by length before an answer."""
        if output.finish != LENGTH:
            return self.score_text(sample, output.text)
        if reasoning_is_open(output.text):
            return Score(0, TRUNCATED, why=CUT_OFF, truncated=1)  # an answer mentioned on the way is not given
        return mark_truncated(self.score_text(sample, output.text), [output])

    def score_text(self, sample: Sample, text: str) -> Score:
        """The score of one text."""
        raise TypeError(f"{type(self).__name__} defines neither score_text nor judge")  # the catalog lets none pass

    def probes(self, config: RunConfig) -> Iterable[Probe]:
        """Guessers held against chance, for `proctor check --probes`."""
        raise UsageError(f"{self.name} has no probes: they are for tasks with a description and a question.")

    def findings(self, config: RunConfig) -> Iterable[Finding]:
        """What `proctor check` finds in the samples as a whole, beside what it finds in any task."""
        return ()

    def json_lines(self, config: RunConfig, part: range) -> Iterator[bytes]:
        """This part of the samples as lines of JSON, in pieces of whole lines, for `proctor generate`."""
        wanted = msgspec.structs.replace(config, limit_start=config.limit_start + part.start, limit=len(part))
        for sample in take_samples(self, wanted) if part else ():
            yield msgspec.json.encode(sample) + b"\n"

    def tally(self) -> Tally:
        """Collects records and says their metrics."""
        return MeanScore(self.metric)

    def gold(self, sample: Sample) -> str:
        """The text of a perfect answer: `proctor check` expects full marks for it."""
        return str(sample.target)

    def proofs(self, sample: Sample) -> Iterable[str]:
        """Faults that a second, independent solver finds in the sample; `proctor check` expects none."""
        return ()


T = TypeVar("T", bound=Task)


@asynccontextmanager
async def opened(task: Task, config: RunConfig) -> AsyncIterator[None]:
    """The task with all that asking and judging need: its sandbox, where it runs programs, and what it opens itself."""
    async with AsyncExitStack() as stack:
        if task.executes and not config.generation_only:
            task.sandbox = await stack.enter_async_context(await sandbox_of(config))
        await task.open(config)
        stack.push_async_callback(task.close)
        yield


async def sandbox_of(config: RunConfig) -> Sandbox:
    """A new one, of the kind that the run wants."""
    from proctor.sandbox import open_sandbox

    engine = "" if config.sandbox == "local" else config.sandbox
    if config.engine == "ray":
        from proctor.sandbox.cluster import ClusterSandbox

        return ClusterSandbox(config.workers, config.unsafe, engine)
    return await open_sandbox(workers=config.workers, unsafe=config.unsafe, engine=engine)


def mark_truncated(score: Score, outputs: Sequence[Output]) -> Score:
    """The score, with the outcome `truncated` if all outputs ended by length before an answer.

    There is no answer where the task found none, or where the outputs hold nothing but reasoning.
    """
    if score.truncated or score.value or not outputs or any(output.finish != LENGTH for output in outputs):
        return score
    unread = score.outcome in (UNPARSED, TRUNCATED)
    if not unread and (score.value is None or any(strip_reasoning(output.text) for output in outputs)):
        return score
    return Score(score.value, TRUNCATED, score.answer, score.why or CUT_OFF, len(outputs))


def average(scores: Sequence[Score]) -> Score:
    """One score for several texts. Where one could not be valued, neither can the whole."""
    if len(scores) == 1:
        return scores[0]
    answers = [score.answer for score in scores]
    truncated = sum(score.truncated for score in scores)
    unvalued = next((score for score in scores if score.value is None), None)
    if unvalued is not None:
        return Score(None, unvalued.outcome, answers, unvalued.why, truncated)
    outcomes = {score.outcome for score in scores}
    value = math.fsum(score.value or 0 for score in scores) / len(scores)
    return Score(value, outcomes.pop() if len(outcomes) == 1 else "", answers, truncated=truncated)


def take_samples(task: Task, config: RunConfig) -> Iterator[Sample]:
    """The samples of a run, each fit to be stored; a task that breaks its contract is named."""
    last = config.limit_start - 1
    try:
        for sample in islice(task.samples(config), config.limit):
            if not isinstance(sample, Sample):
                raise TaskError(f"{task.name}: {sample!r} is not a Sample.")
            _decode_sample(msgspec.json.encode(sample))  # what cannot be read back must not be written
            if sample.index <= last:
                raise TaskError(f"{task.name}: sample {sample.id} has index {sample.index} after {last}.")
            last = sample.index
            yield sample
    except ProctorError:
        raise
    except (Exception, SystemExit) as error:
        failure = f"{type(error).__name__}: {error}"
        raise TaskError(f"{task.name} failed to make the sample after index {last}: {failure}") from error


_decode_sample = msgspec.json.Decoder(Sample).decode


def create_task(
    task_class: type[T],
    name: str,
    settings: Mapping[str, Any],
    modality: Modality = "text",
    data: str | None = None,
) -> T:
    """A task of this class with these settings, which may come as text from a command line."""
    known = {field.name: field.type for field in msgspec.structs.fields(task_class.Settings)}
    for key in settings:
        if key not in known:
            listing = f"Settings: {', '.join(known)}." if known else "It has no settings."
            raise SettingError(f"{name} has no setting {key!r}{did_you_mean(key, known)} {listing}", key)
    try:
        filled = msgspec.convert(dict(settings), task_class.Settings, strict=False)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).replace("`", "").partition(" - at $.")
        key = place.partition(".")[0].partition("[")[0]
        if key not in settings:  # it is not one value that is wrong, but what they are together
            raise SettingError(f"{name}: settings: {problem[0].lower()}{problem[1:].rstrip('.')}.", "") from None
        expected = _alternatives(known[key]) or problem.partition(", got ")[0]
        said = f"{name}: setting {place}: {expected[0].lower()}{expected[1:]}, got {settings[key]!r}."
        raise SettingError(said, key) from None
    try:
        task = task_class.build(filled, data)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} cannot be created: {type(error).__name__}: {error}") from error
    task.name = name
    if modality != "text" and not task.has_pictures():
        raise SettingError(f"{name} has no pictures to show: it can be set with --modality text only.", "modality")
    return task


def _alternatives(kind: Any) -> str:
    """The values to choose from, where the type is a list of them."""
    return f"expected {' or '.join(map(str, get_args(kind)))}" if get_origin(kind) is Literal else ""
