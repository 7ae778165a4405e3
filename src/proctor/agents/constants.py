"""Constants of both sides of an evaluation, under the names that agents and evaluators use."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Network(Struct, frozen=True):
    DEFAULT_HOST: str = "127.0.0.1"
    AGENT_PORT: int = 8000
    EVALUATOR_PORT: int = 8001


DEFAULT_EPISODES: Final = 10  # of a task
LONGEST_TASK: Final = 7 * 24 * 3600.0  # seconds
LONGEST_THOUGHT: Final = 300.0  # seconds for which the clock `paused` stops an environment, by default


class Times(Struct, frozen=True):
    """Seconds between things."""

    KEYBOARD_PRESS_DELAY: float = 0.05  # how long a key is held, so that a game at 20 frames a second sees it
    MOUSE_PRESS_DELAY: float = 0.05  # how long mouse.click holds a button, and waits before the next of several clicks
    CHECK_INTERVAL: float = 0.1  # between two calls of _check_env_continue
    STATUS_INTERVAL: float = 0.5  # between two requests for the other side's status
    READY_INTERVAL: float = 0.05  # between two requests whether an agent is ready again
    RESULT_POLL_INTERVAL: float = 0.1  # between two requests for a result


class Timeouts(Struct, frozen=True):
    """Timeouts in seconds.

    Most only end what is broken, and are long enough for a busy machine. STOPPING, HANG and UNREACHABLE are short on
    purpose: the first two bound what an agent may do after its time, the third counts refused connections.
    """

    SERVER_STARTUP_RETRY_INTERVAL: float = 0.1
    SERVER_STARTUP: float = 60.0  # for a server to be reached by a client, while nothing listens at its address
    CREATION: float = 300.0  # for the constructor of an agent or an evaluator: models are loaded in it
    SETUP: float = 120.0  # for _setup_environment
    SCORING: float = 120.0  # for _score_task
    CLOSING: float = 10.0  # for _close_environment
    PAUSING: float = 60.0  # for an environment to be paused or resumed
    LAST_CHECK: float = 5.0  # for the evaluator to see the end, when an agent reports the environment gone
    STOPPING: float = 0.1  # for an agent to leave _play_env; then it is frozen until the score is there
    HANG: float = 5.0  # a call of _play_env that lasts so long when time is up hangs
    READY: float = 60.0  # for an agent that is still busy with the end of a task to be ready for the next
    STARTING: float = 30.0  # for an agent that is ready to begin
    REQUEST: float = 10.0  # for an answer of the other side
    STATUS: float = 4.0  # for a status request
    UNREACHABLE: float = 1.5  # a side that answers no request for so long is gone


NETWORK: Final = Network()
TIMES: Final = Times()
TIMEOUTS: Final = Timeouts()
