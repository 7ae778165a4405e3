"""The contract of a task: it makes samples, asks the candidate, judges outputs and sums up."""

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


# Samples in progress per concurrent request. Above 1, so that a sample that is being judged
# does not hold back the next request; the model client limits the requests themselves.
SAMPLES_PER_SLOT = 2
CUT_OFF = "the output reached its most tokens before an answer"


class NoSettings(Struct, frozen=True):
    pass


class Task(ABC):
    """What is run and scored. A subclass defines `samples` and `score_text`, or `judge` if it
    judges all outputs of a sample together.
    """

    name: str = ""  # set by `create_task`
    version: ClassVar[str] = "1"  # raise it when the same answer could get another score
    summary: ClassVar[str] = ""  # one line for `proctor list`
    Settings: ClassVar[type[Struct]] = NoSettings
    metric: ClassVar[str] = "accuracy"  # the name of the mean score
    group_by: ClassVar[tuple[str, ...]] = ()  # metadata keys by which every report groups its metrics
    fixed: ClassVar[bool] = False  # a fixed data set, which the seed does not change
    max_tokens: ClassVar[int] = 64  # per answer; a chat model that may reason gets more
    stop: ClassVar[tuple[str, ...]] = ()
    executes: bool = False  # judging runs programs in `sandbox`, which is open by then

    sandbox: Sandbox
    agent_held: str = ""  # where the agent runs: trusted, isolated at a level, or remote
    artifacts: Path  # the folder for files of the run; the first writer creates it
    settings: Any = NoSettings()

    @classmethod
    def build(cls, settings: Struct, data: str | None) -> Self:
        """Creates the task with these settings. `data` is a file with its samples, if it takes one."""
        if data is not None:
            raise UsageError(f"{cls.__name__} generates its samples and takes no --data.")
        task = cls()
        task.settings = settings
        return task

    @abstractmethod
    def samples(self, config: RunConfig) -> Iterator[Sample]:
        """Yields the samples from config.limit_start on. Each depends only on seed and index."""

    def has_pictures(self) -> bool:
        """Whether samples can be shown as images, as config.modality asks."""
        return False

    def draw_row(self, row: Mapping[str, Any], ending: str) -> bytes:
        """Draws a row of `json_lines` as png or svg, for tasks that have images."""
        raise UsageError(f"{self.name} has no images to draw.")

    def draw_sample(self, sample: Sample, config: RunConfig) -> str | None:
        """Draws the sample as SVG for people; None if it cannot be drawn."""
        return None

    def count(self, config: RunConfig) -> int | None:
        """The number of samples, or None if it is unknown before the run."""
        return config.limit

    def samples_at_once(self, candidate: Candidate, config: RunConfig) -> int:
        """How many samples run at once. Read repeatedly, since the concurrency may change."""
        judged = self.sandbox.slots if needs_sandbox(self, config) else 0
        return max(candidate.slots, judged) * SAMPLES_PER_SLOT

    async def open(self, config: RunConfig) -> None:  # noqa: B027
        """Called once before the first sample: starts what asking and judging need."""

    async def close(self) -> None:  # noqa: B027
        """Called once at the end, also after an error."""

    @property
    def asks_its_inputs(self) -> bool:
        """Whether each request is exactly the input of a sample."""
        return type(self).ask is Task.ask

    async def ask(
        self, sample: Sample, epoch: int, candidate: Candidate, config: RunConfig, done: Sequence[Output]
    ) -> AsyncGenerator[Output]:
        """Yields the candidate's outputs for the sample. The run stores each before it asks for
        the next. `done` holds those that an interrupted run has stored already.
        """
        if not isinstance(candidate, Model):
            raise UsageError(f"{self.name} is a task for models; {candidate.name} is an agent.")
        first = epoch * config.samples
        requests = [self.request(sample, first + i, config) for i in range(len(done), config.samples)]
        if len(requests) == 1:
            yield await candidate.generate(requests[0])
            return
        answers = [asyncio.ensure_future(candidate.generate(request)) for request in requests]
        try:
            for answer in answers:
                yield await answer
        finally:  # an error cancels the other requests
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
            # One seed per completion: epochs differ, and a rerun repeats them.
            seed=mix(config.seed, sample.index, number) >> 33,
        )
        return Request(sample.input, sampling, number, sample)

    def stop_strings(self, config: RunConfig) -> tuple[str, ...]:
        """The strings that end an answer."""
        return (*self.stop, *config.stop)

    def generation(self, sample: Sample, output: Output) -> str:
        """The part of an output that is judged and written to a generations file."""
        return output.text

    def generations(self, record: Record) -> list[str]:
        """The generations of all outputs of a record."""
        return [self.generation(record.sample, output) for output in record.outputs]

    async def judge(self, sample: Sample, outputs: Sequence[Output]) -> Score:
        """Scores the outputs: by default each text, then averages the values."""
        return average_scores([self.score_output(sample, output) for output in outputs])

    def score_output(self, sample: Sample, output: Output) -> Score:
        """Scores the text of one output; `truncated` if it ended by length before an answer."""
        if output.finish != LENGTH:
            return self.score_text(sample, output.text)
        if reasoning_is_open(output.text):
            return Score(0, TRUNCATED, why=CUT_OFF, truncated=1)  # answers inside the reasoning do not count
        return mark_truncated(self.score_text(sample, output.text), [output])

    def score_text(self, sample: Sample, text: str) -> Score:
        """Scores one text."""
        # `check_task_class` refuses such a class earlier.
        raise TypeError(f"{type(self).__name__} defines neither score_text nor judge")

    def probes(self, config: RunConfig) -> Iterable[Probe]:
        """Compares guessers with chance, for `proctor check --probes`."""
        raise UsageError(f"{self.name} has no probes: they need tasks with a description and a question.")

    def findings(self, config: RunConfig) -> Iterable[Finding]:
        """Task-specific findings of `proctor check` over all samples."""
        return ()

    def json_lines(self, config: RunConfig, part: range) -> Iterator[bytes]:
        """Yields this part of the samples as JSON lines, for `proctor generate`. One piece may hold
        several whole lines.
        """
        start = config.limit_start + part.start
        config = msgspec.structs.replace(config, limit_start=start, limit=len(part))
        for sample in take_samples(self, config) if part else ():
            yield msgspec.json.encode(sample) + b"\n"

    def tally(self) -> Tally:
        """Collects records and computes their metrics."""
        return MeanScore(self.metric)

    def gold(self, sample: Sample) -> str:
        """A text that gets the full score; `proctor check` verifies it."""
        return str(sample.target)

    def proofs(self, sample: Sample) -> Iterable[str]:
        """Faults that an independent solver finds in the sample; `proctor check` expects none."""
        return ()


