"""The words of the exam room: what is asked, what came back, how it was judged."""

from __future__ import annotations

import math
from base64 import b64encode
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

Modality = Literal["text", "image", "both"]  # how something is shown that can be described and drawn
ShotSource = Literal["same", "other"]  # whether worked examples are about what the question is about
FimFamily = Literal["starcoder", "santacoder", "incoder", "codellama", "qwen", "deepseek"]


class Text(Struct, frozen=True, tag="text"):
    text: str


class Image(Struct, frozen=True, tag="image"):
    """A picture, stored in full (as base64 in JSON): a record can be understood without any other file."""

    data: bytes
    media_type: str = "image/png"

    @property
    def url(self) -> str:
        """The picture as an address that contains it."""
        return f"data:{self.media_type};base64,{b64encode(self.data).decode()}"


class Message(Struct, frozen=True):
    role: Literal["system", "user", "assistant"]
    content: str | tuple[Text | Image, ...]

    @property
    def text(self) -> str:
        """The words alone."""
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
    choices: tuple[str, ...] = ()  # the whole set of possible answers, where it is closed
    metadata: dict[str, Any] = {}
    cluster: str = ""  # samples of the same one are not independent: variants of one problem, for example


class Usage(Struct, frozen=True):
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None  # in the currency of the price that was given; None without a price

    def __add__(self, other: Usage) -> Usage:
        cost = self.cost if other.cost is None else other.cost + (self.cost or 0.0)
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, cost)


LENGTH = "length"


class Output(Struct, frozen=True):
    """What the candidate produced for one request."""

    text: str
    usage: Usage = Usage()
    finish: str = "stop"  # LENGTH when it reached the most tokens that it may have
    seconds: float = 0.0
    attempts: int = 1
    cached: bool = False


RESERVED_OUTCOMES = ("error", "answered")
UNPARSED = "unparsed"  # no answer was found in the output
TRUNCATED = "truncated"  # the output ended by length before an answer


class Score(Struct, frozen=True):
    """A value in [0, 1]; or no value, and the outcome says why there is none."""

    value: float | None
    outcome: str = ""  # left empty, it follows from the value
    answer: Any = None  # what was understood of the output
    why: str = ""
    truncated: int = 0  # how many of the outputs ended by length before an answer

    def __post_init__(self) -> None:
        if self.value is not None and not 0 <= self.value <= 1:
            raise ValueError(f"a score lies between 0 and 1, not {self.value!r}")
        if self.outcome in RESERVED_OUTCOMES:
            raise ValueError(f"the outcome {self.outcome!r} is reserved: it says that a sample has no score")
        if not self.outcome:
            names: dict[float | None, str] = {None: "unscored", 0: "wrong", 1: "correct"}
            force_setattr(self, "outcome", names.get(self.value, "partly"))


class SampleError(Struct, frozen=True):
    """Why a sample has no score: a fault of the model, or of the task while asking or judging."""

    kind: Literal["model", "ask", "judge"]
    type: str
    message: str
    where: str = ""  # the last lines of the traceback, for faults of the task


class Timing(Struct, frozen=True):
    started: float = 0.0  # seconds since the epoch
    ask: float = 0.0  # with the wait for a free place; an output's own seconds are without
    judge: float = 0.0


class Record(Struct, frozen=True):
    """A sample with its outputs and its score or error. With neither it is answered but not yet judged."""

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
    """An estimate with its standard error and 95 % interval; None where n is too small to tell."""

    value: float | None
    stderr: float | None
    low: float | None
    high: float | None
    n: int  # independent units: samples, whatever the number of epochs; clusters, where samples share them
    method: str  # how the interval was made


MARGIN = 0.01  # a shortcut that gains no more than a point is none
LUCK = 3.5  # standard errors that a guesser may be lucky: of 5,000 honest probes, one or two are luckier


class Probe(Struct, frozen=True):
    """How often a guesser that sees too little is right, against pure chance."""

    name: str
    accuracy: Metric | None  # None where the probe says nothing about the task
    chance: float
    note: str = ""  # what the best guesser goes by, or why there is none
    stated: float | None = None  # how often it is right as the task's guide says, where that cannot be avoided

    @property
    def holds(self) -> bool:
        """No shortcut: not above chance by more than a point, as far as the number of samples can tell."""
        if self.accuracy is None or self.accuracy.value is None:
            return True
        expected = max(self.chance, self.stated or 0.0)
        luck = LUCK * math.sqrt(expected * (1 - expected) / self.accuracy.n)
        return self.accuracy.value <= expected + max(MARGIN, luck)


class Finding(Struct, frozen=True):
    """What was proved of a task, or the first thing that disproves it."""

    claim: str
    fault: str = ""
    seen: str = ""  # in figures

    @property
    def holds(self) -> bool:
        return not self.fault


Status = Literal["running", "done", "failed", "interrupted"]
IF_FAULTS_FAIL = "_if_faults_fail"  # ends the name of a metric in which the candidate's faults count as failures


class Run(Struct, frozen=True):
    """A task, a candidate and a configuration; once it has ended, its totals and metrics too."""

    id: str
    task: str
    version: str
    candidate: str
    config: dict[str, Any]
    provenance: dict[str, Any]
    created: float
    status: Status = "running"
    reason: str = ""  # why a run failed or was stopped, or why it needed no more samples
    total: int | None = None  # records expected; None when the task cannot say
    n: int = 0  # records scored
    errors: int = 0
    outcomes: dict[str, int] = {}
    outputs: int = 0  # of the records scored
    truncated: int = 0  # outputs that ended by length before an answer
    metrics: dict[str, Metric] = {}
    groups: dict[str, dict[str, dict[str, Metric]]] = {}  # metadata key -> its value -> metrics
    usage: Usage = Usage()
    seconds: float = 0.0  # spent running, over all sittings of a resumed run

    @property
    def main_metric(self) -> str:
        """The name of the one that it is judged by: the first. Nothing while there is none."""
        return next(iter(self.metrics), "")

    @property
    def ranking_metric(self) -> str:
        """The name of the one by which candidates are ranked: nobody gains by a fault for which there is no score."""
        strict = f"{self.main_metric}{IF_FAULTS_FAIL}"
        return strict if strict in self.metrics else self.main_metric

    @property
    def tags(self) -> list[str]:
        """Words by which people find it again."""
        tags: list[str] = self.config.get("tags", [])
        return tags
