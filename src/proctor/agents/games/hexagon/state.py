"""The state that a running game writes into a file at every frame; readable also after its death."""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct

from proctor.agents.games.hexagon.rules import TICKS, Game, Phase

SLOT = 512  # bytes; there are two of them, written in turns, so that one of them is always whole
_SUM = 8  # digits of the checksum that a slot begins with


class GameState(Struct, frozen=True):
    phase: Phase
    seed: int
    level: int
    played: int  # rounds that are over
    cursor: int  # where it is, in tenths of a degree
    tick: int  # of the round that is shown
    survived: float  # seconds, the same in other words
    last: float | None  # seconds of the last round that is over
    best: float | None
    frame: int  # drawn so far
    late: int  # frames that were not drawn in time


def state_of(game: Game, frame: int, late: int) -> GameState:
    ticks = game.round.ticks
    last, best = (None if ticks is None else ticks / TICKS for ticks in (game.last, game.best))
    return GameState(
        phase=game.phase,
        seed=game.seed,
        level=game.level,
        played=game.played,
        cursor=game.round.cursor,
        tick=ticks,
        survived=ticks / TICKS,
        last=last,
        best=best,
        frame=frame,
        late=late,
    )


class StateFile:
    """Written through memory: no system call for a frame."""

    def __init__(self, path: str) -> None:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            os.ftruncate(file, 2 * SLOT)
            self._memory = mmap.mmap(file, 2 * SLOT)
        finally:
            os.close(file)
        self._slot = 0

    def write(self, state: GameState) -> None:
        text = msgspec.json.encode(state)
        line = b"%08x %s" % (crc32(text), text)
        self._memory[self._slot : self._slot + SLOT] = line.ljust(SLOT - 1) + b"\n"
        self._slot = SLOT - self._slot


def read_state(path: Path) -> GameState | None:
    """The newest complete state; None before the first frame."""
    content = path.read_bytes() if path.exists() else b""
    slots = (_parsed(content[begin : begin + SLOT]) for begin in (0, SLOT))
    return max(filter(None, slots), key=lambda state: state.frame, default=None)


def _parsed(slot: bytes) -> GameState | None:
    text = slot[_SUM + 1 :].rstrip()
    if slot[:_SUM] != b"%08x" % crc32(text):
        return None
    return msgspec.json.decode(text, type=GameState)
