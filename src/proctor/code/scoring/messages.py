"""The messages between the harness and a call of foreign task code.

Messages of the trusted harness are pickled. Those of the call are untrusted: JSON of the
types below.
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


class InvalidMessageError(Exception):
    """The message is not valid."""


class Contents(Struct, frozen=True):
    """The payload of a worker."""

    origin: Origin
    settings: dict[str, Any]
    data: str | None
    config: RunConfig
    state: bytes
    """The task's attributes, pickled."""
    complete: bool
    """Whether `state` has all attributes. If not, the worker builds the task anew."""


# Requests: the first message to a call.


class ReadOutputs(Struct, frozen=True):
    """The generation of each output."""

    sample: Sample
    outputs: tuple[Output, ...]


class ScoreOutputs(Struct, frozen=True):
    """The generation of each output, and the metrics of the sample."""

    sample: Sample
    outputs: tuple[Output, ...]


class CountResults(Struct, frozen=True):
    """The metrics of these samples."""

    indices: tuple[int, ...]
    generations: list[list[str]]
    references: list[Any] | None
    """None if they cannot be pickled: the task has them, too."""
    final: bool


class MakePrograms(Struct, frozen=True):
    """The program of each generation of a sample."""

    index: int
    generations: list[str]


Request = ReadOutputs | ScoreOutputs | CountResults | MakePrograms

# Answers of the harness during a call.


class ToJudge(Struct, frozen=True):
    number: int
    verdict: Verdict


class Trials(Struct, frozen=True):
    trials: list[Trial]


class Abandoned(Struct, frozen=True):
    """The harness stopped, because the call could not judge a program."""


class Dataset(Struct, frozen=True):
    rows: bytes


# Messages of a call.


class RunPrograms(Struct, frozen=True, tag=True):
    programs: list[Program]
    limits: Limits
    judged: bool
    """Whether the call makes the trials of the verdicts itself."""


class Judged(Struct, frozen=True, tag=True):
    trial: Trial | None
    """None if the call failed to judge."""


class RequestDataset(Struct, frozen=True, tag=True):
    """Requests the data set of the task."""


class ScoringFailure(Struct, frozen=True, tag=True):
    kind: str
    """The class name of the exception."""
    message: str
    trace: str = ""
    usage: bool = False
    """Whether it is a usage error, which occurs every time."""


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


Reply = RunPrograms | Judged | RequestDataset | ScoringFailure | GenerationTexts | Scored | Counted | Programs
_DECODER: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
_DETAIL = 10_000


def send_trusted(fd: int, message: Any) -> None:
    wire.send(fd, pickle.dumps(message))


def receive_trusted(fd: int) -> Any:
    """Receives a message of the harness, in a call."""
    return pickle.loads(wire.receive(fd, (1 << 32) - 1))


def send_plain(fd: int, message: Reply) -> None:
    try:
        body = msgspec.json.encode(message)
    except UnicodeEncodeError:  # lone surrogates, which msgspec does not encode
        body = json.dumps(msgspec.to_builtins(message)).encode()
    wire.send(fd, body)


def receive_plain(fd: int, most: int) -> Reply:
    """Receives a message of a call, in the harness: any bytes may come."""
    body = wire.receive(fd, most)
    try:
        try:
            reply = _DECODER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):  # JSON with NaN or lone surrogates
            reply = msgspec.convert(json.loads(body), Reply)
    except (ValueError, RecursionError, TypeError) as error:
        raise InvalidMessageError(f"{type(error).__name__}: {error}") from None
    return reply


def failure(error: BaseException, trace: str, usage: bool) -> ScoringFailure:
    try:
        message = str(error)
    except BaseException as second:  # __str__ may raise
        message = f"(without a message: {type(second).__name__})"
    return ScoringFailure(type(error).__name__, message[:_DETAIL], trace[-_DETAIL:], usage)
