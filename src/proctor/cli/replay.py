"""Play a logged episode again, and say whether the world did the same.

The log of an episode is the events.jsonl in the folder of the run's files. Exits with 1 when something differs."""

from __future__ import annotations

import argparse
from pathlib import Path

from proctor.cli.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("events", metavar="EVENTS.jsonl", help="the log of an episode")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def call(args: argparse.Namespace) -> int:
    from proctor.agents.worlds.replay import replay
    from proctor.config import user_path

    found = replay(Path(user_path(args.events)))
    header, trace = found.recording.header, found.recording.trace
    if args.json:
        about = {"task": header.task, "seed": header.seed, "steps": found.recording.length}
        print_json(about | {"trace": trace, "replayed": found.ending.trace, "difference": found.difference})
        return int(not found.same)
    verdict = f"the same trace {trace}" if found.same else f"ANOTHER TRACE: {found.difference}"
    print(f"{header.task}, seed {header.seed}, {found.recording.length} steps: {verdict}")
    return int(not found.same)
