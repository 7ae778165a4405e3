"""Agent, the base class of agents that play in real time."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from proctor.agents.constants import NETWORK, TIMEOUTS
from proctor.agents.outcome import EpisodeOutcome
from proctor.agents.participant import Participant
from proctor.agents.runtime.hosting.channel import IN_AGENT
from proctor.agents.runtime.hosting.host import Host, described
from proctor.agents.runtime.hosting.recipe import Recipe
from proctor.agents.runtime.recording import recording
from proctor.agents.runtime.waiting import thinking
from proctor.agents.types import BEGUN, ISOLATED, RAISED, AgentEnding, Task


class Agent(Participant, ABC):
    """Plays in an environment, one step at a time."""

    role: ClassVar[str] = "agent"
    default_port = NETWORK.AGENT_PORT

    @abstractmethod
    def _play_env(self, task: Task) -> bool:
        """One step: look, decide, act. False says that the agent has finished."""

    def _init_task_hook(self, task: Task) -> None:
        """Called before the first step of a task."""

    def _finish_task_hook(self, task: Task) -> None:
        """Called after the last step of a task, whatever happened."""


class HostedAgent:
    """Hosts an agent in its process and plays tasks with it."""

    def __init__(self, recipe: Recipe, host: Host) -> None:
        agent = recipe.build()
        if not isinstance(agent, Agent):
            raise TypeError(f"{recipe.name} is not an Agent: it must extend proctor.agents.Agent")
        self._agent, self._host = agent, host
        if ISOLATED in os.environ:
            recording.sink = host.notify  # a sandbox cannot reach the log
        self._stop_requested = threading.Event()
        self._clock_turned = threading.Event()

    def play(self, message: dict[str, Any], folder: str, can_pause: bool) -> dict[str, Any]:
        recording.begin(folder)
        thinking.begin(self._turn if can_pause else None)
        task, agent, pulse = Task(**message), self._agent, self._host.pulse
        self._stop_requested.clear()
        agent.stop_event.clear()
        pulse.clear()
        pulse.begin(IN_AGENT)
        self._host.notify(BEGUN)
        error = ""
        try:
            agent._init_task_hook(task)
            goes_on = True
            while goes_on and not agent.stop_event.is_set():
                pulse.begin(IN_AGENT)
                goes_on = agent._play_env(task)
                pulse.end()
        except BaseException as fault:
            self._host.notify({RAISED: described(fault)})
            # The referee looks at the environment first: the hook may be slow, or change it.
            self._stop_requested.wait(TIMEOUTS.STARTING)
            raise
        finally:
            try:
                agent._finish_task_hook(task)
            except BaseException as fault:  # it does not change how the task ended
                error = f"_finish_task_hook: {described(fault).text}"
        by_hand = goes_on and not self._stop_requested.is_set()
        outcome = EpisodeOutcome.STOPPED if by_hand else EpisodeOutcome.COMPLETED
        return AgentEnding(outcome=outcome, error=error, actions=pulse.calls).model_dump(mode="json")

    def _turn(self, still: bool) -> None:
        """Pauses or resumes the environment. The time of a pause does not count as time of the step."""
        self._clock_turned.clear()
        self._host.notify(still)
        self._clock_turned.wait()
        self._host.pulse.begin(IN_AGENT)

    def clock_turned(self) -> None:
        self._clock_turned.set()

    def stop(self) -> None:
        self._stop_requested.set()
        self._agent.stop_event.set()

    def stop_by_hand(self) -> None:
        self._agent.stop_event.set()
