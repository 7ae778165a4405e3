"""Play a game yourself.

hexagon: space starts, the left and right arrows move around the centre, escape quits. Find the gap."""

from __future__ import annotations

import argparse

from proctor.agents.games.hexagon.options import add_arguments as add_game_arguments
from proctor.agents.games.hexagon.options import parsed
from proctor.core.errors import MissingExtraError, UsageError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("game", choices=("hexagon",), help="which game")
    add_game_arguments(parser)


def call(args: argparse.Namespace) -> int:
    try:
        import pygame

        from proctor.agents.games.hexagon.window import run
    except ModuleNotFoundError:
        raise MissingExtraError("proctor play", "desktop") from None
    try:
        run(parsed(args))
    except pygame.error as error:
        raise UsageError(f"No window can be opened here: {error}.") from None
    return 0
