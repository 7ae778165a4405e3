"""The data of a run: samples, outputs, scores, records, metrics."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

Modality = Literal["text", "image", "both"]  # how a sample is shown
ShotSource = Literal["same", "other"]  # whether few-shot examples share the canvas of the question
FimFamily = Literal["starcoder", "santacoder", "incoder", "codellama", "qwen", "deepseek"]


class Text(Struct, frozen=True, tag="text"):
    text: str


class Image(Struct, frozen=True, tag="image"):
    """An image, stored in full (as base64 in JSON), so that a record needs no other file."""

    data: bytes
    media_type: str = "image/png"

    @property
    def url(self) -> str:
        """The image as a data: URL."""
        return f"data:{self.media_type};base64,{b64encode(self.data).decode()}"


class Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: str | tuple[Text | Image, ...]

    @property
    def text(self) -> str:
        """The text without the images."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def images(self) -> list[Image]:
        return [] if isinstance(self.content, str) else [part for part in self.content if isinstance(part, Image)]


Prompt = str | tuple[Message, ...]


class Sample(Struct, frozen=True):
    """One question, problem or episode, reproducible from (task version, settings, seed, index)."""

    id: str
    index: int
    input: Prompt
    target: Any = None
    seed: int = 0
    choices: tuple[str, ...] = ()  # all possible answers, if they are a closed set
    metadata: dict[str, Any] = {}
    cluster: str = ""  # samples of one cluster are not independent, such as variants of one problem


class Usage(Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None  # in the currency of the price; None without a price

    def __add__(self, other: Usage) -> Usage:
        cost = self.cost if other.cost is None else other.cost + (self.cost or 0.0)
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, cost)


LENGTH = "length"


class Output(Struct, frozen=True):
    """What the candidate produced for one request."""

    text: str
    usage: Usage = Usage()
    finish: str = "stop"  # LENGTH if it reached the token limit
    seconds: float = 0.0
    attempts: int = 1
    cached: bool = False


RESERVED_OUTCOMES = ("error", "answered")
UNPARSED = "unparsed"  # the task read no answer in the output
TRUNCATED = "truncated"  # the output ended by length before an answer


class Score(Struct, frozen=True):
    """A value in [0, 1], or None with an outcome that says why."""

    value: float | None
    outcome: str = ""  # default: derived from the value
    answer: Any = None  # the parsed answer
    why: str = ""
    truncated: int = 0  # the number of outputs that ended by length before an answer

    def __post_init__(self) -> None:
        if self.value is not None and not 0 <= self.value <= 1:
            raise ValueError(f"a score must be between 0 and 1, not {self.value!r}")
        if self.outcome in RESERVED_OUTCOMES:
            raise ValueError(f"the outcome {self.outcome!r} is reserved for samples without a score")
        if not self.outcome:
            names: dict[float | None, str] = {None: "unscored", 0: "wrong", 1: "correct"}
            force_setattr(self, "outcome", names.get(self.value, "partly"))


class SampleError(Struct, frozen=True):
    """Why a sample has no score: an error of the model, or of the task when asking or judging."""

    kind: Literal["model", "ask", "judge"]
    type: str
    message: str
    where: str = ""  # the last lines of the traceback, for errors of the task


class Timing(Struct, frozen=True):
    started: float = 0.0  # seconds since the epoch
    ask: float = 0.0  # includes the wait for a free slot, unlike Output.seconds
    judge: float = 0.0


class Record(Struct, frozen=True):
    """A sample with its outputs and its score or error; with neither it is not judged yet."""

    sample: Sample
    epoch: int = 0
    outputs: tuple[Output, ...] = ()
    score: Score | None = None
    error: SampleError | None = None
    timing: Timing = Timing()

    @property
    def finished(self) -> bool:
        return self.score is not None or self.error is not None

    @property
    def outcome(self) -> str:
        if self.error is not None:
            return "error"
        return self.score.outcome if self.score is not None else "answered"

    @property
    def usage(self) -> Usage:
        first, *others = [output.usage for output in self.outputs] or [Usage()]
        return sum(others, first)


class Metric(Struct, frozen=True):
    """An estimate with standard error and 95 % interval; None if n is too small."""

    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    n: int  # independent units: samples (not epochs), or clusters of samples
    method: str  # of the interval


MARGIN = 0.01  # a gain of up to one point over chance is no shortcut
LUCK = 3.5  # standard errors; one or two in 5,000 honest probes exceed them


class Probe(Struct, frozen=True):
    """The accuracy of a guesser that sees too little, compared with chance."""

    name: str
    accuracy: Metric | None  # None if the probe does not apply to the task
    chance: float
    note: str = ""  # what the best guesser uses, or why there is none
    stated: float | None = None  # its documented accuracy, if the task cannot avoid it

    @property
    def holds(self) -> bool:
        """Whether the accuracy exceeds chance by at most MARGIN, within sampling error."""
        if self.accuracy is None or self.accuracy.value is None:
            return True
        expected = max(self.chance, self.stated or 0.0)
        luck = LUCK * math.sqrt(expected * (1 - expected) / self.accuracy.n)
        return self.accuracy.value <= expected + max(MARGIN, luck)


class Finding(Struct, frozen=True):
    """A claim about a task that was verified, or the first fault that contradicts it."""

    claim: str
    fault: str = ""
    seen: str = ""  # the figures

    @property
    def holds(self) -> bool:
        return not self.fault


Status = Literal["running", "done", "failed", "interrupted"]
IF_FAULTS_FAIL = "_if_faults_fail"  # ends the name of a metric in which the candidate's faults count as failures


class Run(Struct, frozen=True):
    """A task, a candidate and a configuration; after its end also totals and metrics."""

    id: str
    task: str
    version: str
    candidate: str
    config: dict[str, Any]
    provenance: dict[str, Any]
    created: float
    status: Status = "running"
    reason: str = ""  # why it failed, was stopped, or needed no more samples
    total: int | None = None  # expected records; None if unknown
    n: int = 0  # records scored
    errors: int = 0
    outcomes: dict[str, int] = {}
    outputs: int = 0  # of the records scored
    truncated: int = 0  # outputs that ended by length before an answer
    metrics: dict[str, Metric] = {}
    groups: dict[str, dict[str, dict[str, Metric]]] = {}  # metadata key -> its value -> metrics
    usage: Usage = Usage()
    seconds: float = 0.0  # over all sessions of a resumed run

    @property
    def main_metric(self) -> str:
        """The name of the first metric; '' if there is none yet."""
        return next(iter(self.metrics), "")

    @property
    def ranking_metric(self) -> str:
        """The name of the one by which candidates are ranked: nobody gains by a fault for which there is no score."""
        strict = f"{self.main_metric}{IF_FAULTS_FAIL}"
        return strict if strict in self.metrics else self.main_metric

    @property
    def tags(self) -> list[str]:
        """Labels for finding the run again."""
        tags: list[str] = self.config.get("tags", [])
        return tags
