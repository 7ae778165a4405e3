"""Play logged episodes again, and say whether the world did the same.

The log of an episode is the events.jsonl in the folder of the run's files. Exits with 1 when something differs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from proctor.cli.output import print_json

if TYPE_CHECKING:
    from proctor.agents.worlds.replay import Replay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("events", nargs="+", metavar="EVENTS.jsonl", help="the log of an episode")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def call(args: argparse.Namespace) -> int:
    from proctor.agents.worlds.replay import replay
    from proctor.config import user_path

    code = 0
    for events in args.events:
        found = replay(user_path(events))
        _tell(found, args.json)
        code |= not found.same
    return code


def _tell(found: Replay, as_json: bool) -> None:
    header, trace = found.recording.header, found.recording.trace
    if as_json:
        about = {"task": header.task, "seed": header.seed, "steps": found.recording.length}
        print_json(about | {"trace": trace, "replayed": found.ending.trace, "difference": found.difference})
        return
    verdict = f"the same trace {trace}" if found.same else f"ANOTHER TRACE: {found.difference}"
    print(f"{header.task}, seed {header.seed}, {found.recording.length} steps: {verdict}")