T = TypeVar("T", bound=Task)


@asynccontextmanager
async def open_task(task: Task, config: RunConfig) -> AsyncIterator[None]:
    """Opens the task and the sandbox that it needs, and closes both at the end."""
    async with AsyncExitStack() as stack:
        if needs_sandbox(task, config):
            task.sandbox = await stack.enter_async_context(await create_sandbox(config))
        await task.open(config)
        stack.push_async_callback(task.close)
        yield


def needs_sandbox(task: Task, config: RunConfig) -> bool:
    return task.executes and not config.generation_only


async def create_sandbox(config: RunConfig) -> Sandbox:
    """The sandbox that the options ask for, not yet open."""
    from proctor.sandbox import open_sandbox

    engine = "" if config.sandbox == "local" else config.sandbox
    if config.engine == "ray":
        from proctor.sandbox.cluster import ClusterSandbox

        return ClusterSandbox(config.workers, config.unsafe, engine)
    return await open_sandbox(workers=config.workers, unsafe=config.unsafe, engine=engine)


def mark_truncated(score: Score, outputs: Sequence[Output]) -> Score:
    """Sets the outcome `truncated` if all outputs ended by length before an answer.

    There is no answer if the task found none, or if the outputs hold only reasoning.
    """
    if score.truncated or score.value or not outputs or any(output.finish != LENGTH for output in outputs):
        return score
    has_no_answer = score.outcome in (UNPARSED, TRUNCATED)
    if not has_no_answer and (score.value is None or any(strip_reasoning(output.text) for output in outputs)):
        return score
    return Score(score.value, TRUNCATED, score.answer, score.why or CUT_OFF, len(outputs))


def average_scores(scores: Sequence[Score]) -> Score:
    """One score for several texts. It has no value if one of them has none."""
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
    """Yields the samples of a run; raises if the task breaks its contract."""
    last = config.limit_start - 1
    try:
        for sample in islice(task.samples(config), config.limit):
            if not isinstance(sample, Sample):
                raise TaskError(f"{task.name}: {sample!r} is not a Sample.")
            _decode_sample(msgspec.json.encode(sample))  # it must be readable from the store
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
    """Creates a task with these settings, whose values may be text from a command line."""
    known = {field.name: field.type for field in msgspec.structs.fields(task_class.Settings)}
    for key in settings:
        if key not in known:
            listing = f"Settings: {', '.join(known)}." if known else "It has no settings."
            raise SettingError(f"{name} has no setting {key!r}{did_you_mean(key, known)} {listing}", key)
    try:
        filled = msgspec.convert(dict(settings), task_class.Settings, strict=False)
    except msgspec.ValidationError as error:
        problem, _, path = str(error).replace("`", "").partition(" - at $.")
        key = path.partition(".")[0].partition("[")[0]
        if key not in settings:  # the settings contradict each other
            raise SettingError(f"{name}: settings: {problem[0].lower()}{problem[1:].rstrip('.')}.", "") from None
        expected = _list_choices(known[key]) or problem.partition(", got ")[0]
        expected = f"{expected[0].lower()}{expected[1:]}"
        message = f"{name}: setting {path}: {expected}, got {settings[key]!r}."
        raise SettingError(message, key) from None
    try:
        task = task_class.build(filled, data)
    except UsageError:
        raise
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name} cannot be created: {type(error).__name__}: {error}") from error
    task.name = name
    if modality != "text" and not task.has_pictures():
        raise SettingError(f"{name} has no images: use --modality text.", "modality")
    return task


def _list_choices(kind: Any) -> str:
    """The values of a Literal type, for an error message."""
    return f"expected {' or '.join(map(str, get_args(kind)))}" if get_origin(kind) is Literal else ""
