"""Replay logged episodes, and compare the results with the log.

An episode in a window can be replayed if its clock was `paused`: the same program gets the same inputs
at the same program time. hexagon replays by its own ticks, with any clock.

The log of an episode is events.jsonl in the artifacts of the run. Exits with 1 if a result differs."""

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
    parser.add_argument("events", nargs="+", metavar="EVENTS.jsonl", help="log of an episode")
    parser.add_argument("--json", action="store_true", help="print as JSON")


def call(args: argparse.Namespace) -> int:
    from proctor.agents.envs.replay import replay
    from proctor.core.config import user_path

    code = 0
    for events in args.events:
        path = user_path(events)
        if _is_window_log(path):
            from proctor.agents.windows.replay import replay_window

            window_replay = replay_window(path)
            _print_window_replay(window_replay, args.json)
            code |= not window_replay.same
            continue
        result = replay(path)
        _print_replay(result, args.json)
        code |= not result.same
    return code


def _is_window_log(path: Path) -> bool:
    """Whether the log starts with an event, not with the header of a stepped environment."""
    try:
        with path.open("rb") as file:
            return file.readline(64).startswith(b'{"ns":')
    except OSError:
        return False  # the replay reports the error


def _print_window_replay(result: WindowReplay, as_json: bool) -> None:
    if as_json:
        print_json(msgspec.to_builtins(result))
        return
    verdict = f"A DIFFERENT RESULT: {result.difference}" if result.difference else "the same result"
    how = "exactly, by the game's own ticks"
    if not result.exact:
        how = (
            f"inputs at most {result.latest_ms:.1f} ms late in the program's time, "
            f"{result.same_frames} of {result.frames} frames the same"
        )
    print(f"{result.task}, seed {result.seed}, {result.inputs} inputs: {verdict} ({how})")


def _print_replay(result: ReplayResult, as_json: bool) -> None:
    header, trace = result.recording.header, result.recording.trace
    if as_json:
        about = {"task": header.task, "seed": header.seed, "steps": result.recording.length}
        print_json(about | {"trace": trace, "replayed": result.ending.trace, "difference": result.difference})
        return
    verdict = f"the same trace {trace}" if result.same else f"A DIFFERENT TRACE: {result.difference}"
    print(f"{header.task}, seed {header.seed}, {result.recording.length} steps: {verdict}")
