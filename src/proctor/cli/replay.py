"""Play logged episodes again, and say whether the environment did the same.

An episode in a window is played again if its clock was `paused`: the same program, the same inputs at the same program
time; hexagon by its own ticks, whatever the clock was.

The log of an episode is the events.jsonl in the folder of the run's files. Exits with 1 when something differs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from proctor.cli.output import print_json

if TYPE_CHECKING:
    from proctor.agents.envs.replay import ReplayResult
    from proctor.agents.windows.replay import WindowReplay


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("events", nargs="+", metavar="EVENTS.jsonl", help="the log of an episode")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def call(args: argparse.Namespace) -> int:
    from proctor.agents.envs.replay import replay
    from proctor.core.config import user_path

    code = 0
    for events in args.events:
        path = user_path(events)
        if _is_of_a_window(path):
            from proctor.agents.windows.replay import replay_window

            in_window = replay_window(path)
            _tell_window(in_window, args.json)
            code |= not in_window.same
            continue
        found = replay(path)
        _tell(found, args.json)
        code |= not found.same
    return code


def _is_of_a_window(path: Path) -> bool:
    """Whether the log begins with an event, and not with the header of an environment that is stepped."""
    try:
        with path.open("rb") as file:
            return file.readline(64).startswith(b'{"ns":')
    except OSError:
        return False  # to be told by whoever reads it


def _tell_window(found: WindowReplay, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    verdict = f"ANOTHER RESULT: {found.difference}" if found.difference else "the same result"
    how = "exactly, by the game's own ticks"
    if not found.exact:
        how = (
            f"inputs at most {found.latest_ms:.1f} ms late in the program's time, "
            f"{found.same_frames} of {found.frames} frames the same"
        )
    print(f"{found.task}, seed {found.seed}, {found.inputs} inputs: {verdict} ({how})")


def _tell(found: ReplayResult, as_json: bool) -> None:
    header, trace = found.recording.header, found.recording.trace
    if as_json:
        about = {"task": header.task, "seed": header.seed, "steps": found.recording.length}
        print_json(about | {"trace": trace, "replayed": found.ending.trace, "difference": found.difference})
        return
    verdict = f"the same trace {trace}" if found.same else f"ANOTHER TRACE: {found.difference}"
    print(f"{header.task}, seed {header.seed}, {found.recording.length} steps: {verdict}")
