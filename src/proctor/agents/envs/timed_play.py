"""A timed episode, in the environment's process: with `realtime` it ticks whether or not the agent has decided.

With `paused` the environment waits for an action after each observation, and then runs for one tick.
"""

from __future__ import annotations

import time
from typing import Any

from msgspec import Struct

from proctor.agents.envs import observations
from proctor.agents.envs.event_log import EpisodeEnding
from proctor.agents.envs.pending_actions import ActionQueue, Frame, PendingAction
from proctor.agents.envs.step_play import EnvFailedError, Play
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.runtime.lags import Lags

KEPT = 1_000  # observations whose time is stored: an action on an older one is not measured
LATE = 0.25  # of a tick: one that begins later than this has missed its deadline


class Figures(Struct):
    """Counts and lags of a timed episode."""

    late: int = 0
    late_ticks: int = 0
    slow_ticks: int = 0
    lags: dict[str, Lags] = {}


class TimedPlay:
    """Ticks until the end. Observations and actions go through the action queue."""

    def __init__(self, play: Play, action_queue: ActionQueue) -> None:
        self._play, self._action_queue = play, action_queue
        self._period = int(1e9 / play.episode.fps)
        self._figures = Figures(lags={name: Lags() for name in ("observation", "reaction", "action")})
        self._shown: dict[int, int] = {}  # tick -> when its observation was there

    def run(self, observation: Any) -> EpisodeEnding:
        try:
            self._show(0, observation)
            # The clock starts with the agent's first request: the time to connect is not a reaction.
            self._action_queue.looked.wait(max(0.0, (self._play.deadline - time.monotonic_ns()) / 1e9))
            self._shown[0] = time.monotonic_ns()
            outcome, why = self._paused() if self._play.episode.clock == "paused" else self._realtime()
        except EnvFailedError as error:
            outcome, why = error.outcome, str(error)
        finally:
            self._action_queue.close()
        figures = self._figures
        return self._play.end(
            outcome,
            why,
            late=figures.late,
            dropped=self._action_queue.dropped,
            late_ticks=figures.late_ticks,
            slow_ticks=figures.slow_ticks,
            lags=figures.lags,
        )

    def _realtime(self) -> tuple[EpisodeOutcome, str]:
        """Deadlines are fixed at the start: a late tick does not delay the others."""
        play = self._play
        started = free = time.monotonic_ns()
        tick = 0
        while not play.over:
            tick += 1
            due = started + tick * self._period
            if due >= play.deadline:
                self._sleep_until(play.deadline)
                return EpisodeOutcome.TIMEOUT, "time was up"
            self._sleep_until(due)
            begun = time.monotonic_ns()
            if begun - due > self._period * LATE:
                if free > due:  # the tick before was not over yet
                    self._figures.slow_ticks += 1
                else:
                    self._figures.late_ticks += 1
            self._show(tick, self._step(tick, self._action_queue.take(), begun))
            free = time.monotonic_ns()
        return EpisodeOutcome.COMPLETED, ""

    def _paused(self) -> tuple[EpisodeOutcome, str]:
        play = self._play
        tick = 0
        while not play.over:
            move = self._action_queue.wait((play.deadline - time.monotonic_ns()) / 1e9)
            if move is None:
                return EpisodeOutcome.TIMEOUT, "time was up"
            tick += 1
            begun = time.monotonic_ns()
            observation = self._step(tick, move, begun)
            self._sleep_until(begun + self._period)
            self._show(tick, observation)
        return EpisodeOutcome.COMPLETED, ""

    def _step(self, tick: int, move: PendingAction | None, begun: int) -> Any:
        timing = {"tick": tick} if move is None else self._timing(tick, move, begun)
        observation = self._play.step(None if move is None else move.action, timing)
        self._play.rest()
        return observation

    def _timing(self, tick: int, move: PendingAction, begun: int) -> dict[str, int]:
        """Returns and counts the times of an action.

        The times that an agent reports are limited to what is possible: after the observation, before the arrival.
        """
        made = self._shown.get(move.tick, begun)
        seen = min(max(move.seen, made), move.arrived)
        sent = min(max(move.sent, seen), move.arrived)
        self._figures.late += move.tick < tick - 1
        lags = self._figures.lags
        lags["observation"].add(seen - made)
        lags["reaction"].add(sent - seen)
        lags["action"].add(begun - sent)
        agents = {"of": move.tick, "made": made, "seen": seen, "sent": sent}
        return {"tick": tick, **agents, "arrived": move.arrived, "begun": begun}

    def _show(self, tick: int, observation: Any) -> None:
        play = self._play
        shown = play.env.in_words(observation) if play.episode.in_words else observation
        frame = Frame(tick, observations.pack(shown), play.last_reward, play.over)
        self._shown.pop(tick - KEPT, None)
        self._shown[tick] = time.monotonic_ns()
        self._action_queue.show(frame)

    def _sleep_until(self, when: int) -> None:
        remaining = (when - time.monotonic_ns()) / 1e9
        if remaining > 0:
            time.sleep(remaining)
