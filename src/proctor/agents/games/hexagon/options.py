"""How the game is started as a program."""

from __future__ import annotations

import argparse
import re
import secrets

from msgspec import Struct

from proctor.agents.games.hexagon.look import SIZE
from proctor.agents.games.hexagon.rules import LEVELS

TITLE = "Proctor Hexagon"
SMALLEST, LARGEST = 160, 4_096  # pixels
MOST_FPS = 240


class Options(Struct, frozen=True):
    seed: int = 0
    level: int = 1
    size: tuple[int, int] = SIZE
    fps: int = 60
    title: str = TITLE
    state: str | None = None  # a file
    moves: str | None = None  # a file
    rounds: int | None = None  # after which the space bar starts no other
    locked: bool = False  # escape does not end it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    width, height = SIZE
    parser.add_argument("--seed", type=int, default=None, metavar="N", help="which walls come (default: any)")
    names = ", ".join(f"{number} {level.name}" for number, level in LEVELS.items())
    parser.add_argument("--level", type=int, choices=tuple(LEVELS), default=1, help=f"{names} (default: 1)")
    parser.add_argument("--size", type=_size, default=SIZE, metavar="WxH", help=f"pixels (default: {width}x{height})")
    parser.add_argument("--fps", type=_fps, default=60, metavar="N", help="frames to the second (default: 60)")
    parser.add_argument("--title", default=TITLE, help=f"of the window (default: {TITLE})")
    parser.add_argument("--state", default=None, metavar="FILE", help="where to tell at every frame how it stands")
    parser.add_argument("--moves", default=None, metavar="FILE", help="where to log the moves of the first round")
    parser.add_argument(
        "--rounds", type=_rounds, default=None, metavar="N", help="how many may be played (default: any)"
    )

    parser.add_argument("--locked", action="store_true", help="escape does not end the program")


def parsed(args: argparse.Namespace) -> Options:
    seed = secrets.randbelow(1 << 31) if args.seed is None else args.seed
    return Options(seed, args.level, args.size, args.fps, args.title, args.state, args.moves, args.rounds, args.locked)


def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if match is None or not all(SMALLEST <= int(side) <= LARGEST for side in match.groups()):
        raise argparse.ArgumentTypeError(f"{text!r} is no size: write 640x480, of {SMALLEST} to {LARGEST} each")
    return int(match[1]), int(match[2])


def _fps(text: str) -> int:
    return _whole(text, MOST_FPS)


def _rounds(text: str) -> int:
    return _whole(text, 1_000_000)


def _whole(text: str, most: int) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {most}")
    return int(text)
