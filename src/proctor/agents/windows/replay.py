"""Replays a logged episode in a window: the same program, seed and inputs at the same program times.

How exact that is depends on the program: dates, machine noise and start-up times differ. So the replay reports how
far each input was from its time, how many frames are the same, and whether the evaluator comes to the same result. A
game that logs its moves by ticks, as hexagon does, is replayed exactly, by its rules.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from proctor.agents.desktop.display import VIRTUAL, VirtualDisplay, parse_size
from proctor.agents.evaluator_task import EvaluatorTask
from proctor.agents.runtime.hosting.host import Host
from proctor.agents.runtime.hosting.process import HostDiedError, HostedFaultError, HostProcess
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.locking import VARIABLE
from proctor.agents.runtime.log_summary import EpisodeLog
from proctor.agents.runtime.recording import EVALUATOR, recording
from proctor.agents.types import Task
from proctor.agents.windows.evaluator import ProgramEvaluator
from proctor.agents.windows.requirements import require_desktop
from proctor.core import registry
from proctor.core.errors import UsageError
from proctor.core.task import create_task

ROLE = f"{__name__}:HostedReplay"
MS = 1e3
SHORTEST_RUN = 0.05  # seconds that the program runs between two events that were so far apart, even if one is late
TIMED = ("task_elapsed_time", "frames", "late_frames", "frame")  # measured: they may differ though all else is the same


class Script(Struct):
    """What to repeat, at seconds of the program's time after the set-up.

    The time from the program's start would depend on the load of the machine.
    """

    inputs: list[tuple[float, str, str, dict[str, int]]]  # seconds, kind, key or text, where to
    frames: list[tuple[float, str]]  # seconds, fingerprint
    end: float
    elapsed: float  # of the play


class WindowReplay(Struct, frozen=True):
    """The result of a replay."""

    task: str
    seed: int | None
    inputs: int
    exact: bool  # replayed by the rules of the game, tick by tick
    latest_ms: float  # largest delay of an input
    frames: int  # compared frames
    same_frames: int
    metrics: dict[str, Any]
    difference: str  # in words; empty if the result is the same

    @property
    def same(self) -> bool:
        return not self.difference


def replay_window(path: Path) -> WindowReplay:
    log = EpisodeLog(path)
    episode, task, result = (log.first(event) for event in ("episode", "task", "result"))
    if episode is None or task is None or result is None:
        raise UsageError(f"{path}: the log of an episode in a window, without its beginning or its end.")
    name = episode["exam"]
    known = episode["settings"]
    evaluator_task = create_task(registry.load_task_class(name), name, known)
    if not isinstance(evaluator_task, EvaluatorTask):
        raise UsageError(f"{path}: {name} is not played in a window.")
    played = Task(**{key: value for key, value in task.items() if key in Task.model_fields})
    if (moves := log.first("moves")) is not None:
        return _by_rules(name, played, log, moves)
    if log.first("paused") is None:
        raise UsageError(
            f"{path} was played by the clock {known.get('clock')!r}, and {name} logs no moves of its own: "
            "an episode in a window is replayed if it was played with --set clock=paused."
        )
    return asyncio.run(_play(name, played, evaluator_task, _script(log), result["metrics"], episode))


def _by_rules(name: str, task: Task, log: EpisodeLog, moves: dict[str, Any]) -> WindowReplay:
    from proctor.agents.games.hexagon.moves import replay_moves

    difference = replay_moves(moves)
    inputs = sum(line["event"] == "input" for line in log.lines)
    facts = {"ticks": moves["ticks"], "cursor": moves["cursor"], "phase": moves["phase"]}
    return WindowReplay(name, task.seed, inputs, True, 0.0, 0, 0, facts, difference)


def _script(log: EpisodeLog) -> Script:
    """The inputs and frames from the end of the set-up to the end of the episode."""
    set_up, over = log.first("set_up"), log.first("over")
    if set_up is None or over is None:
        raise UsageError("the episode was not played: there is nothing to replay.")
    ready = log.program_seconds(set_up["ns"])
    inputs: list[tuple[float, str, str, dict[str, int]]] = []
    frames: list[tuple[float, str]] = []
    for line in log.lines:
        if not set_up["ns"] <= line["ns"] <= over["ns"]:
            continue
        at = log.program_seconds(line["ns"]) - ready
        if line["event"] == "input":
            where: dict[str, int] = {key: line[key] for key in ("x", "y", "dx", "dy") if key in line}
            inputs.append((at, line["kind"], line.get("what", ""), where))
        elif line["event"] == "frame" and line.get("by") != EVALUATOR:
            frames.append((at, line["hash"]))
    return Script(inputs, frames, log.program_seconds(over["ns"]) - ready, over["elapsed"])


async def _play(
    name: str,
    task: Task,
    evaluator_task: EvaluatorTask,
    script: Script,
    metrics: dict[str, Any],
    episode: dict[str, Any],
) -> WindowReplay:
    require_desktop(virtual=True, film=False)
    shown = episode.get("display", VIRTUAL)
    display = VirtualDisplay(parse_size(shown if shown.startswith(VIRTUAL) else VIRTUAL))
    with tempfile.TemporaryDirectory(prefix="proctor-replay-") as temporary:
        folder = Path(temporary)
        await asyncio.to_thread(display.start)
        process = None
        try:
            environment = display.environment | {VARIABLE: str(folder / "env.lock")}
            process = await HostProcess.start(
                ROLE, evaluator_task.evaluator_recipe(), folder / "evaluator.log", environment
            )
            replayed = await process.call(
                "play", task.model_dump(mode="json"), str(folder), msgspec.to_builtins(script)
            )
        except (HostedFaultError, HostDiedError) as error:
            raise UsageError(f"{name} could not be played again: {error}") from error
        finally:
            if process is not None:
                await process.end()
            await asyncio.to_thread(display.close)
    differing = [
        f"{key} was {metrics.get(key)!r}, now {replayed['metrics'].get(key)!r}"
        for key in dict.fromkeys([*metrics, *replayed["metrics"]])
        if key not in TIMED and metrics.get(key) != replayed["metrics"].get(key)
    ]
    return WindowReplay(
        name,
        task.seed,
        len(script.inputs),
        False,
        replayed["latest_ms"],
        len(script.frames),
        replayed["same_frames"],
        replayed["metrics"],
        "; ".join(differing),
    )


class HostedReplay:
    """Hosts an evaluator whose program is paused for every input, so that the input is on time."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        evaluator = recipe.build()
        if not isinstance(evaluator, ProgramEvaluator):
            raise TypeError(f"{recipe.name} starts no program that can be stopped in the middle of its time")
        self._evaluator = evaluator

    def play(self, fields: dict[str, Any], folder: str, script: dict[str, Any]) -> dict[str, Any]:
        task, actions = Task(**fields), msgspec.convert(script, Script)
        evaluator = self._evaluator
        recording.begin(folder, by_agent=False)
        evaluator.folder, evaluator.clock = Path(folder), "paused"
        try:
            evaluator._setup_environment(task)
            latest, same = self._perform(task, actions)
            result = evaluator._score_task(task, actions.elapsed, "")
        finally:
            evaluator._close_environment()
            recording.begin("")
        metrics = msgspec.json.decode(msgspec.json.encode(result.metrics, enc_hook=lambda value: value.item()))
        return {"metrics": metrics, "latest_ms": latest * MS, "same_frames": same}

    def _perform(self, task: Task, script: Script) -> tuple[float, int]:
        """Returns the largest delay of an input, and how many frames are the same."""
        program = self._evaluator._running()
        program.pause()
        ready = stands = program.elapsed
        before = 0.0
        steps: list[tuple[float, int, Any]] = [(done[0], 1, done) for done in script.inputs]
        steps += [(at, 0, frame) for at, frame in script.frames]
        latest, same = 0.0, 0
        for at, is_input, what in sorted(steps, key=lambda step: step[:2]):
            stands = program.run_until(max(ready + at, stands + min(at - before, SHORTEST_RUN)))
            before = at
            if is_input:
                latest = max(latest, stands - ready - at)
                _do(*what[1:])
            else:
                same += _shows(task.window_name, cast(str, what))
        program.run_until(max(ready + script.end, stands + min(script.end - before, SHORTEST_RUN)))
        return latest, same


def _do(kind: str, what: str, where: dict[str, int]) -> None:
    from proctor.agents.desktop.names import desktop
    from proctor.agents.desktop.vk import VK

    match kind:
        case "press" | "release" if what in VK.__members__:
            if "x" in where:  # of a person: not every movement is written down
                desktop().move(where["x"], where["y"])
            desktop().key(VK[what], kind == "press")
        case "press":
            desktop().press_character(what)
        case "release":
            desktop().release_character(what)
        case "type":
            desktop().type_text(what)
        case "move":
            desktop().move(where["x"], where["y"])
        case "scroll":
            desktop().scroll(where["dx"], where["dy"])


def _shows(window_name: str, expected: str) -> bool:
    """Whether the window, or the whole display, shows this frame."""
    from proctor.agents.desktop.interface import WindowNotFoundError, window_titled
    from proctor.agents.desktop.names import desktop, fingerprint

    try:
        window = window_titled(desktop(), window_name)
    except WindowNotFoundError:
        return False
    return expected in (fingerprint(desktop().capture(shown)) for shown in (window, None))
