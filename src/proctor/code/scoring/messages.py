"""What passes between the harness and a call of task code.

From the harness, which is trusted, it is pickled. What comes back may have been written by a model: it is JSON, of
these kinds and no others, and nothing in it is believed beyond that.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import msgspec
from msgspec import Struct

from proctor.code.execution import Trial
from proctor.code.foreign import Origin
from proctor.core.config import RunConfig
from proctor.core.types import Output, Sample
from proctor.sandbox import Limits, Program, Verdict
from proctor.sandbox.inside import wire


class GarbledError(Exception):
    """What came is none of the messages."""


class Contents(Struct, frozen=True):
    """What a worker is started with."""

    origin: Origin
    settings: dict[str, Any]
    data: str | None
    config: RunConfig
    state: bytes
    """The task's attributes, pickled."""
    complete: bool
    """Whether these are all. If not, the task has to be made anew."""


# What a call is asked for, first of all.


class ReadOutputs(Struct, frozen=True):
    """The generation of each output."""

    sample: Sample
    outputs: tuple[Output, ...]


class ScoreOutputs(Struct, frozen=True):
    """The same, and the metrics of this one problem."""

    sample: Sample
    outputs: tuple[Output, ...]


class CountResults(Struct, frozen=True):
    """The metrics of these problems."""

    indices: tuple[int, ...]
    generations: list[list[str]]
    references: list[Any] | None
    """None where they cannot be sent: the task has them, too."""
    final: bool


class MakePrograms(Struct, frozen=True):
    """What is run to judge each generation of a problem."""

    index: int
    generations: list[str]


Request = ReadOutputs | ScoreOutputs | CountResults | MakePrograms

# What the harness answers in the middle of a call.


class ToJudge(Struct, frozen=True):
    number: int
    verdict: Verdict


class Trials(Struct, frozen=True):
    trials: list[Trial]


class Abandoned(Struct, frozen=True):
    """Nothing more comes of the programs: the call could not judge one of them."""


class Dataset(Struct, frozen=True):
    rows: bytes


# What a call says.


class RunPrograms(Struct, frozen=True, tag=True):
    programs: list[Program]
    limits: Limits
    judged: bool
    """Whether the call wants to see the verdicts, to make trials of them itself."""


class Judged(Struct, frozen=True, tag=True):
    trial: Trial | None
    """None: it could not."""


class WantDataset(Struct, frozen=True, tag=True):
    """The data set that the task is made of."""


class ScoringFailure(Struct, frozen=True, tag=True):
    kind: str
    """Of the exception, by its class."""
    message: str
    trace: str = ""
    usage: bool = False
    """Whether it says that it was used wrongly, and so would fail every time."""


class GenerationTexts(Struct, frozen=True, tag=True):
    texts: list[str]


class Scored(Struct, frozen=True, tag=True):
    texts: list[str]
    metrics: dict[str, int | float] | None
    failed: ScoringFailure | None = None
    """Why there are no metrics."""


class Counted(Struct, frozen=True, tag=True):
    metrics: dict[str, int | float]


class Programs(Struct, frozen=True, tag=True):
    programs: list[Program]


Reply = RunPrograms | Judged | WantDataset | ScoringFailure | GenerationTexts | Scored | Counted | Programs
_DECODER: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_DETAIL = 10_000


def send_trusted(line: int, message: Any) -> None:
    wire.send(line, pickle.dumps(message))


def receive_trusted(line: int) -> Any:
    """In a call, of the harness."""
    return pickle.loads(wire.receive(line, (1 << 32) - 1))


def send_plain(line: int, message: Reply) -> None:
    try:
        body = msgspec.json.encode(message)
    except UnicodeEncodeError:  # half a character, which msgspec does not write
        body = json.dumps(msgspec.to_builtins(message)).encode()
    wire.send(line, body)


def receive_plain(line: int, most: int) -> Reply:
    """In the harness, of a call: any bytes may come."""
    body = wire.receive(line, most)
    try:
        try:
            reply = _DECODER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):  # it may be JSON as Python writes it
            reply = msgspec.convert(json.loads(body), Reply)
    except (ValueError, RecursionError, TypeError) as error:
        raise GarbledError(f"{type(error).__name__}: {error}") from None
    return reply


def failure(error: BaseException, trace: str, usage: bool) -> ScoringFailure:
    try:
        message = str(error)
    except BaseException as second:  # an exception may be broken, too
        message = f"(its text cannot be had: {type(second).__name__})"
    return ScoringFailure(type(error).__name__, message[:_DETAIL], trace[-_DETAIL:], usage)
