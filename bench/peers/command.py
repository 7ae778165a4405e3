"""The command line that all peers' scripts share: `run N DIR [--fastest]` and `reopen DIR`, prints JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path


def run_command(
    run: Callable[[int, Path, bool], dict[str, float]],
    reopen: Callable[[Path], dict[str, float]],
) -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    run_parser = commands.add_parser("run", help="run the task")
    run_parser.add_argument("count", type=int, metavar="N", help="number of samples")
    run_parser.add_argument("dir", type=Path, metavar="DIR", help="folder for what the harness writes")
    run_parser.add_argument("--fastest", action="store_true", help="settings for speed instead of the defaults")
    reopen_parser = commands.add_parser("reopen", help="read the newest log back")
    reopen_parser.add_argument("dir", type=Path, metavar="DIR", help="folder given to run")
    args = parser.parse_args()
    print(json.dumps(run(args.count, args.dir, args.fastest) if args.command == "run" else reopen(args.dir)))
