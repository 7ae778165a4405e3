"""The base of Agent and Evaluator: a stop event and a server."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self

from proctor.agents.constants import NETWORK
from proctor.agents.runtime.hosting.recipe import Recipe, recipe_of

if TYPE_CHECKING:
    from proctor.agents.server.server import SideServer


class StopEvent(threading.Event):
    """An event that calls `on_set` when it is set."""

    def __init__(self) -> None:
        super().__init__()
        self.on_set: Callable[[], None] = lambda: None

    def set(self) -> None:
        super().set()
        self.on_set()


class Participant:
    """Base of Agent and Evaluator.

    The agent or evaluator runs in a separate process, which creates the object again with the arguments of the
    constructor. So it can be killed when it hangs, while its server still answers.
    """

    role: ClassVar[str]
    default_port: ClassVar[int]
    stop_event: StopEvent  # set, it ends the current task
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]
    _server: SideServer | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        # Not in __init__: a subclass may not call it, and its arguments are only visible here.
        instance = super().__new__(cls)
        instance.stop_event = StopEvent()
        instance._arguments, instance._server = (args, kwargs), None
        return instance

    @property
    def recipe(self) -> Recipe:
        return recipe_of(type(self), *self._arguments)

    def run(self, host: str = NETWORK.DEFAULT_HOST, port: int | None = None, **options: Any) -> None:
        """Serves until stopped. Options: token, allow_hosts, and limits (EpisodeLimits)."""
        self._new_server(host, port, options).run()

    def run_background(self, host: str = NETWORK.DEFAULT_HOST, port: int | None = None, **options: Any) -> str | None:
        """Serves in the background; returns the address once it answers, or None if it could not be started."""
        if self._server is not None:
            self._server.close()
        self._server = self._new_server(host, port, options)
        return self._server.run_background()

    def close(self) -> None:
        """Ends the server in the background and its processes."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _new_server(self, host: str, port: int | None, options: dict[str, Any]) -> SideServer:
        from proctor.agents.server.server import new_server  # FastAPI takes its time

        server = new_server(self.role, self.recipe, host, self.default_port if port is None else port, **options)
        self.stop_event.on_set = server.stop_task
        return server
