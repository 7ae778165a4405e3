"""What runs beside an agent in a thread of its own: Runnable, and Listener, which calls a function of yours."""

from __future__ import annotations

import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self


class Session:
    """`with runnable.session as running:` starts it, and stops and joins it at the end."""

    def __init__(self, runnable: Runnable) -> None:
        self.runnable = runnable

    def __enter__(self) -> Any:
        self.runnable.start()
        return self.runnable

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.runnable.stop()
        self.runnable.join()

    def is_alive(self) -> bool:
        return self.runnable.is_alive()


class Runnable(threading.Thread, ABC):
    """A thread that can be stopped. A subclass has `loop`, and `on_configure` if it has something to set.

    `configure` comes before `start`. `loop` may take `stop_event`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("daemon", True)  # an agent that ends does not wait for what it forgot to stop
        super().__init__(*args, **kwargs)
        self._stop_event = threading.Event()
        self._configured = False

    @property
    def session(self) -> Session:
        return Session(self)

    def configure(self, *args: Any, **kwargs: Any) -> Self:
        self.on_configure(*args, **kwargs)
        self._configured = True
        return self

    def on_configure(self, *args: Any, **kwargs: Any) -> Any:
        """What `configure` was given."""

    def start(self) -> None:
        if not self._configured:
            raise RuntimeError(f"{type(self).__name__}: call configure() before start()")
        super().start()

    def stop(self) -> None:
        self._stop_event.set()

    def run(self) -> None:
        wanted = inspect.signature(self.loop).parameters
        self.loop(**{name: value for name, value in self._offered().items() if name in wanted})

    def _offered(self) -> dict[str, Any]:
        return {"stop_event": self._stop_event}

    @abstractmethod
    def loop(self, *args: Any, **kwargs: Any) -> None:
        """Runs until `stop_event` is set."""


class Listener(Runnable):
    """A Runnable with a callback, which `loop` may take as `callback`."""

    _callback: Callable[..., Any] | None = None

    def configure(self, *args: Any, callback: Callable[..., Any], **kwargs: Any) -> Self:
        self.register_callback(callback)
        return super().configure(*args, **kwargs)

    def register_callback(self, callback: Callable[..., Any]) -> Self:
        self._callback = callback
        return self

    def get_callback(self) -> Callable[..., Any]:
        if self._callback is None:
            raise AttributeError(f"{type(self).__name__} has no callback: give one to configure()")
        return self._callback

    @property
    def callback(self) -> Callable[..., Any]:
        return self.get_callback()

    @callback.setter
    def callback(self, callback: Callable[..., Any]) -> None:
        self.register_callback(callback)

    def _offered(self) -> dict[str, Any]:
        return super()._offered() | {"callback": self.get_callback()}
