"""The moves of a round by its ticks, with which it is replayed exactly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from proctor.agents.games.hexagon.rules import Game, Phase


class MovesFile:
    """A line for each change of direction in the first round: the tick before which it took effect, and where to."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._last = 0

    def note(self, game: Game, direction: int) -> None:
        """Called before each tick."""
        if game.phase is Phase.PLAYING and game.played == 0 and direction != self._last:
            self._last = direction
            os.write(self._file, b"%d %d\n" % (game.round.ticks, direction))


def read_moves(path: Path) -> list[list[int]]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [[int(number) for number in line.split()] for line in lines]


def replay_moves(moves: dict[str, Any]) -> str:
    """Plays the round by its rules; says what differs, if anything does."""
    game = Game(moves["seed"], moves["level"], rounds=1)
    if moves["phase"] != Phase.READY:
        game.start()
    changes = dict(moves["moves"])
    direction = 0
    for tick in range(moves["ticks"]):
        if game.phase is not Phase.PLAYING:
            return f"the round was over after {game.round.ticks} ticks, not {moves['ticks']}"
        direction = changes.get(tick, direction)
        game.tick(direction)
    found = {"ticks": game.round.ticks, "cursor": game.round.cursor, "phase": str(game.phase)}
    differing = [f"{name} was {moves[name]!r}, now {now!r}" for name, now in found.items() if moves[name] != now]
    return "; ".join(differing)
