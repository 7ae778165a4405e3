"""The log of a stepped episode: a header, a line per step, an ending. Lines are written at once."""

from __future__ import annotations

import math
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from proctor.agents.envs.mapped_file import MappedFile, written
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.lags import Lags
from proctor.core.errors import UsageError
from proctor.core.types import Usage

FORMAT = 1
NAME = "events.jsonl"


class Header(Struct, frozen=True):
    """Enough to replay the episode."""

    task: str
    settings: dict[str, Any]
    agent: str
    seed: int
    started: float  # seconds since the epoch; the events count nanoseconds of a clock that is never set
    versions: dict[str, str]
    format: int = FORMAT

    @property
    def episode(self) -> bytes:
        """Identifies the episode."""
        return _encode((self.task, self.settings, self.agent, self.seed))


class StepState(Struct):
    """The result of one step. The trace is a hash over these, without times."""

    action: Any
    reward: float | None  # None after a reset
    terminated: bool
    truncated: bool
    frame: str  # fingerprint of the observation


class EpisodeEnding(Struct, frozen=True):
    """How an episode ended: the last line of its log, and the output in the record."""

    outcome: EpisodeOutcome
    reward: float = 0.0
    length: int = 0
    success: bool | None = None
    why: str = ""
    trace: str = ""
    seconds: float = 0.0
    clock: str = "step"
    events: str = ""  # the log, in the folder of the run's files
    idle: int = 0  # steps without an action of the agent
    unreadable: int = 0  # answers of a model that were not an action
    late: int = 0  # actions that came after the tick they were meant for
    dropped: int = 0  # actions that were replaced before they took effect
    late_ticks: int = 0  # that the harness began too late
    slow_ticks: int = 0  # late because of the environment
    lags: dict[str, Lags] = {}
    usage: Usage = Usage()  # of a language model
    by_agent: bool = False  # the environment was lost after the agent had begun
    seed: int | None = None  # each attempt has its own
    interrupted: bool = False  # by the end of the run
    held: str = ""  # where the agent ran: trusted, isolated at a level, or remote


class Closing(Struct, frozen=True):
    """The last line."""

    ending: EpisodeEnding


class StepLine(StepState, kw_only=True, omit_defaults=True):
    """A step as it is written, with times and success, which are not in the trace."""

    ns: int
    success: bool | None = None
    timing: dict[str, int] = field(default_factory=dict)


_encode = msgspec.json.Encoder().encode


class StepLog:
    """Writes a log and computes its trace."""

    def __init__(self, path: Path, header: Header) -> None:
        self._file = MappedFile(path)
        self._trace = sha256()
        self._write, self._hash = self._file.write, self._trace.update  # looked up once, for they are used in each step
        self._write(_encode(header) + b"\n")

    def add(self, ns: int, state: StepState, success: bool | None = None, timing: dict[str, int] | None = None) -> None:
        told = _encode(state)
        self._hash(told)
        if success is not None or timing:
            more = _encode({"success": success, "timing": timing or {}})
            self._write(b'{"ns":%d,%b,%b\n' % (ns, told[1:-1], more[1:]))
        else:
            self._write(b'{"ns":%d,%b\n' % (ns, told[1:]))

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    def close(self) -> None:
        self._file.close()


class RecordedEpisode(Struct):
    """A log that was read; the states begin with the one after the reset."""

    header: Header
    lines: list[StepLine]
    ending: EpisodeEnding | None

    @property
    def states(self) -> list[StepState]:
        return [StepState(x.action, x.reward, x.terminated, x.truncated, x.frame) for x in self.lines]

    @property
    def trace(self) -> str:
        return sha256(b"".join(map(_encode, self.states))).hexdigest()

    @property
    def reward(self) -> float:
        return sum(line.reward or 0.0 for line in self.lines[1:])

    @property
    def length(self) -> int:
        return max(0, len(self.lines) - 1)

    @property
    def success(self) -> bool | None:
        """The environment's last report."""
        return next((line.success for line in reversed(self.lines) if line.success is not None), None)

    def bears_out(self, ending: EpisodeEnding) -> bool:
        """Whether the ending fits these steps."""
        same = (ending.trace, ending.length) == (self.trace, self.length)
        return same and math.isclose(ending.reward, self.reward, abs_tol=1e-6)  # added up in another way


def read_events(path: Path) -> RecordedEpisode:
    """Reads the complete lines of a log, which may be cut off."""
    try:
        first, *rest = written(path).splitlines() or [b""]
        recording = RecordedEpisode(msgspec.json.decode(first, type=Header), [], None)
    except OSError as error:
        raise UsageError(f"Cannot read the log {path}: {error.strerror}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not the log of an episode: {error}.") from None
    if recording.header.format != FORMAT:
        raise UsageError(f"{path} is of format {recording.header.format}; this version reads {FORMAT}.")
    for number, line in enumerate(rest, 2):
        try:
            if line.startswith(b'{"ending"'):
                recording.ending = msgspec.json.decode(line, type=Closing).ending
            else:
                recording.lines.append(msgspec.json.decode(line, type=StepLine))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if number <= len(rest) and not rest[number - 1].startswith(b'{"ending"'):
                raise UsageError(f"{path}, line {number}: no event: {error}.") from None
    return recording


def close_log(path: Path, ending: EpisodeEnding) -> None:
    """Writes the last line. It may follow one that was cut off."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as file:
        if size := file.seek(0, os.SEEK_END):
            file.seek(size - 1)
            if file.read(1) != b"\n":
                whole = written(path)
                file.truncate(len(whole))
                file.write(b"" if whole.endswith(b"\n") else b"\n")
        file.write(_encode(Closing(ending)) + b"\n")


def ending_of(path: Path, header: Header) -> EpisodeEnding | None:
    """The ending in the log of this episode, if it fits its steps."""
    try:
        seen = read_events(path)
    except UsageError:
        return None
    fits = seen.header.episode == header.episode and seen.ending is not None and seen.bears_out(seen.ending)
    return seen.ending if fits else None
