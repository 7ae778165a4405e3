"""The game as a program of its own: `python -m proctor.agents.games.hexagon`."""

from __future__ import annotations

import argparse

from proctor.agents.games.hexagon.options import add_arguments, parsed
from proctor.agents.games.hexagon.window import run


def main() -> None:
    parser = argparse.ArgumentParser(prog="hexagon", description=__doc__, allow_abbrev=False)
    add_arguments(parser)
    run(parsed(parser.parse_args()))


if __name__ == "__main__":
    main()
